package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
)

// maxAnswer is how much of an answer's body is kept.
const maxAnswer = 1 << 20

// exchange sends the request and reads the answer.
func (a *Request) exchange(ctx context.Context, h *apply.Host) (apply.Output, error) {
	req, err := a.request(ctx, h)
	if err != nil {
		return apply.Output{}, err
	}
	client, err := a.client(h)
	if err != nil {
		return apply.Output{}, err
	}
	answer, err := client.Do(req)
	if err != nil {
		return apply.Output{}, err
	}
	defer answer.Body.Close()
	return a.read(answer)
}

// request is what is sent, with the secrets as they are in their file now.
func (a *Request) request(ctx context.Context, h *apply.Host) (*http.Request, error) {
	var body io.Reader
	if len(a.body) > 0 {
		body = bytes.NewReader(a.body)
	}
	req, err := http.NewRequestWithContext(ctx, a.Method, a.URL, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "pullet")
	if a.JSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range a.Headers {
		req.Header.Set(name, value)
	}
	if a.HeadersFile != "" {
		if err := a.secretHeaders(h, req.Header); err != nil {
			return nil, fmt.Errorf("headersFile: %w", err)
		}
	}
	if host := req.Header.Get("Host"); host != "" { // it is no header to the library
		req.Host = host
		req.Header.Del("Host")
	}
	return req, nil
}

// secretHeaders adds those of the file. No message shows a value.
func (a *Request) secretHeaders(h *apply.Host, to http.Header) error {
	data, err := readSecret(h, a.HeadersFile)
	if err != nil {
		return err
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || checkHeader(name, value) != nil {
			return fmt.Errorf("%s: line %d is no header: write Name: value", a.HeadersFile, number)
		}
		to.Set(name, strings.TrimSpace(value))
	}
	return nil
}

// client trusts and shows what the parameters say, and nothing of the agent's own environment.
func (a *Request) client(h *apply.Host) (*http.Client, error) {
	trust, err := a.tls(h)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true, DisableKeepAlives: true},
		CheckRedirect: a.redirect,
	}, nil
}

func (a *Request) tls(h *apply.Host) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		data, err := readHostFile(h, a.CA)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("ca: %s holds no certificate", a.CA)
		}
	}
	if a.Cert == "" {
		return c, nil
	}
	cert, err := readHostFile(h, a.Cert)
	if err != nil {
		return nil, fmt.Errorf("cert: %w", err)
	}
	key, err := readSecret(h, a.Key)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("cert and key: %w", err)
	}
	c.Certificates = []tls.Certificate{pair}
	return c, nil
}

// redirect decides whether a redirect is followed. What was sent is for the server that the step names.
func (a *Request) redirect(next *http.Request, before []*http.Request) error {
	first := before[0]
	switch {
	case a.Redirects == 0:
		return http.ErrUseLastResponse
	case len(before) > a.Redirects:
		return fmt.Errorf("it was redirected more than %d times, the last time to %s", a.Redirects, safetext.URL(next.URL))
	case first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("it was redirected from https to %s, where everybody can read it", safetext.URL(next.URL))
	case sameServer(first, next):
		return nil
	case next.Body != nil || next.ContentLength != 0:
		return fmt.Errorf(
			"it was redirected to another server, which does not get the body: if that is intended, write its url, %s",
			safetext.URL(next.URL),
		)
	}
	next.Header = http.Header{"User-Agent": {"pullet"}}
	return nil
}

func sameServer(a, b *http.Request) bool {
	return a.URL.Scheme == b.URL.Scheme && strings.EqualFold(a.URL.Host, b.URL.Host) ||
		strings.EqualFold(a.URL.Hostname(), b.URL.Hostname()) && a.URL.Port() == "" && b.URL.Port() == ""
}

// read takes what is kept of the answer.
func (a *Request) read(answer *http.Response) (apply.Output, error) {
	out := apply.Output{ExitCode: answer.StatusCode, State: http.StatusText(answer.StatusCode)}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err != nil {
		return out, fmt.Errorf("the answer broke off: %w", err)
	}
	out.StdOut = string(data[:min(len(data), maxAnswer)])
	if len(data) > maxAnswer {
		out.StdOut += "\n[the rest is left out]\n"
	} else if isJSON(answer.Header.Get("Content-Type")) && json.Unmarshal(data, &out.Data) != nil {
		out.Data = nil
	}
	if a.expected(answer.StatusCode) {
		return out, nil
	}
	return out, errors.New(
		strings.TrimSuffix(
			fmt.Sprintf("the answer is %d %s: %s", answer.StatusCode, out.State, firstWords(out.StdOut)),
			": ",
		),
	)
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// firstWords is the beginning of a text in one line, for a message.
func firstWords(text string) string {
	const most = 200
	words := strings.Join(strings.Fields(text[:min(len(text), 4*most)]), " ")
	if len(words) > most {
		return words[:most] + "..."
	}
	return words
}
