package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"

	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// archiveData is an archive that can be read.
type archiveData struct {
	io.ReaderAt
	size int64
	sum  fetch.Digest
	seen stamp // of an archive on the host
	done func()
}

// extraction is an archive's way into a directory of this host.
type extraction struct {
	action *Extracted
	root   *hostfile.Entry
	dir    *hostfile.Dir // nil: it is not there
	w      place.Tree
	limits archiveLimits
}

func (x *extraction) close() {
	x.dir.Close()
	x.root.Close()
}

// wanted is the owner and mode of an entry. A directory has the mode of the archive only when it is made: it may be
// shared.
func (x *extraction) wanted(e archiveEntry) place.Wanted {
	w := x.w.File
	switch {
	case e.Kind == aDir:
		return x.w.Dir
	case executable(e.Mode):
		w = x.w.Exec
	}
	if !w.SetMode {
		w.Mode, w.SetMode = e.Mode, true
	}
	if e.Kind == aLink {
		w.SetMode = false
	}
	return w
}

// scan reads an archive through, and refuses what must not be extracted before anything is written.
func (x *extraction) scan(ctx context.Context, from archiveData) (*archiveRecord, error) {
	list := newListing()
	err := x.reader(ctx, func(e archiveEntry, content io.Reader) error {
		if e.Kind == aFile {
			sum := sha256.New()
			n, err := io.Copy(sum, content)
			if err != nil {
				return err
			}
			e.Size, e.Sum = n, fetch.Digest(sum.Sum(nil)).String()
		}
		return list.add(e)
	}).read(from, from.size)
	switch {
	case err != nil:
		return nil, err
	case len(list.entries) == 0 && x.action.Strip > 0:
		return nil, fmt.Errorf("strip: %d leaves nothing of it", x.action.Strip)
	}
	return &archiveRecord{
		Archive: from.sum.String(),
		Strip:   x.action.Strip,
		Size:    from.size,
		Seen:    from.seen,
		Entries: list.entries,
	}, nil
}

func (x *extraction) reader(ctx context.Context, visit func(archiveEntry, io.Reader) error) *archiveReader {
	return &archiveReader{ctx: ctx, strip: x.action.Strip, limits: x.limits, visit: visit}
}

// write extracts what is missing or different, after it removed what is in the way. Each file is written beside its
// place and renamed: what is cut off is done again by the next run, which finds no record of it.
func (x *extraction) write(ctx context.Context, from archiveData, p *extractPlan) error {
	if err := x.makeRoot(); err != nil {
		return err
	}
	for _, rel := range p.stale.first {
		if err := x.remove(rel); err != nil {
			return err
		}
	}
	s := &writer{to: x, write: p.diff.content, entries: map[string]archiveEntry{}}
	for _, e := range p.current.Entries { // with their final modes
		s.entries[e.Path] = e
		if e.Kind == aDir && s.write[e.Path] {
			if err := s.mkdir(e); err != nil {
				return err
			}
		}
	}
	return x.reader(ctx, s.entry).read(from, from.size)
}

func (x *extraction) makeRoot() error {
	if x.dir != nil {
		return nil
	}
	err := x.root.MakeParents(0o755)
	if err == nil {
		x.dir, err = x.root.Mkdir(0o755)
	}
	if err == nil {
		err = x.w.Dir.Set(x.dir)
	}
	return err
}

// writer is the second walk through an archive. All that it does lies below the directory, whatever links are there.
type writer struct {
	to      *extraction
	write   map[string]bool
	entries map[string]archiveEntry
}

func (s *writer) mkdir(e archiveEntry) error {
	at, err := s.to.dir.Entry(e.Path)
	if err != nil {
		return err
	}
	defer at.Close()
	dir, err := at.Mkdir(0o700)
	if err != nil {
		return err
	}
	defer dir.Close()
	w := s.to.w.Dir
	if !w.SetMode {
		w.Mode, w.SetMode = e.Mode|0o700, true
	}
	return w.Set(dir)
}

// entry writes a file or a link under another name, and gives it its own.
func (s *writer) entry(e archiveEntry, content io.Reader) error {
	if !s.write[e.Path] || e.Kind == aDir {
		return nil
	}
	at, err := s.to.dir.Entry(e.Path)
	if err != nil {
		return err
	}
	defer at.Close()
	w := s.to.wanted(s.entries[e.Path])
	switch e.Kind {
	case aLink:
		return at.Symlink(e.Target, w.UID, w.GID)
	case aHard:
		return s.hard(at, e, w)
	}
	return s.file(at, e, w, content)
}

// hard gives a file that was just extracted another name. Where others than root can put names, a file with several is
// never touched again, so it becomes a copy there.
func (s *writer) hard(at *hostfile.Entry, e archiveEntry, w place.Wanted) error {
	from, err := s.to.dir.Entry(e.Target)
	if err != nil {
		return err
	}
	defer from.Close()
	private, err := from.Private()
	if err == nil && private {
		private, err = at.Private()
	}
	if err != nil {
		return err
	}
	if private {
		return from.LinkOver(at)
	}
	f, err := from.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	return s.file(at, e, w, &unchanged{from: f, path: from.Path(), sum: sha256.New(), want: s.entries[e.Path].Sum})
}

// unchanged reads a file that others can change, and fails at the end where its content is not the archive's.
type unchanged struct {
	from io.Reader
	path string
	sum  hash.Hash
	want string
}

func (u *unchanged) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.sum.Write(p[:n]) // never fails
	if errors.Is(err, io.EOF) && fetch.Digest(u.sum.Sum(nil)).String() != u.want {
		return n, &hostfile.FileRefused{Path: u.path, Why: "was changed while it was extracted", Cure: "pull again"}
	}
	return n, err
}

func (s *writer) file(at *hostfile.Entry, e archiveEntry, w place.Wanted, content io.Reader) error {
	c, err := at.CandidateNamed(besideEntry(e.Path))
	if err != nil {
		return err
	}
	defer c.Drop()
	if _, err := io.Copy(c, content); err != nil {
		return err
	}
	if err := w.Set(c); err != nil {
		return err
	}
	if !e.time.IsZero() {
		if err := c.SetTime(e.time); err != nil {
			return err
		}
	}
	return c.PlaceUnsynced()
}

// besideEntry is the name of a file until it is complete.
func besideEntry(rel string) string {
	short := sha256.Sum256([]byte(path.Base(rel)))
	return fmt.Sprintf("%snew-%x", recordPrefix, short[:6])
}

// finish sets what is left of owners and modes, removes what an earlier archive of this step left, and writes the
// record.
func (x *extraction) finish(p *extractPlan) error {
	rec := p.current
	if err := x.makeRoot(); err != nil {
		return err
	}
	for i, e := range rec.Entries {
		seen, err := x.setAttributes(e)
		if err != nil {
			return err
		}
		if e.Kind == aFile {
			rec.Entries[i].Seen = seen
		}
	}
	stale, err := x.stale(rec, p.old)
	if err != nil {
		return err
	}
	for _, rel := range stale.later {
		if err := x.remove(rel); err != nil {
			return err
		}
	}
	if err := x.sync(rec.Entries, p.diff.content); err != nil {
		return err
	}
	return rec.save(x.dir, recordName(x.action.step))
}

// setAttributes gives an entry its owner and mode, and says when it was touched last.
func (x *extraction) setAttributes(e archiveEntry) (stamp, error) {
	at, err := x.dir.Entry(e.Path)
	if err != nil {
		return stamp{}, err
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return stamp{}, err
	}
	if w := x.wanted(e); len(w.Differs(info)) > 0 {
		if err := w.Set(at); err != nil {
			return stamp{}, err
		}
		if info, err = at.Lstat(); err != nil {
			return stamp{}, err
		}
	}
	return stampOf(info), nil
}

func (x *extraction) remove(rel string) error {
	at, err := x.dir.Entry(rel)
	if err != nil {
		return err
	}
	defer at.Close()
	return at.Remove()
}

// manyFiles are so many that the whole file system is made durable at once, rather than each of them.
const manyFiles = 200

// sync makes all that was written durable: only then may the record say that it is there.
func (x *extraction) sync(entries []archiveEntry, written map[string]bool) error {
	if len(written) > manyFiles {
		return x.dir.SyncFS()
	}
	synced := map[string]bool{} // directories
	for _, e := range entries {
		if !written[e.Path] {
			continue
		}
		if err := x.syncOne(e, synced); err != nil {
			return err
		}
	}
	return x.dir.Sync()
}

func (x *extraction) syncOne(e archiveEntry, synced map[string]bool) error {
	at, err := x.dir.Entry(e.Path)
	if err != nil {
		return err
	}
	defer at.Close()
	if e.Kind == aFile {
		f, err := at.Open()
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	if dir := path.Dir(e.Path); !synced[dir] {
		synced[dir] = true
		return at.SyncDir()
	}
	return nil
}

// executable reports a mode that lets somebody execute the file.
func executable(m fs.FileMode) bool { return m&0o111 != 0 }
