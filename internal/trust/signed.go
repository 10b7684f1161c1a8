package trust

import (
	"bytes"
	"errors"
)

// Signed is a git object taken apart.
type Signed struct {
	Payload   []byte // what the signature is over
	Signature []byte // armored; empty: nobody signed
}

const (
	pgpArmor = "-----BEGIN PGP SIGNATURE-----"
	sshArmor = "-----BEGIN SSH SIGNATURE-----"
)

// signatureHeader has the signature of a commit; further lines of it begin with a space.
const signatureHeader = "gpgsig "

// errTwoSignatures is a commit that git would not have made.
var errTwoSignatures = errors.New("has two signatures")

// Commit takes a commit apart, given the content of its object. Everything but the signature is signed, so nothing that
// decides what a commit is can be added to a signed one.
func Commit(object []byte) (s Signed, err error) {
	header, message := object, []byte(nil)
	if end := bytes.Index(append([]byte("\n"), object...), []byte("\n\n")); end >= 0 {
		header, message = object[:end], object[end:]
	}
	within := false
	for line := range bytes.Lines(header) {
		value, begins := bytes.CutPrefix(line, []byte(signatureHeader))
		switch {
		case begins && len(s.Signature) > 0:
			return s, errTwoSignatures
		case begins:
			s.Signature = append(s.Signature, value...)
		case within && line[0] == ' ':
			s.Signature = append(s.Signature, line[1:]...)
			continue
		default:
			s.Payload = append(s.Payload, line...)
		}
		within = begins
	}
	s.Payload = append(s.Payload, message...)
	return s, nil
}

// Tag takes an annotated tag apart, given the content of its object. Its signature is the end of its message.
func Tag(object []byte) (s Signed) {
	at, offset := len(object), 0
	for line := range bytes.Lines(object) {
		if bytes.HasPrefix(line, []byte(pgpArmor)) || bytes.HasPrefix(line, []byte(sshArmor)) {
			at = offset
		}
		offset += len(line)
	}
	return Signed{Payload: object[:at], Signature: object[at:]}
}
