package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	maxDownload     = 16 << 30
	downloadTimeout = time.Hour
	downloadSilence = time.Minute
)

// download is a file at an address. What is at an address may change, and whoever serves it may lie: its digest says what is meant.
type download struct {
	address *url.URL
	digest  digest
}

// isAddress tells an address from a path.
func isAddress(source string) bool { return strings.Contains(source, "://") }

// newDownload reads the parameters source and digest.
func newDownload(source, sum string) (*download, error) {
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
		return nil, apply.BadParam("source", "an address needs a digest: add digest: sha256:..., as sha256sum prints it")
	}
	d := &download{address: address}
	d.digest, err = parseDigest(sum)
	return d, err
}

// parseDigest reads the parameter digest.
func parseDigest(text string) (digest, error) {
	hexed, named := strings.CutPrefix(text, "sha256:")
	data, err := hex.DecodeString(hexed)
	if !named || err != nil || len(data) != sha256.Size {
		return digest{}, apply.BadParam("digest", "%q is no digest: write sha256: and 64 hexadecimal digits, as sha256sum prints them", text)
	}
	return digest(data), nil
}

// String is the address without what may be secret in it.
func (d *download) String() string {
	shown := url.URL{Scheme: d.address.Scheme, Host: d.address.Host, Path: d.address.Path}
	return shown.String()
}

// fetch writes what the address serves. When it returns an error, what it wrote is not to be used.
func (d *download) fetch(ctx context.Context, to io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, downloadTimeout, fmt.Errorf("it took more than %s", downloadTimeout))
	defer cancel()
	ctx, give := context.WithCancelCause(ctx)
	defer give(nil)
	alarm := time.AfterFunc(downloadSilence, func() { give(fmt.Errorf("nothing came for %s", downloadSilence)) })
	defer alarm.Stop()
	err := d.get(ctx, to, func() { alarm.Reset(downloadSilence) })
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d, err)
	}
	return nil
}

// get is one request. It calls alive whenever something came.
func (d *download) get(ctx context.Context, to io.Writer, alive func()) error {
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
	case answer.ContentLength > maxDownload:
		return fmt.Errorf("it has %d bytes, more than the limit of %d", answer.ContentLength, int64(maxDownload))
	}
	return d.receive(answer.Body, to, alive)
}

// receive copies a body, and compares its digest.
func (d *download) receive(body io.Reader, to io.Writer, alive func()) error {
	sum := sha256.New()
	counted := readerFunc(func(p []byte) (int, error) {
		n, err := body.Read(p)
		alive()
		return n, err
	})
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(counted, maxDownload+1))
	switch have := digest(sum.Sum(nil)); {
	case err != nil:
		return err
	case n > maxDownload:
		return fmt.Errorf("it has more bytes than the limit of %d", int64(maxDownload))
	case have != d.digest:
		return fmt.Errorf("it serves %s, and digest says %s", have, d.digest)
	}
	return nil
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
