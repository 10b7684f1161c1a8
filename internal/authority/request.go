package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

const (
	maxRequest         = 16 << 10   // bytes
	minRSA, maxRSA     = 2048, 8192 // bits; more take seconds to check
	requestNotReadable = "the request for a certificate cannot be read"
)

// requestedKey is the public key of a request whose sender has the private one.
func requestedKey(text []byte) (crypto.PublicKey, error) {
	if len(text) > maxRequest {
		return nil, refusal("the request for a certificate has %d bytes: at most %d are read", len(text), maxRequest)
	}
	blocks, err := readBlocks(bytes.TrimSpace(text))
	if err != nil || len(blocks) != 1 || blocks[0].Type != requestType {
		return nil, refusal(requestNotReadable + ": it is not one request in PEM")
	}
	request, err := x509.ParseCertificateRequest(blocks[0].Bytes)
	if err != nil {
		return nil, refusal(requestNotReadable+": %v", err)
	}
	if why := unfit(request.PublicKey); why != "" { // first: the signature of a huge key takes long to check
		return nil, refusal("the request for a certificate has %s: use ECDSA on P-256 or P-384, Ed25519, "+
			"or RSA of %d to %d bits", why, minRSA, maxRSA)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, refusal("the request for a certificate is not signed with its own key: %v", err)
	}
	return request.PublicKey, nil
}

// unfit says what is wrong with a key, if anything is.
func unfit(key crypto.PublicKey) string {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
			return "a key on " + key.Curve.Params().Name
		}
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSA || bits > maxRSA {
			return fmt.Sprintf("an RSA key of %d bits", bits)
		}
	case ed25519.PublicKey:
	default:
		return "a key of an unknown kind"
	}
	return ""
}
