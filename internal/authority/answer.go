package authority

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

const (
	joinPath  = "/join"
	maxAsked  = 64 << 10 // bytes
	maxAnswer = 4 << 20  // bytes
)

// Asked is what a new host asks at the door.
type Asked struct {
	Token   string `json:"token"`
	Request string `json:"request"` // for a certificate, in PEM: see the function Request
}

// Answer is what a new host gets: who it is, and all that it needs to take part in the fleet.
type Answer struct {
	Name          string            `json:"name"`
	Certificate   string            `json:"certificate"` // the chain that Issue made
	Bundle        string            `json:"bundle"`      // of the authority
	Endpoints     []string          `json:"endpoints"`   // of the datastore
	Fleet         string            `json:"fleet"`
	Configuration string            `json:"configuration"` // YAML
	Files         map[string][]byte `json:"files"`         // further ones, by a base name that safetext.Name knows
}

// refused is what the door says when it has no answer.
type refused struct {
	Error string `json:"error"`
}

// decode reads one value of JSON, and nothing beside it, from a text of so many bytes at most. A field that v does not
// have is an error.
func decode(r io.Reader, most int64, v any) error {
	text, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return fmt.Errorf("it cannot be read to its end: %w", err)
	}
	if int64(len(text)) > most {
		return fmt.Errorf("it has more than %d bytes", most)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("it is not the JSON that is expected: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("it is not the JSON that is expected: something follows it")
	}
	return nil
}

// check says why a host may not use an answer: it is not for what it asked, or not of the server's fleet.
func (a Answer) check(request string, server Subject, pin string, now time.Time) error {
	believed, err := readBundle([]byte(a.Bundle))
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(believed, func(cert *x509.Certificate) bool { return fingerprint(cert) == pin }) {
		return errors.New("its bundle is without the authority that the invitation names")
	}
	cert, err := firstCertificate([]byte(a.Certificate))
	if err != nil {
		return fmt.Errorf("its certificate: %w", err)
	}
	s, err := believe(cert, believed, x509.ExtKeyUsageClientAuth, "", now)
	if err != nil {
		return err
	}
	if s.Name != a.Name || s.Fleet != a.Fleet || s.Fleet != server.Fleet {
		return fmt.Errorf("it is for %s of the fleet %s, its certificate for %s of %s, and the server is of %s",
			safetext.Line(a.Name, maxCommonName), safetext.Line(a.Fleet, maxCommonName), s.Name, s.Fleet, server.Fleet)
	}
	if err := sameKey(cert, request); err != nil {
		return err
	}
	return a.checkTexts()
}

// sameKey says whether a certificate is for the key of a request.
func sameKey(cert *x509.Certificate, request string) error {
	wanted, err := requestedKey([]byte(request))
	if err != nil {
		return err
	}
	if key, ok := wanted.(interface{ Equal(crypto.PublicKey) bool }); !ok || !key.Equal(cert.PublicKey) {
		return errors.New("its certificate is for a key that this host did not ask for")
	}
	return nil
}

// checkTexts holds what becomes names of files and lines of a configuration to its form.
func (a Answer) checkTexts() error {
	for name := range a.Files {
		if !safetext.Name(name) {
			return fmt.Errorf("its file %q is not named by letters, digits, dots, dashes and underscores",
				safetext.Line(name, 100))
		}
	}
	for _, endpoint := range a.Endpoints {
		if endpoint == "" || safetext.Obeyed(endpoint) {
			return fmt.Errorf("its endpoint %q has characters that no address has", safetext.Line(endpoint, 100))
		}
	}
	return nil
}
