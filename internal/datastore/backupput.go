package datastore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/pullet/pullet/internal/upload"
)

// put puts the backup below a URL. The server is told how long it is, so one that is cut off is not kept as a whole
// one.
func (p *packing) put(ctx context.Context, to string) error {
	f, err := os.OpenFile(p.file(packedFile), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // what was written is read again
	if err := p.pack(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	r, err := p.request(ctx, to, f)
	if err != nil {
		return err
	}
	client, err := upload.Client(p.Backup.CA)
	if err != nil {
		return fmt.Errorf("datastore.backup.ca: %w", err)
	}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err = upload.WithoutURL(err); err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // nobody reads it
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the server refuses it: %s", answer.Status)
	}
	return nil
}

// request is the one that puts a file below a URL.
func (p *packing) request(ctx context.Context, to string, f *os.File) (*http.Request, error) {
	at, err := url.Parse(to)
	if err != nil { // place did before
		return nil, errors.New("it is no URL")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, at.JoinPath(p.name()).String(), f)
	if err != nil {
		return nil, errors.New("it is no URL")
	}
	r.ContentLength = p.packed
	r.Header.Set("Content-Type", "application/octet-stream")
	if p.Backup.HeadersFile != "" {
		if err := upload.SetHeaders(r.Header, p.Backup.HeadersFile); err != nil {
			return nil, fmt.Errorf("datastore.backup.headersFile: %w", err)
		}
	}
	return r, nil
}
