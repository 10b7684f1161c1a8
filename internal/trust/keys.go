package trust

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

// Keys are those that may sign. They do not change, and may be used from several goroutines.
type Keys struct {
	pgp pgpKeys
	ssh []allowedSigner
}

// Signer made a signature.
type Signer struct {
	Key   string   // SHA256:... of an SSH key, the fingerprint of an OpenPGP key
	Names []string // the principals of an SSH key; the addresses and the fingerprint of an OpenPGP key
}

// String is the signer for messages.
func (s Signer) String() string {
	if len(s.Names) == 0 || s.Names[0] == s.Key {
		return "key " + s.Key
	}
	return s.Names[0] + " (key " + s.Key + ")"
}

// SignatureError says why a signature is not accepted.
type SignatureError struct {
	Key string // that made it, or says so; "" where that is not known
	Why string // the end of a sentence about what was signed, such as "has no signature"

	Unlisted bool // nobody listed the key
}

func (e *SignatureError) Error() string { return e.Why }

// maxSignature bounds what is decoded of a signature. An RSA key of 16,384 bits makes one of 3 KiB.
const maxSignature = 64 << 10

// ReadKeys reads a keyring, armored or not, and a file of allowed signers. Each may be empty; it is an error where
// there is no key in either.
func ReadKeys(keyring, allowed File) (*Keys, error) {
	k := &Keys{}
	var errs [2]error
	k.pgp, errs[0] = readKeyring(keyring)
	k.ssh, errs[1] = readAllowedSigners(allowed)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if len(k.pgp)+len(k.ssh) == 0 {
		return nil, errors.New("no key is listed")
	}
	return k, nil
}

// File is the content of a file, with the name that errors give it.
type File struct {
	Name    string
	Content []byte
}

// LineError is a mistake in a list of keys or rules.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

func (e *LineError) Unwrap() error { return e.Err }

// Verify says who made the signature of a git object. The key has to be valid at a time, and when the signature was
// made. The error is a *SignatureError.
func (k *Keys) Verify(s Signed, at time.Time) (Signer, error) {
	switch {
	case len(bytes.TrimSpace(s.Signature)) == 0:
		return Signer{}, &SignatureError{Why: "has no signature"}
	case len(s.Signature) > maxSignature:
		return Signer{}, &SignatureError{Why: fmt.Sprintf("has a signature of more than %d KiB", maxSignature>>10)}
	case bytes.HasPrefix(s.Signature, []byte(pgpArmor)):
		return k.pgp.verify(s, at)
	case bytes.HasPrefix(s.Signature, []byte(sshArmor)):
		return verifySSH(k.ssh, s, gitNamespace, at)
	}
	return Signer{}, &SignatureError{Why: "has a signature that is neither OpenPGP nor SSH"}
}
