package trust

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
	"filippo.io/age/armor"
	"golang.org/x/crypto/ssh"
)

// maxSecret bounds an encrypted file.
const maxSecret = 16 << 20

// ErrNotRecipient says that none of the identities is one that the file is encrypted for.
var ErrNotRecipient = errors.New("it is not encrypted for a key of this host or user")

// Identity is a private key that opens what is encrypted for its public half.
type Identity struct {
	Recipient Recipient // the public half
	key       age.Identity
	signer    ssh.Signer // nil: it cannot sign
}

// ParseIdentities reads private keys: a file of age-keygen, or an OpenSSH key. An OpenSSH key with a passphrase asks
// for it when it is used; where passphrase is nil, it is refused.
func ParseIdentities(f File, passphrase func() ([]byte, error)) ([]Identity, error) {
	if bytes.Contains(f.Content, []byte("PRIVATE KEY-----")) {
		id, err := parseSSHIdentity(f, passphrase)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		return []Identity{id}, nil
	}
	parsed, err := age.ParseIdentities(bytes.NewReader(f.Content))
	if err != nil {
		return nil, fmt.Errorf("%s: no private key of age or OpenSSH", f.Name)
	}
	var out []Identity
	for _, key := range parsed {
		public, ok := key.(interface{ Recipient() *age.X25519Recipient })
		text := ""
		if ok {
			text = public.Recipient().String()
		} else if hybrid, ok := key.(interface{ Recipient() *age.HybridRecipient }); ok {
			text = hybrid.Recipient().String()
		}
		to, err := parseAgeRecipient(text)
		if err != nil {
			return nil, fmt.Errorf("%s: a key of a kind that is not supported", f.Name)
		}
		out = append(out, Identity{Recipient: to, key: key})
	}
	return out, nil
}

func parseSSHIdentity(f File, passphrase func() ([]byte, error)) (Identity, error) {
	key, err := agessh.ParseIdentity(f.Content)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && locked.PublicKey != nil {
		if passphrase == nil {
			return Identity{}, errors.New("the key has a passphrase, which nobody can type here: use one without")
		}
		to, err := ParseRecipient(string(ssh.MarshalAuthorizedKey(locked.PublicKey)))
		if err != nil {
			return Identity{}, err
		}
		key, err := agessh.NewEncryptedSSHIdentity(locked.PublicKey, f.Content, passphrase)
		return Identity{Recipient: to, key: key}, err
	}
	if err != nil {
		return Identity{}, errors.New("only keys of the kinds ssh-ed25519 and ssh-rsa open secrets")
	}
	signer, err := ssh.ParsePrivateKey(f.Content)
	if err != nil {
		return Identity{}, err
	}
	to, err := ParseRecipient(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return Identity{to, key, signer}, err
}

// Seal encrypts a text for all recipients, in the armored form of age: lines of text, which git can compare.
func Seal(text []byte, to []Recipient) ([]byte, error) {
	var out bytes.Buffer
	lines := armor.NewWriter(&out)
	if err := sealTo(lines, text, to); err != nil {
		return nil, err
	}
	err := lines.Close()
	return out.Bytes(), err
}

// SealBinary is Seal in the binary form of age.
func SealBinary(text []byte, to []Recipient) ([]byte, error) {
	var out bytes.Buffer
	err := sealTo(&out, text, to)
	return out.Bytes(), err
}

func sealTo(out io.Writer, text []byte, to []Recipient) error {
	w, err := SealStream(out, to)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return errors.Join(err, w.Close())
}

// Unseal decrypts a file of age, armored or not, or a YAML file of SOPS with age recipients. The error is
// ErrNotRecipient where none of the identities is meant.
func Unseal(sealed []byte, ids []Identity) ([]byte, error) {
	if len(sealed) > maxSecret {
		return nil, fmt.Errorf("larger than %d MiB", maxSecret>>20)
	}
	var keys []age.Identity
	for _, id := range ids {
		keys = append(keys, id.key)
	}
	if len(keys) == 0 {
		return nil, ErrNotRecipient
	}
	if isSOPS(sealed) {
		return openSOPS(sealed, keys)
	}
	r, err := age.Decrypt(unarmored(sealed), keys...)
	var stranger *age.NoIdentityMatchError
	switch {
	case errors.As(err, &stranger):
		return nil, ErrNotRecipient
	case err != nil:
		return nil, damaged(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, damaged(err)
	}
	return text, nil
}

// damagedError says that a file is none of age, or was changed after it was encrypted.
type damagedError struct{ Err error }

func (e *damagedError) Error() string {
	return "not a file of age, or changed after it was encrypted"
}
func (e *damagedError) Unwrap() error { return e.Err }

func damaged(err error) error { return &damagedError{err} }

// unarmored is the binary form of an encrypted file.
func unarmored(sealed []byte) io.Reader {
	if bytes.HasPrefix(bytes.TrimLeft(sealed, " \t\r\n"), []byte(armor.Header)) {
		return armor.NewReader(bytes.NewReader(sealed))
	}
	return bytes.NewReader(sealed)
}

// maxReaders bounds the recipients of a file.
const maxReaders = 10_000

// ReadersOf reads the header of an encrypted file, which needs no key.
func ReadersOf(sealed []byte) (Readers, error) {
	if len(sealed) > maxSecret {
		return nil, fmt.Errorf("larger than %d MiB", maxSecret>>20)
	}
	header, err := age.ExtractHeader(unarmored(sealed))
	if err != nil {
		return nil, damaged(err)
	}
	var out Readers
	lines := bufio.NewScanner(bytes.NewReader(header))
	for lines.Scan() && len(out) < maxReaders {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "->" {
			continue
		}
		one := stanza{kind: fields[1]}
		if strings.HasPrefix(one.kind, "ssh-") && len(fields) > 2 {
			one.tag = fields[2]
		} else if strings.HasSuffix(one.kind, "-grease") {
			one.kind = "grease"
		}
		out = append(out, one)
	}
	return out, lines.Err()
}
