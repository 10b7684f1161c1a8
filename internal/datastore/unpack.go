package datastore

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/internal/trust"
)

// maxEntry bounds the files of a backup but for the record, in bytes.
const maxEntry = 64 << 10

var (
	errForeign = errors.New("this is no backup that pullet made")
	errCut     = errors.New("it is cut off: the end of the backup is missing")
	errChanged = errors.New("it was changed after it was made")
)

// unpacked is what a backup holds beside the record.
type unpacked struct {
	contents
	authority *authority.Authority // of the fleet
	brought   []byte               // the authority's key from the backup; nil: the one of this host counts
}

// unpack puts the snapshot of the backup into its file, when the keeper of this fleet signed it. Whoever keeps backups
// may have written any byte of it.
func (r Restoring) unpack() (*unpacked, error) {
	f, err := os.Open(r.From)
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, at.Err // the caller names the file
	}
	defer func() { _ = f.Close() }()
	in := bufio.NewReader(f)
	from := io.Reader(in)
	if begin, _ := in.Peek(512); trust.SealedStream(begin) { // one that is shorter is no backup either
		if from, err = r.unsealed(in); err != nil {
			return nil, err
		}
	}
	u, err := r.read(tar.NewReader(from))
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		err = errCut
	case errors.Is(err, tar.ErrHeader):
		err = errChanged
	}
	return u, err
}

// unsealed decrypts the backup.
func (r Restoring) unsealed(in io.Reader) (io.Reader, error) {
	keys, err := r.Keys()
	if err != nil {
		return nil, fmt.Errorf("it is encrypted: %w", err)
	}
	out, err := trust.UnsealStream(in, keys)
	if errors.Is(err, trust.ErrNotRecipient) {
		return nil, errors.New("none of your keys opens it: name that of a recipient with --identity FILE")
	}
	return out, err
}

// read reads a backup: first what it is, and who says so, and then the record.
func (r Restoring) read(t *tar.Reader) (*unpacked, error) {
	if next, err := t.Next(); err != nil || next.Name != contentsEntry {
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || err == nil {
			err = errForeign
		}
		return nil, err
	}
	what, err := small(t)
	if err != nil {
		return nil, err
	}
	u := &unpacked{}
	if err := json.Unmarshal(what, &u.contents); err != nil || u.Cluster == 0 {
		return nil, errForeign
	}
	if u.Fleet != r.Fleet {
		return nil, fmt.Errorf("it is of the fleet %.50q, and this host of the fleet %s", u.Fleet, r.Fleet)
	}
	if next, err := t.Next(); err != nil || next.Name != signatureEntry {
		return nil, orChanged(err)
	}
	signed, err := small(t)
	if err != nil {
		return nil, err
	}
	next, err := t.Next()
	if err == nil && next.Name == authorityEntry {
		if u.brought, err = small(t); err == nil {
			next, err = t.Next()
		}
	}
	if err != nil {
		return nil, err
	}
	if err := r.authorityOf(u); err != nil {
		return nil, err
	}
	if err := u.signedBy(what, signed); err != nil {
		return nil, err
	}
	return u, r.extract(t, next, u)
}

// small reads a file of a backup that has to be small.
func small(t io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(t, maxEntry+1))
	if err == nil && len(text) > maxEntry {
		err = errChanged
	}
	return text, err
}

// orChanged is an error, or that another file stands in a place.
func orChanged(err error) error {
	if err != nil {
		return err
	}
	return errChanged
}

// authorityOf finds the authority that has to vouch for the backup: that of this host or, where there is none, the one
// that the backup brings. Anybody can make a backup with an authority of his own, so this host has to believe it, where
// it is known what it believes.
func (r Restoring) authorityOf(u *unpacked) error {
	at := r.file(authorityFile)
	text, err := ownfile.Read(at)
	switch {
	case err == nil:
		u.brought = nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case u.brought == nil:
		return fmt.Errorf("the fleet's authority comes first: there is no %s, and none in the backup", at)
	default:
		text, at = u.brought, "the authority in it"
	}
	if u.authority, err = authority.Parse(text); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if u.brought == nil || len(r.Believed) == 0 {
		return nil
	}
	if err := authority.Follow(r.Believed, u.authority.Bundle(), u.authority.Links()); err != nil {
		return fmt.Errorf("the authority in it is none that this host believes (etcd.tls.ca): %s", u.authority.Fingerprint())
	}
	return nil
}

// signedBy says why contents are not those that the keeper signed. Its certificate had to be valid then.
func (u *unpacked) signedBy(what, signed []byte) error {
	s, err := authority.Verify(u.authority.Bundle(), backupPurpose, what, signed, u.Made)
	if err == nil && (s.Kind != authority.Keeper || s.Fleet != u.Fleet) {
		err = fmt.Errorf("%s %s of the fleet %s did", s.Kind, s.Name, s.Fleet)
	}
	if err != nil {
		return fmt.Errorf("the keeper of this fleet did not sign it, or before its authority was exchanged: %w", err)
	}
	return nil
}

// extract writes the snapshot into its file.
func (r Restoring) extract(t *tar.Reader, next *tar.Header, u *unpacked) error {
	if next.Name != recordEntry || next.Size != u.Bytes {
		return errChanged
	}
	f, err := os.OpenFile(r.file(restoringFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, t)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if _, sum, err := sumOf(r.file(restoringFile)); err != nil || sum != u.SHA256 {
		return errChanged
	}
	return nil
}
