package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// local opens an archive that is at hand; nil for one that is not.
func (x *extraction) local(h *apply.Host) (*archiveData, error) {
	switch {
	case x.action.remote != nil:
		return nil, nil
	case !filepath.IsAbs(x.action.Source):
		return &archiveData{bytes.NewReader(x.action.data), int64(len(x.action.data)), sha256.Sum256(x.action.data), stamp{},
			func() {}}, nil
	}
	at, err := h.Follow(x.action.Source)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	found, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !found.Mode().IsRegular():
		return nil, fmt.Errorf("%s is %s, not a file", x.action.Source, place.Kind(found))
	}
	f, err := at.Open()
	if err != nil {
		return nil, err
	}
	from, err := x.opened(f)
	if err != nil {
		_ = f.Close() // it was only read
	}
	return from, err
}

// opened is an archive that is open, if it is the one that is meant.
func (x *extraction) opened(f *os.File) (*archiveData, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > fetch.MaxSize {
		return nil, fmt.Errorf("%s has %d bytes: the limit is %d", x.action.Source, info.Size(), int64(fetch.MaxSize))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, info.Size())); err != nil {
		return nil, err
	}
	have := fetch.Digest(sum.Sum(nil))
	if x.action.want != nil && have != *x.action.want {
		return nil, fmt.Errorf("%s has %s, and digest says %s", x.action.Source, have, *x.action.want)
	}
	return &archiveData{f, info.Size(), have, stampOf(info), func() { _ = f.Close() }}, nil // it was only read
}

// open gives the archive, fetched where it is at an address: into a file near the directory, as there has to be room
// for it anyway.
func (x *extraction) open(ctx context.Context, h *apply.Host) (*archiveData, error) {
	if x.action.remote == nil {
		from, err := x.local(h)
		if err == nil && from == nil {
			err = fmt.Errorf("there is no archive %s on this host", x.action.Source)
		}
		return from, err
	}
	c, err := x.root.CandidateNear("." + strings.TrimSuffix(recordName(x.action.step), ".json") + ".pullet")
	if err != nil {
		return nil, err
	}
	err = x.action.remote.Fetch(ctx, c)
	info, stat := c.Stat()
	if err := errors.Join(err, stat); err != nil {
		c.Drop()
		return nil, err
	}
	return &archiveData{c, info.Size(), x.action.remote.Digest, stamp{}, c.Drop}, nil
}
