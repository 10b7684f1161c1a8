package authority

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	maxPEM      = 64 << 10 // bytes of a text in PEM
	keyType     = "PRIVATE KEY"
	certType    = "CERTIFICATE"
	requestType = "CERTIFICATE REQUEST"
)

// readBlocks reads the blocks of a text. One that is damaged, which pem.Decode passes over, is an error.
func readBlocks(text []byte) (blocks []*pem.Block, err error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("the text has %d bytes: at most %d are read", len(text), maxPEM)
	}
	begun := bytes.Count(text, []byte("-----BEGIN"))
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		blocks, text = append(blocks, block), rest
	}
	if len(blocks) != begun || len(bytes.TrimSpace(text)) > 0 {
		return nil, errors.New("the text is damaged: a part of it is not PEM")
	}
	return blocks, nil
}

func encodeKey(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // a key on P-256 has a form in PKCS #8
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: der})
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certType, Bytes: der})
}
