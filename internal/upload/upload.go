// Package upload is how files are put to web servers that keep them: logs of failed runs, backups of the datastore.
package upload

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// Client does what is asked and nothing else: a redirect, which it does not follow, would hand the headers on to
// another server. It believes servers whose certificate an authority in the file ca signed; nothing: one of the host.
func Client(ca string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no certificate", ca)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: stay}, nil
}

// WithoutURL is the error of a request without the URL, which it quotes as a whole and which may hold a secret.
func WithoutURL(err error) error {
	if whole, ok := errors.AsType[*url.Error](err); ok {
		return whole.Err
	}
	return err
}

// SetHeaders sets the headers that a file has now, one a line: "Name: value". Its lines that begin with # say nothing.
// Others must not read it. An error names the file and the line, never what is in it.
func SetHeaders(header http.Header, file string) error {
	text, err := gitremote.ReadSecret(file)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !headerName.MatchString(name) {
			return fmt.Errorf("%s:%d is no header: write it as Name: value", file, n)
		}
		header.Set(name, strings.TrimSpace(value))
	}
	return lines.Err()
}

var headerName = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
