// Package sink sends events out of the fleet: what the log of events has, to receivers that the repository names. The
// elected reactor sends, to each of them in the order of the log, at least once: how far it is stands on record, and
// who is the reactor next goes on there. The log itself is the spool.
package sink

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/internal/upload"
	"github.com/pullet/pullet/state"
)

// Sink is a receiver.
type Sink struct {
	Name    string
	Type    string // CloudEvents, Slack or JSON
	URL     string // "": it stands in URLFile
	URLFile string
	Batch   int // CloudEvents at once; 0: one, which is no list
	// TokenFile and SignatureFile hold secrets; "": there is none.
	TokenFile, SignatureFile string
	Takes                    func(event string) bool // is it sent there?
	// Body is the body for an event, by a template; false: there is none.
	Body func(event map[string]any) ([]byte, bool, error)
	// CheckURL says what is wrong with a url.
	CheckURL func(url string) error
	// Secret reads a file that nobody else can read or write.
	Secret func(file string) ([]byte, error)
}

// The bounds of sending.
const (
	sendTime  = 10 * time.Second // a receiver has so long to take it
	onceTime  = 4 * time.Second  // and so long where a pull waits for it
	leastWait = time.Second      // until it is tried again, doubled each time
	mostWait  = 5 * time.Minute
	maxAnswer = 4 << 10 // bytes that are read of it, so that the connection can be used again
)

// refusedError says that the receiver does not want the events, now or later.
type refusedError struct{ error }

// laterError says when the receiver wants to be asked again.
type laterError struct {
	error
	after time.Duration
}

// send sends events to the sink. An error quotes nothing of the url and nothing of the answer.
func (s *Sink) send(
	ctx context.Context, client *http.Client, within time.Duration, fleet string, events []state.Happened,
) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	kind, body, err := s.body(fleet, events)
	if err != nil {
		return refusedError{err}
	}
	req, err := s.request(ctx, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", kind)
	answer, err := client.Do(req)
	if err != nil {
		return failed(err, within)
	}
	defer answer.Body.Close()
	err = judge(answer, time.Now())
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // it is judged
	return err
}

// failed is an error of a request as it may be shown: some quote the url, or what came in the place of an answer.
func failed(err error, within time.Duration) error {
	err = upload.WithoutURL(err)
	_, network := errors.AsType[*net.OpError](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", within)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the connection ended without an answer")
	case network, untrusted:
		return err
	}
	return errors.New("what answers does not speak HTTP as it should, or not with TLS")
}

// request has the secrets as their files have them now.
func (s *Sink) request(ctx context.Context, body []byte) (*http.Request, error) {
	to, err := s.address()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil { // it quotes the url
		return nil, errors.New("the url cannot be used")
	}
	req.Header.Set("User-Agent", "pullet")
	if s.TokenFile != "" {
		token, err := s.secret(s.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("tokenFile: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if s.SignatureFile != "" {
		key, err := s.secret(s.SignatureFile)
		if err != nil {
			return nil, fmt.Errorf("signatureFile: %w", err)
		}
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		req.Header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return req, nil
}

// address is the url.
func (s *Sink) address() (string, error) {
	if s.URLFile == "" {
		return s.URL, nil
	}
	to, err := s.secret(s.URLFile)
	if err == nil {
		err = s.CheckURL(to)
	}
	if err != nil {
		return "", fmt.Errorf("urlFile: %w", err)
	}
	return to, nil
}

// secret is the one line that a file has.
func (s *Sink) secret(file string) (string, error) {
	text, err := s.Secret(file)
	if err != nil {
		return "", err
	}
	line := strings.TrimSpace(string(text))
	if line == "" || safetext.Obeyed(line) {
		return "", fmt.Errorf("%s does not hold one line", file)
	}
	return line, nil
}

// host is the host of the url, which may be shown.
func (s *Sink) host() string {
	to, err := s.address()
	if err != nil {
		return ""
	}
	u, err := url.Parse(to)
	if err != nil {
		return ""
	}
	return u.Host
}

// judge says what an answer means for what was sent.
func judge(answer *http.Response, now time.Time) error {
	code := answer.StatusCode
	said := fmt.Errorf("the receiver answered %s", strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code))))
	switch {
	case code/100 == 2:
		return nil
	case code/100 == 3:
		return fmt.Errorf("%w: redirects are not followed, the url has to be the right one", said)
	case code/100 == 4 && !mayBeFixed(code):
		return refusedError{said}
	}
	return laterError{said, retryAfter(answer.Header.Get("Retry-After"), now)}
}

// mayBeFixed reports a refusal that is not about the event: the token or the address is wrong, or it is too much now.
func mayBeFixed(code int) bool {
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// retryAfter is how long a receiver wants to be left alone; 0: it does not say.
func retryAfter(text string, now time.Time) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(text); err == nil {
		wait = time.Duration(min(seconds, int(mostWait/time.Second))) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), mostWait)
}

// wait is how long after a failure it is tried again.
func wait(failures int, err error) time.Duration {
	grown := leastWait
	for range min(failures-1, 10) {
		grown = min(2*grown, mostWait)
	}
	if later, ok := errors.AsType[laterError](err); ok && later.after > 0 {
		return max(leastWait, later.after)
	}
	return grown
}
