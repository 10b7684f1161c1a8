package trust

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
)

// sshKey makes a key with ssh-keygen, and returns its two files.
func sshKey(t testing.TB, kind, passphrase string) (private, public []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	args := []string{"-q", "-t", kind, "-N", passphrase, "-f", file, "-C", "someone"}
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	return readFile(t, file), readFile(t, file+".pub")
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func recipient(t testing.TB, text string) Recipient {
	t.Helper()
	r, err := ParseRecipient(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func identities(t testing.TB, text []byte, passphrase func() ([]byte, error)) []Identity {
	t.Helper()
	ids, err := ParseIdentities(File{Name: "key", Content: text}, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// Each kind of key opens what was encrypted for it, its public half is the recipient, and others do not.
func TestSeal(t *testing.T) {
	ageKey, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	ed, edPublic := sshKey(t, "ed25519", "")
	rsa, rsaPublic := sshKey(t, "rsa", "")
	locked, lockedPublic := sshKey(t, "ed25519", "open")
	type key struct {
		name    string
		private []byte
		public  string
	}
	keys := []key{
		{"age", []byte("# a comment\n" + ageKey.String() + "\n"), ageKey.Recipient().String()},
		{"ed25519", ed, string(edPublic)},
		{"rsa", rsa, string(rsaPublic)},
		{"with a passphrase", locked, string(lockedPublic)},
	}
	passphrase := func() ([]byte, error) { return []byte("open"), nil }
	for _, for_ := range keys {
		t.Run(for_.name, func(t *testing.T) {
			to := recipient(t, for_.public)
			sealed, err := Seal([]byte("canary"), []Recipient{to})
			if err != nil {
				t.Fatal(err)
			}
			readers, err := ReadersOf(sealed)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range keys {
				ids := identities(t, k.private, passphrase)
				text, err := Unseal(sealed, ids)
				if k.name == for_.name {
					if err != nil || string(text) != "canary" {
						t.Errorf("%s: %q, %v", k.name, text, err)
					}
					if ids[0].Recipient.Text != to.Text {
						t.Errorf("public half %q, want %q", ids[0].Recipient.Text, to.Text)
					}
				} else if !errors.Is(err, ErrNotRecipient) {
					t.Errorf("%s: %v", k.name, err)
				}
				if has, _ := readers.Has(recipient(t, k.public)); has != (k.name == for_.name) {
					t.Errorf("readers have %s: %v", k.name, has)
				}
			}
		})
	}
	ids := identities(t, []byte(hybrid.String()), nil)
	sealed, err := Seal([]byte("canary"), []Recipient{ids[0].Recipient})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := Unseal(sealed, ids); err != nil || string(text) != "canary" {
		t.Errorf("post-quantum: %q, %v", text, err)
	}
}

// The tag of an SSH key in a header is compared without the key, and who is left over is counted.
func TestReaders(t *testing.T) {
	_, ada := sshKey(t, "ed25519", "")
	_, bob := sshKey(t, "ed25519", "")
	first, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	a, b, x := recipient(t, string(ada)), recipient(t, string(bob)), recipient(t, first.Recipient().String())
	sealed, err := Seal([]byte("x"), []Recipient{a, x})
	if err != nil {
		t.Fatal(err)
	}
	readers, err := ReadersOf(sealed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key       Recipient
		has, sure bool
	}{{a, true, true}, {b, false, true}, {x, true, false}} {
		if has, sure := readers.Has(c.key); has != c.has || sure != c.sure {
			t.Errorf("%.20s: %v, %v", c.key.Text, has, sure)
		}
	}
	for _, c := range []struct {
		keys []Recipient
		want int
	}{{[]Recipient{a, x}, 0}, {[]Recipient{b, x}, 1}, {[]Recipient{a, b}, 1}, {nil, 2}} {
		if got := readers.Others(c.keys); got != c.want {
			t.Errorf("others than %d keys: %d, want %d", len(c.keys), got, c.want)
		}
	}
}

// Each refusal has its text, and none shows a key.
func TestSecretRefusals(t *testing.T) {
	private, _ := sshKey(t, "ed25519", "")
	locked, _ := sshKey(t, "ed25519", "open")
	_, ecdsa := sshKey(t, "ecdsa", "")
	ecdsaPrivate, _ := sshKey(t, "ecdsa", "")
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", `invalid key "": write age1..., ssh-ed25519 KEY or ssh-rsa KEY`},
		{"ada", `invalid key "ada": write age1..., ssh-ed25519 KEY or ssh-rsa KEY`},
		{"age1xyz", "invalid age key: it is damaged, or of a kind that is not supported"},
		{"age1pq1xyz", "invalid age key: it is damaged, or of a kind that is not supported"},
		{id.String(), "this is a private key, and now a known one: replace it, and write the public key here"},
		{string(private), "invalid key: it has more than one line"},
		{"ssh-ed25519 A!", "invalid SSH key: it is damaged"},
		{"ssh-rsa AAAA", "invalid SSH key: it is damaged, or an RSA key of less than 2048 bits"},
		{string(ecdsa), `SSH keys of the kind "ecdsa-sha2-nistp256" cannot encrypt: use ssh-ed25519, ssh-rsa or an age key`},
	} {
		if _, err := ParseRecipient(c.text); err == nil || err.Error() != c.want {
			t.Errorf("%.20q: %v\nwant %s", c.text, err, c.want)
		}
	}
	for _, c := range []struct {
		text []byte
		want string
	}{
		{nil, "key: no private key of age or OpenSSH"},
		{[]byte("AGE-SECRET-KEY-1X"), "key: no private key of age or OpenSSH"},
		{locked, "key: the key has a passphrase, which nobody can type here: use one without"},
		{ecdsaPrivate, "key: only keys of the kinds ssh-ed25519 and ssh-rsa open secrets"},
	} {
		if _, err := ParseIdentities(File{Name: "key", Content: c.text}, nil); err == nil || err.Error() != c.want {
			t.Errorf("%.20q: %v\nwant %s", c.text, err, c.want)
		}
	}
	if _, err := Seal(nil, nil); err == nil || err.Error() != "nobody could read it: no recipient is named" {
		t.Error(err)
	}
}

// A file of which one byte was changed is refused, wherever that byte stands, and gives nothing of its text.
func TestTampered(t *testing.T) {
	private, public := sshKey(t, "ed25519", "")
	ids := identities(t, private, nil)
	sealed, err := Seal([]byte(strings.Repeat("canary ", 20)), []Recipient{recipient(t, string(public))})
	if err != nil {
		t.Fatal(err)
	}
	for at := range sealed {
		bad := bytes.Clone(sealed)
		if bad[at] ^= 1; bytes.Equal(bytes.TrimSpace(bad), bytes.TrimSpace(sealed)) {
			continue
		}
		text, err := Unseal(bad, ids)
		var damaged *damagedError
		if !errors.As(err, &damaged) && !errors.Is(err, ErrNotRecipient) || len(text) > 0 {
			t.Fatalf("byte %d: %q, %v", at, text, err)
		}
	}
	for at := range sealed[:len(sealed)-2] {
		if text, err := Unseal(sealed[:at], ids); err == nil || len(text) > 0 {
			t.Fatalf("cut at %d: %q, %v", at, text, err)
		}
	}
}

func FuzzUnseal(f *testing.F) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	ids, err := ParseIdentities(File{Name: "key", Content: []byte(id.String())}, nil)
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := Seal([]byte("canary"), []Recipient{ids[0].Recipient})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte("age-encryption.org/v1\n-> X25519 \n"))
	f.Add([]byte("age-encryption.org/v1\n-> ssh-ed25519 \n--- \n"))
	f.Fuzz(func(t *testing.T, sealed []byte) {
		_, _ = ReadersOf(sealed)
		if text, err := Unseal(sealed, ids); err != nil && text != nil {
			t.Errorf("%q beside %v", text, err)
		}
	})
}
