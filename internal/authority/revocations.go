package authority

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"math/big"
	"time"
)

// Revocations makes the list of certificates that count no more, by their serial numbers in hexadecimal, as servers
// read it: a CRL of RFC 5280 in DER. It is meant to be written anew with each change, so it never ends.
func (a *Authority) Revocations(serials []string, now time.Time) ([]byte, error) {
	list := &x509.RevocationList{
		Number:     big.NewInt(now.UnixNano()),
		ThisUpdate: now,
		NextUpdate: a.certificates[0].NotAfter,
	}
	for _, text := range serials {
		number, ok := new(big.Int).SetString(text, 16)
		if !ok {
			return nil, fmt.Errorf("%q is no serial number of a certificate", text)
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: number, RevocationTime: now})
	}
	return x509.CreateRevocationList(rand.Reader, list, a.certificates[0], a.key)
}

// Revoked are the serial numbers, in hexadecimal, in a list that Revocations made. It does not ask who signed the list.
func Revoked(list []byte) (serials []string, err error) {
	parsed, err := x509.ParseRevocationList(list)
	if err != nil {
		return nil, fmt.Errorf("it is no list of certificates that count no more: %w", err)
	}
	for _, one := range parsed.RevokedCertificateEntries {
		serials = append(serials, one.SerialNumber.Text(16))
	}
	return serials, nil
}
