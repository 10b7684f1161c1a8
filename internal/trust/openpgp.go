package trust

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// pgpKeys is a keyring.
type pgpKeys openpgp.EntityList

// readKeyring reads an OpenPGP keyring, as gpg --export writes it, armored or not.
func readKeyring(f File) (pgpKeys, error) {
	if len(bytes.TrimSpace(f.Content)) == 0 {
		return nil, nil
	}
	read := openpgp.ReadKeyRing
	if bytes.Contains(f.Content, []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(f.Content))
	if err != nil {
		return nil, fmt.Errorf("%s: not an OpenPGP keyring: %w", f.Name, err)
	}
	if slices.ContainsFunc(keys, func(e *openpgp.Entity) bool { return e.PrivateKey != nil }) {
		return nil, fmt.Errorf("%s: holds a private key: list public keys only (gpg --export --armor)", f.Name)
	}
	return pgpKeys(keys), nil
}

// verify says which key of the ring made a signature. RFC 9580 says what one is; keys and hashes that it deprecates are
// refused.
func (k pgpKeys) verify(s Signed, at time.Time) (Signer, error) {
	block, err := armor.Decode(bytes.NewReader(s.Signature))
	if err != nil {
		return Signer{}, &SignatureError{Why: "has an OpenPGP signature that cannot be read: " + err.Error()}
	}
	id, made := issuer(s)
	if made.After(at) { // somebody typed a passphrase meanwhile
		at = made
	}
	config := &packet.Config{Time: func() time.Time { return at }}
	sig, entity, err := openpgp.VerifyDetachedSignature(
		openpgp.EntityList(k),
		bytes.NewReader(s.Payload),
		block.Body,
		config,
	)
	if err != nil {
		return Signer{}, refused(id, at, err)
	}
	// The library looks at what held when the signature was made, which is for the signer to write.
	if _, valid := entity.SigningKeyById(at, *sig.IssuerKeyId, config); !valid {
		return Signer{}, &SignatureError{Key: fingerprint(entity), Why: notValidAt(fingerprint(entity), at)}
	}
	return Signer{Key: fingerprint(entity), Names: namesOf(entity)}, nil
}

// refused says in words what is wrong with a signature.
func refused(id string, at time.Time, err error) error {
	e := &SignatureError{Key: id, Why: fmt.Sprintf("has a signature of key %s that is not valid: %v", id, err)}
	switch {
	case id == "":
		e.Why = fmt.Sprintf("has an OpenPGP signature that is not valid: %v", err)
	case errors.Is(err, pgperrors.ErrUnknownIssuer):
		e.Why, e.Unlisted = "is signed by key "+id+", which is not listed", true
	case errors.Is(err, pgperrors.ErrKeyExpired), errors.Is(err, pgperrors.ErrSignatureExpired):
		e.Why = notValidAt(id, at)
	case errors.Is(err, pgperrors.ErrKeyRevoked):
		e.Why = "is signed by key " + id + ", which is revoked"
	}
	return e
}

// issuer is the id of the key that a signature names, and when it says that it was made; "" where it names none.
func issuer(s Signed) (id string, made time.Time) {
	block, err := armor.Decode(bytes.NewReader(s.Signature))
	if err != nil {
		return "", made
	}
	p, err := packet.Read(block.Body)
	if sig, ok := p.(*packet.Signature); err == nil && ok && sig.IssuerKeyId != nil {
		return fmt.Sprintf("%016X", *sig.IssuerKeyId), sig.CreationTime
	}
	return "", made
}

func fingerprint(e *openpgp.Entity) string { return fmt.Sprintf("%X", e.PrimaryKey.Fingerprint) }

// namesOf are the addresses of a key's user ids, and its fingerprint.
func namesOf(e *openpgp.Entity) (names []string) {
	for _, id := range e.Identities {
		if id.UserId != nil && id.UserId.Email != "" && !slices.Contains(names, strings.ToLower(id.UserId.Email)) {
			names = append(names, strings.ToLower(id.UserId.Email))
		}
	}
	slices.Sort(names)
	return append(names, fingerprint(e))
}

// notValidAt is why a key does not count.
func notValidAt(key string, at time.Time) string {
	return fmt.Sprintf("is signed by key %s, which is not valid on %s", key, at.UTC().Format(time.DateOnly))
}
