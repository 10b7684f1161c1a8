package trust

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gnupg is a keyring of the real gpg.
type gnupg struct {
	t   *testing.T
	dir string
}

func newGnupg(t *testing.T) gnupg {
	t.Helper()
	dir, err := os.MkdirTemp("", "gpg") // the agent's socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	g := gnupg{t, dir}
	t.Cleanup(func() {
		cmd := exec.Command("gpgconf", "--kill", "all")
		cmd.Env = append(os.Environ(), "GNUPGHOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("gpgconf: %v: %s", err, out)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return g
}

// run runs gpg at a time, such as 20240101T000000.
func (g gnupg) run(at, input string, args ...string) []byte {
	g.t.Helper()
	args = append([]string{"--batch", "--quiet", "--yes", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", "",
		"--faked-system-time", at}, args...)
	cmd := exec.Command("gpg", args...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+g.dir)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		g.t.Fatalf("gpg %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (g gnupg) sign(at, key, payload string, more ...string) Signed {
	g.t.Helper()
	args := append(more, "--local-user", key, "--armor", "--detach-sign")
	return Signed{Payload: []byte(payload), Signature: g.run(at, payload, args...)}
}

func day(text string) time.Time {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return at
}

func TestOpenPGP(t *testing.T) {
	g := newGnupg(t)
	g.run("20240101T000000", "", "--quick-generate-key", "Alice <Alice@example.org>", "ed25519", "sign", "1y")
	g.run("20240101T000000", "", "--quick-generate-key", "mallory@example.org", "ed25519", "sign", "never")
	ring := g.run("20240102T000000", "", "--armor", "--export", "alice@example.org")
	keys, err := ReadKeys(File{Name: "ring", Content: ring}, File{})
	if err != nil {
		t.Fatal(err)
	}
	signed := g.sign("20240601T000000", "alice@example.org", "payload")
	who, err := keys.Verify(signed, day("2024-06-01"))
	if err != nil || len(who.Names) != 2 || who.Names[0] != "alice@example.org" || who.Names[1] != who.Key || len(who.Key) != 40 {
		t.Fatalf("%v, %v", who, err)
	}
	late := g.sign("20240601T000100", "alice@example.org", "payload") // a passphrase was typed
	if _, err := keys.Verify(late, day("2024-06-01")); err != nil {
		t.Error(err)
	}
	changed := signed
	changed.Payload = []byte("another")
	for _, c := range []struct {
		signed Signed
		at     string
		want   string
	}{
		{changed, "2024-06-01", "that is not valid"},
		{g.sign("20240601T000000", "mallory@example.org", "payload"), "2024-06-01", "which is not listed"},
		{signed, "2025-06-01", "which is not valid on 2025-06-01"}, // dated back
		{g.sign("20240601T000000", "alice@example.org", "payload", "--digest-algo", "SHA1"), "2024-06-01", "insecure"},
	} {
		if _, err := keys.Verify(c.signed, day(c.at)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not %q", err, c.want)
		}
	}
	binary, err := ReadKeys(File{Name: "ring", Content: g.run("20240102T000000", "", "--export", "alice@example.org")}, File{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := binary.Verify(signed, day("2024-06-01")); err != nil {
		t.Errorf("a keyring that is not armored: %v", err)
	}
}

// TestOpenPGPRevoked: who revoked a key does not sign any more.
func TestOpenPGPRevoked(t *testing.T) {
	g := newGnupg(t)
	g.run("20240101T000000", "", "--quick-generate-key", "alice@example.org", "ed25519", "sign", "never")
	signed := g.sign("20240601T000000", "alice@example.org", "payload")
	made, err := filepath.Glob(filepath.Join(g.dir, "openpgp-revocs.d", "*.rev"))
	if err != nil || len(made) != 1 {
		t.Fatalf("revocations: %v, %v", made, err)
	}
	text, err := os.ReadFile(made[0])
	if err != nil {
		t.Fatal(err)
	}
	g.run("20240301T000000", strings.Replace(string(text), "\n:-----", "\n-----", 1), "--import")
	keys, err := ReadKeys(File{Name: "ring", Content: g.run("20240301T000000", "", "--armor", "--export")}, File{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Verify(signed, day("2024-06-01")); err == nil || !strings.Contains(err.Error(), "which is revoked") {
		t.Errorf("%v", err)
	}
}

// TestOpenPGPPrivate: a private key does not belong on hosts.
func TestOpenPGPPrivate(t *testing.T) {
	g := newGnupg(t)
	g.run("20240101T000000", "", "--quick-generate-key", "alice@example.org", "ed25519", "sign", "never")
	ring := g.run("20240101T000000", "", "--armor", "--export-secret-keys")
	_, err := ReadKeys(File{Name: "ring", Content: ring}, File{})
	if err == nil || err.Error() != "ring: holds a private key: list public keys only (gpg --export --armor)" {
		t.Error(err)
	}
}
