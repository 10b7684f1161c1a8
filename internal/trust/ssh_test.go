package trust

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

var noon = time.Date(2024, 6, 1, 12, 0, 0, 0, time.UTC)

// newKey makes a key, and the line for it without principals.
func newKey(t testing.TB) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// sign makes a signature.
func sign(t testing.TB, key ssh.Signer, payload, namespace string) Signed {
	t.Helper()
	sig, err := sshsig.Sign(strings.NewReader(payload), key, sshsig.HashSHA512, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return Signed{Payload: []byte(payload), Signature: sshsig.Armor(sig)}
}

// TestAllowedSigners holds the file's format against ssh-keygen itself.
func TestAllowedSigners(t *testing.T) {
	key, line := newKey(t)
	_, other := newKey(t)
	signed := sign(t, key, "payload", "git")
	dir := t.TempDir()
	signature := filepath.Join(dir, "signature")
	if err := os.WriteFile(signature, signed.Signature, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		ours string // the error; "" is none
	}{
		{"alice " + line, ""},
		{"alice,bob " + line + " a comment", ""},
		{"# comment\n\n\"alice\" " + line + "\n", ""},
		{"bob " + other + "\nalice\t" + line, ""},
		{`alice namespaces="git" ` + line, ""},
		{`alice namespaces="file,g?t" ` + line, ""},
		{`alice namespaces="file" ` + line, `is not listed for the namespace "git"`},
		{`alice namespaces="*,!git" ` + line, `is not listed for the namespace "git"`},
		{`alice valid-after="20240601" ` + line, ""},
		{`alice valid-after="20240602" ` + line, "is not valid on 2024-06-01"},
		{`alice valid-after="202406011200Z" ` + line, ""},
		{`alice valid-after="20240601120001Z" ` + line, "is not valid on 2024-06-01"},
		{`alice valid-before="20240601120001Z" ` + line, ""},
		{`alice valid-before="20240601" ` + line, "is not valid on 2024-06-01"},
		{`alice valid-after="20230101",valid-before="20250101",namespaces="git" ` + line, ""},
		{`alice VALID-BEFORE="20240601" ` + line + "\nalice " + line, ""},
		{"alice " + other, "is not listed"},
	} {
		keys, err := ReadKeys(File{}, File{Name: "allowed", Content: []byte(c.text)})
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		_, err = keys.Verify(signed, noon)
		if (err == nil) != (c.ours == "") || err != nil && !strings.Contains(err.Error(), c.ours) {
			t.Errorf("%s: %v, not %q", c.text, err, c.ours)
		}
		allowed := filepath.Join(dir, "allowed")
		if err := os.WriteFile(allowed, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "alice", "-n", "git", "-s", signature,
			"-O", "verify-time=20240601120000Z")
		cmd.Stdin = bytes.NewReader(signed.Payload)
		out, theirs := cmd.CombinedOutput()
		if (theirs == nil) != (err == nil) {
			t.Errorf("%s: ours says %v, ssh-keygen %s", c.text, err, out)
		}
	}
}

func TestAllowedSignersMistakes(t *testing.T) {
	_, line := newKey(t)
	for text, want := range map[string]string{
		"alice":                                "allowed:1: no key after the principals",
		"alice nonsense":                       "allowed:1: no key after the principals",
		`"alice ` + line:                       "allowed:1: the quote of the principals is not closed",
		"\nalice cert-authority " + line:       "allowed:2: option cert-authority: certificates are not supported",
		`alice valid-after="tomorrow" ` + line: `allowed:1: invalid time "tomorrow": write YYYYMMDD`,
		`alice valid-after="20241301" ` + line: `allowed:1: invalid time "20241301"`,
		"alice no-touch-required " + line:      `allowed:1: unknown option "no-touch-required"`,
		"":                                     "no key is listed",
	} {
		_, err := ReadKeys(File{}, File{Name: "allowed", Content: []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", text, err, want)
		}
	}
}

// TestWeakKeys are not keys.
func TestWeakKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weak")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "rsa", "-b", "1024", "-N", "", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	key, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReadKeys(File{}, File{Name: "allowed", Content: append([]byte("alice "), key...)})
	if err == nil || err.Error() != "allowed:1: an RSA key of 1024 bits: at least 2048 are needed" {
		t.Error(err)
	}
}

// TestDSA: such a key is not one either.
func TestDSA(t *testing.T) {
	p := new(big.Int).SetBit(big.NewInt(1), 1023, 1)
	wire := ssh.Marshal(struct {
		Kind       string
		P, Q, G, Y *big.Int
	}{"ssh-dss", p, new(big.Int).SetBit(big.NewInt(1), 159, 1), big.NewInt(2), big.NewInt(3)})
	line := "alice ssh-dss " + base64.StdEncoding.EncodeToString(wire)
	_, err := ReadKeys(File{}, File{Name: "allowed", Content: []byte(line)})
	if err == nil || err.Error() != "allowed:1: a DSA key is not safe: sign with another one" {
		t.Error(err)
	}
}

// TestSignatures that are not what they seem.
func TestSignatures(t *testing.T) {
	key, line := newKey(t)
	stranger, _ := newKey(t)
	keys, err := ReadKeys(File{}, File{Name: "allowed", Content: []byte("alice " + line)})
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, key, "payload", "git")
	if who, err := keys.Verify(good, noon); err != nil || who.String() != "alice (key "+ssh.FingerprintSHA256(key.PublicKey())+")" {
		t.Fatalf("%v, %v", who, err)
	}
	changed := good
	changed.Payload = []byte("another")
	long := append([]byte(sshArmor), bytes.Repeat([]byte("A"), maxSignature)...)
	for want, s := range map[string]Signed{
		"has no signature":                         {Payload: []byte("payload"), Signature: []byte(" \n")},
		"is not valid":                             changed,
		"namespace does not match":                 sign(t, key, "payload", "file"),
		"which is not listed":                      sign(t, stranger, "payload", "git"),
		"more than 64 KiB":                         {Signature: long},
		"neither OpenPGP nor SSH":                  {Signature: []byte("-----BEGIN SIGNED MESSAGE-----\n")},
		"an SSH signature that cannot be read":     {Signature: []byte(sshArmor + "\nAAAA\n")},
		"an OpenPGP signature that cannot be read": {Signature: []byte(pgpArmor + "\n")},
	} {
		if _, err := keys.Verify(s, noon); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
	}
}

// securityKey signs as a FIDO authenticator does: PROTOCOL.u2f of OpenSSH.
type securityKey struct {
	private ed25519.PrivateKey
	public  ssh.PublicKey
}

func newSecurityKey(t *testing.T) securityKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	wire := ssh.Marshal(struct {
		Kind        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, "ssh:"})
	parsed, err := ssh.ParsePublicKey(wire)
	if err != nil {
		t.Fatal(err)
	}
	return securityKey{private, parsed}
}

func (k securityKey) PublicKey() ssh.PublicKey { return k.public }

// Sign is for sshsig, which hands over what is to be signed.
func (k securityKey) Sign(_ io.Reader, data []byte) (*ssh.Signature, error) {
	application, message := sha256.Sum256([]byte("ssh:")), sha256.Sum256(data)
	tail := binary.BigEndian.AppendUint32([]byte{1}, 7) // touched; the counter
	blob := slices.Concat(application[:], tail, message[:])
	return &ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, blob), Rest: tail}, nil
}

func TestSecurityKey(t *testing.T) {
	key := newSecurityKey(t)
	keys, err := ReadKeys(File{}, File{Name: "allowed", Content: append([]byte("alice "), ssh.MarshalAuthorizedKey(key.public)...)})
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, key, "payload", "git")
	if _, err := keys.Verify(good, noon); err != nil {
		t.Error(err)
	}
	good.Payload = []byte("another")
	if _, err := keys.Verify(good, noon); err == nil {
		t.Error("a signature of another payload is valid")
	}
}

func FuzzVerify(f *testing.F) {
	key, line := newKey(f)
	f.Add(sign(f, key, "payload", "git").Signature, "alice "+line)
	f.Add([]byte(pgpArmor+"\n\niHUEABYKAB0=\n"), `a valid-after="20240601" `+line)
	f.Fuzz(func(t *testing.T, signature []byte, allowed string) {
		keys, err := ReadKeys(File{}, File{Content: []byte(allowed)})
		if err != nil {
			return
		}
		if who, err := keys.Verify(Signed{Payload: []byte("never signed"), Signature: signature}, noon); err == nil {
			t.Errorf("%v signed it", who)
		}
	})
}
