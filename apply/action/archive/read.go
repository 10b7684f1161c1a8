package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"github.com/pullet/pullet/apply/action/place"
)

// archiveLimits bound what an archive may become: a small one can hold very much.
type archiveLimits struct {
	entries int
	bytes   int64
}

var errNoArchive = errors.New(
	"this is no archive that is known: tar, alone or with gzip, bzip2, xz or zstd, and zip are",
)

// archiveReader walks through an archive.
type archiveReader struct {
	ctx    context.Context
	strip  int
	limits archiveLimits
	visit  func(e archiveEntry, content io.Reader) error
	got    int64 // the bytes of all contents so far: a sparse file has more than the archive
}

// read visits what is in an archive, in its order. The format is told from the content.
func (r *archiveReader) read(from io.ReaderAt, size int64) error {
	head := make([]byte, min(512, size))
	if _, err := from.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return r.zip(from, size)
	}
	stream, err := io.Reader(io.NewSectionReader(from, 0, size)), error(nil)
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		stream, err = gzip.NewReader(stream)
	case bytes.HasPrefix(head, []byte("BZh")):
		stream = bzip2.NewReader(stream)
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		stream, err = xz.NewReader(stream)
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		var d *zstd.Decoder
		if d, err = zstd.NewReader(stream, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(256<<20)); err == nil {
			defer d.Close()
			stream = d
		}
	case len(head) < 512 || !isTar(head):
		return errNoArchive
	}
	if err != nil {
		return err
	}
	return r.tar(stream)
}

// isTar reports a header of tar, in one of its dialects.
func isTar(head []byte) bool {
	if bytes.Equal(head[257:262], []byte("ustar")) {
		return true
	}
	_, err := tar.NewReader(bytes.NewReader(head)).Next()
	return err == nil || errors.Is(err, io.EOF)
}

func (r *archiveReader) tar(stream io.Reader) error {
	raw := int64(0) // names count, too
	t := tar.NewReader(r.bounded(stream, &raw))
	for count := 0; ; count++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.counted(count)
		}
		if err != nil {
			return err
		}
		if err := r.tarEntry(h, t); err != nil {
			return err
		}
	}
}

func (r *archiveReader) tarEntry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	e := archiveEntry{Mode: fs.FileMode(h.Mode) & 0o777, time: h.ModTime}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		e.Kind = aFile
	case tar.TypeDir:
		e.Kind = aDir
	case tar.TypeSymlink:
		e.Kind, e.Target = aLink, h.Linkname
	case tar.TypeLink:
		to, err := entryPath(h.Linkname, r.strip)
		if err != nil {
			return err
		}
		e.Kind, e.Target = aHard, to
	default:
		return fmt.Errorf(
			"%q is neither a file nor a directory nor a link (type %q): devices and pipes are not extracted",
			h.Name,
			h.Typeflag,
		)
	}
	return r.entry(h.Name, e, content)
}

func (r *archiveReader) zip(from io.ReaderAt, size int64) error {
	z, err := zip.NewReader(from, size)
	if err != nil {
		return err
	}
	for count, f := range z.File {
		if err := r.counted(count); err != nil {
			return err
		}
		if err := r.zipEntry(f); err != nil {
			return err
		}
	}
	return nil
}

func (r *archiveReader) zipEntry(f *zip.File) error {
	mode := f.Mode()
	e := archiveEntry{Mode: mode.Perm(), time: f.Modified}
	if madeByDOS := f.CreatorVersion>>8 == 0; madeByDOS || e.Mode == 0 { // it says nothing of modes
		e.Mode = place.NewMode
		if mode.IsDir() {
			e.Mode = 0o755
		}
	}
	content, err := f.Open()
	if err != nil {
		return fmt.Errorf("%q: %w", f.Name, err)
	}
	defer content.Close()
	switch {
	case mode.IsDir() || strings.HasSuffix(f.Name, "/"):
		e.Kind = aDir
	case mode&fs.ModeSymlink != 0:
		target, err := io.ReadAll(io.LimitReader(content, maxArchivePath+1))
		if err != nil {
			return err
		}
		e.Kind, e.Target = aLink, string(target)
	case mode.IsRegular():
		e.Kind = aFile
	default:
		return fmt.Errorf(
			"%q is neither a file nor a directory nor a link (%s): devices and pipes are not extracted",
			f.Name,
			mode.Type(),
		)
	}
	return r.entry(f.Name, e, content)
}

// entry checks where an entry leads, and visits it.
func (r *archiveReader) entry(name string, e archiveEntry, content io.Reader) (err error) {
	if e.Path, err = entryPath(name, r.strip); err != nil || e.Path == "" {
		return err
	}
	if e.Kind == aLink {
		if err := checkLink(e.Path, e.Target); err != nil {
			return err
		}
	}
	return r.visit(e, r.bounded(content, &r.got))
}

func (r *archiveReader) counted(count int) error {
	if count >= r.limits.entries {
		return fmt.Errorf("it holds more than %d names", r.limits.entries)
	}
	return r.ctx.Err()
}

// bounded ends a stream with an error when what was counted exceeds the limit, or when the context ends.
func (r *archiveReader) bounded(stream io.Reader, got *int64) io.Reader {
	return &boundedReader{r, stream, got}
}

type boundedReader struct {
	*archiveReader
	stream io.Reader
	got    *int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.stream.Read(p)
	if *b.got += int64(n); *b.got > b.limits.bytes {
		return 0, fmt.Errorf("it holds more than %d bytes", b.limits.bytes)
	}
	return n, err
}
