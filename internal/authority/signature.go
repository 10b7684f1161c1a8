package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxSignature is how long a signature may be, in bytes.
const maxSignature = 64 << 10

// signature is a signature as others get it.
type signature struct {
	Certificate string `json:"certificate"` // the signer's, in PEM, with what follows it in the credentials
	Signature   []byte `json:"signature"`
}

// Sign signs a message with a file of credentials: its key, and the certificate that says whose key that is. The
// purpose is one of the caller's own words: a signature for one purpose is not valid for another one. The result is
// JSON. Who has it can show it again: a message says itself for what and until when it counts.
func Sign(credentials []byte, purpose string, message []byte) ([]byte, error) {
	digest, err := digestOf(purpose, message)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(credentials, credentials)
	if err != nil {
		return nil, fmt.Errorf("read the credentials to sign with: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the credentials cannot sign")
	}
	signed, err := signer.Sign(rand.Reader, digest, optionsOf(signer.Public()))
	if err != nil {
		return nil, fmt.Errorf("sign for %s: %w", purpose, err)
	}
	var chain bytes.Buffer
	for _, der := range pair.Certificate {
		chain.Write(encodeCertificate(der))
	}
	return json.Marshal(signature{Certificate: chain.String(), Signature: signed})
}

// Verify says who signed a message for a purpose: the holder of a certificate that an authority of the bundle signed,
// for clients, and that is valid now. Whether the signer may do what the message says is the caller's to decide, by the
// Kind.
func Verify(bundle []byte, purpose string, message, signed []byte, now time.Time) (Subject, error) {
	s, err := verify(bundle, purpose, message, signed, now)
	if err != nil {
		return Subject{}, fmt.Errorf("check the signature for %s: %w", purpose, err)
	}
	return s, nil
}

func verify(bundle []byte, purpose string, message, signed []byte, now time.Time) (Subject, error) {
	digest, err := digestOf(purpose, message)
	if err != nil {
		return Subject{}, err
	}
	var read signature
	if err := decode(bytes.NewReader(signed), maxSignature, &read); err != nil {
		return Subject{}, err
	}
	cert, err := firstCertificate([]byte(read.Certificate))
	if err != nil {
		return Subject{}, fmt.Errorf("the signer's certificate: %w", err)
	}
	believed, err := readBundle(bundle)
	if err != nil {
		return Subject{}, err
	}
	s, err := believe(cert, believed, x509.ExtKeyUsageClientAuth, "", now)
	if err != nil {
		return Subject{}, err
	}
	if !signedBy(cert.PublicKey, digest, read.Signature) {
		return Subject{}, fmt.Errorf("%s %s did not sign this: the message is another one, or for another purpose",
			s.Kind, s.Name)
	}
	return s, nil
}

// digestOf is what is signed: the purpose, which ends before the message begins, keeps purposes apart.
func digestOf(purpose string, message []byte) ([]byte, error) {
	if purpose == "" || strings.ContainsRune(purpose, 0) {
		return nil, fmt.Errorf("the purpose %q: it has to be a word", purpose)
	}
	digest := sha256.New()
	digest.Write([]byte("pullet-signature-v1\x00" + purpose + "\x00"))
	digest.Write(message)
	return digest.Sum(nil), nil
}

// optionsOf is how a key signs a digest: Ed25519 takes it as its message.
func optionsOf(key crypto.PublicKey) crypto.SignerOpts {
	switch key.(type) {
	case ed25519.PublicKey:
		return crypto.Hash(0)
	case *rsa.PublicKey:
		return &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	}
	return crypto.SHA256
}

func signedBy(key crypto.PublicKey, digest, signed []byte) bool {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(key, digest, signed)
	case ed25519.PublicKey:
		return ed25519.Verify(key, digest, signed)
	case *rsa.PublicKey:
		options := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		return rsa.VerifyPSS(key, crypto.SHA256, digest, signed, options) == nil
	}
	return false
}
