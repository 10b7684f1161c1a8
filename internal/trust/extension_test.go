package trust

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// TestExtensionSignatures: who may sign an extension, and what is said of a signature that does not count.
func TestExtensionSignatures(t *testing.T) {
	key, line := newKey(t)
	stranger, _ := newKey(t)
	const text = "acme.it 4 sha256:00\n"
	good := sign(t, key, text, "pullet-extension")
	changed := good
	changed.Payload = []byte("acme.it 5 sha256:00\n")
	for _, c := range []struct {
		allowed string
		signed  Signed
		want    string // of the error; "" is none
	}{
		{"ada " + line, good, ""},
		{`ada namespaces="pullet-extension" ` + line, good, ""},
		{`ada namespaces="git,pullet-*" ` + line, good, ""},
		{`ada namespaces="git" ` + line, good, `which is not listed for the namespace "pullet-extension"`},
		{`ada valid-before="20240601" ` + line, good, "which is not valid on 2024-06-01"},
		{`ada valid-after="20240602" ` + line, good, "which is not valid on 2024-06-01"},
		{"ada " + line, changed, "has a signature of key " + ssh.FingerprintSHA256(key.PublicKey()) + " that is not valid"},
		{"ada " + line, sign(t, stranger, text, "pullet-extension"), "which is not listed"},
		{"ada " + line, sign(t, key, text, "git"), `is signed for the namespace "git": sign it with ssh-keygen -Y sign -n pullet-extension`},
		{"ada " + line, sign(t, key, text, "pullet-result"), `is signed for the namespace "pullet-result"`},
		{"ada " + line, Signed{Payload: []byte(text)}, "has a signature that is not of SSH: make one with ssh-keygen"},
		{"ada " + line, Signed{Payload: []byte(text), Signature: []byte(pgpArmor)}, "has a signature that is not of SSH"},
		{"ada " + line, Signed{Signature: []byte(sshArmor + "\nAAAA\n")}, "has an SSH signature that cannot be read"},
		{"ada " + line, Signed{Signature: append([]byte(sshArmor), bytes.Repeat([]byte("A"), maxSignature)...)}, "more than 64 KiB"},
	} {
		keys, err := ReadKeys(File{}, File{Name: "allowed", Content: []byte(c.allowed)})
		if err != nil {
			t.Fatal(err)
		}
		who, err := keys.VerifyExtension(c.signed, noon)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && who.Names[0] != "ada" {
			t.Errorf("%s: %v, %v, want %q", c.allowed[:20], who, err, c.want)
		}
	}
	if _, err := (&Keys{ssh: nil}).VerifyExtension(good, noon); err == nil {
		t.Error("nobody is listed, and it is accepted")
	}
}

// TestExtensionSignedBySSHKeygen: a signature over SHA-512 or SHA-256, by each kind of key that ssh-keygen makes.
func TestExtensionSignedBySSHKeygen(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "it.signed")
	if err := os.WriteFile(text, []byte("acme.it 4 sha256:00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ed25519", "rsa", "ecdsa"} {
		for _, hash := range []string{"sha256", "sha512"} {
			key := filepath.Join(dir, kind+hash)
			for _, args := range [][]string{
				{"-q", "-t", kind, "-N", "", "-C", "", "-f", key},
				{"-q", "-Y", "sign", "-O", "hashalg=" + hash, "-n", "pullet-extension", "-f", key, text},
			} {
				if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
					t.Fatalf("%q: %v\n%s", args, err, out)
				}
			}
			public, err1 := os.ReadFile(key + ".pub")
			signature, err2 := os.ReadFile(text + ".sig")
			keys, err3 := ReadKeys(File{}, File{Content: append([]byte("ada "), public...)})
			if err := errors.Join(err1, err2, err3, os.Remove(text+".sig")); err != nil {
				t.Fatal(err)
			}
			if _, err := keys.VerifyExtension(Signed{[]byte("acme.it 4 sha256:00\n"), signature}, noon); err != nil {
				t.Errorf("%s over %s: %v", kind, hash, err)
			}
		}
	}
}

// FuzzExtensionSignature: whatever stands in the place of a signature, nothing that was not signed is accepted.
func FuzzExtensionSignature(f *testing.F) {
	key, line := newKey(f)
	keys, err := ReadKeys(File{}, File{Content: []byte("ada " + line)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{})
	f.Add([]byte(sshArmor + "\nAAAA\n-----END SSH SIGNATURE-----\n"))
	f.Add(sign(f, key, "text", "pullet-extension").Signature)
	f.Add(sign(f, key, "text", "git").Signature)
	f.Fuzz(func(t *testing.T, signature []byte) {
		if who, err := keys.VerifyExtension(Signed{[]byte("never signed"), signature}, noon); err == nil {
			t.Errorf("%v signed it", who)
		}
	})
}
