package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
)

// The most that an address may serve, how long it may take, and how long it may be silent.
const (
	MaxSize = 16 << 30
	timeout = time.Hour
	silence = time.Minute
)

// File is a file at an address. What is at an address may change, and whoever serves it may lie: its digest says what
// is meant.
type File struct {
	address *url.URL
	Digest  Digest
}

// IsAddress tells an address from a path.
func IsAddress(source string) bool { return strings.Contains(source, "://") }

// New reads the parameters source and digest.
func New(source, sum string) (*File, error) {
	if err := apply.CheckSource(source); err != nil {
		return nil, err
	}
	address, err := url.Parse(source)
	switch {
	case err != nil:
		var parse *url.Error
		if errors.As(err, &parse) { // the address may hold a password
			err = parse.Err
		}
		return nil, apply.BadParam("source", "this is no address: %w", err)
	case address.Scheme != "https" && address.Scheme != "http":
		return nil, apply.BadParam("source", "%s: only https:// and http:// can be fetched", address.Scheme)
	case address.Host == "":
		return nil, apply.BadParam("source", "the address names no host")
	case sum == "":
		return nil, apply.BadParam(
			"source",
			"an address needs a digest: add digest: sha256:..., as sha256sum prints it",
		)
	}
	d := &File{address: address}
	d.Digest, err = ParseDigest(sum)
	return d, err
}

// String is the address without what may be secret in it.
func (d *File) String() string {
	shown := url.URL{Scheme: d.address.Scheme, Host: d.address.Host, Path: d.address.Path}
	return shown.String()
}

// Fetch writes what the address serves. When it returns an error, what it wrote is not to be used.
func (d *File) Fetch(ctx context.Context, to io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took more than %s", timeout))
	defer cancel()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	alarm := time.AfterFunc(silence, func() { give(fmt.Errorf("nothing came for %s", silence)) })
	defer alarm.Stop()
	err := d.get(ctx, to, func() { alarm.Reset(silence) })
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	return nil
}

// get is one request. It calls alive whenever something came.
func (d *File) get(ctx context.Context, to io.Writer, alive func()) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "identity") // the digest is of the file as it is
	req.Header.Set("User-Agent", "pullet")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		var whole *url.Error
		if errors.As(err, &whole) { // it repeats the address with what may be secret in it
			err = whole.Err
		}
		return err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("the server says %s", answer.Status)
	case answer.ContentLength > MaxSize:
		return fmt.Errorf("it has %d bytes, more than the limit of %d", answer.ContentLength, int64(MaxSize))
	}
	return d.receive(answer.Body, to, alive)
}

// receive copies a body, and compares its digest.
func (d *File) receive(body io.Reader, to io.Writer, alive func()) error {
	sum := sha256.New()
	counted := readerFunc(func(p []byte) (int, error) {
		n, err := body.Read(p)
		alive()
		return n, err
	})
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(counted, MaxSize+1))
	switch have := Digest(sum.Sum(nil)); {
	case err != nil:
		return err
	case n > MaxSize:
		return fmt.Errorf("it has more bytes than the limit of %d", int64(MaxSize))
	case have != d.Digest:
		return fmt.Errorf("it serves %s, and digest says %s", have, d.Digest)
	}
	return nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
