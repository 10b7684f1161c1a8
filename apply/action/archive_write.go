package action

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/state"
)

// archiveData is an archive that can be read.
type archiveData struct {
	io.ReaderAt
	size int64
	sum  digest
	seen stamp // of an archive on the host
	done func()
}

// extraction is an archive's way into a directory of this host.
type extraction struct {
	*ArchiveExtracted
	root   string
	w      treeWanted
	limits archiveLimits
}

func (x *extraction) at(rel string) string { return filepath.Join(x.root, filepath.FromSlash(rel)) }

func (x *extraction) record() string { return filepath.Join(x.root, recordName(x.step)) }

// wanted is the owner and mode of an entry. A directory has the mode of the archive only when it is made: it may be shared.
func (x *extraction) wanted(e archiveEntry) wanted {
	w := x.w.file
	switch {
	case e.Kind == aDir:
		return x.w.dir
	case executable(e.Mode):
		w = x.w.exec
	}
	if !w.setMode {
		w.mode, w.setMode = e.Mode, true
	}
	if e.Kind == aLink {
		w.setMode = false
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
			e.Size, e.Sum = n, digest(sum.Sum(nil)).String()
		}
		return list.add(e)
	}).read(from, from.size)
	switch {
	case err != nil:
		return nil, err
	case len(list.entries) == 0 && x.Strip > 0:
		return nil, fmt.Errorf("strip: %d leaves nothing of it", x.Strip)
	}
	return &archiveRecord{Archive: from.sum.String(), Strip: x.Strip, Size: from.size, Seen: from.seen, Entries: list.entries}, nil
}

func (x *extraction) reader(ctx context.Context, visit func(archiveEntry, io.Reader) error) *archiveReader {
	return &archiveReader{ctx: ctx, strip: x.Strip, limits: x.limits, visit: visit}
}

// write extracts what is missing or different. Each file is written beside its place and renamed: what is cut off is done again by the
// next run, which finds no record of it.
func (x *extraction) write(ctx context.Context, from archiveData, rec *archiveRecord, d *differences) error {
	if !exists(x.root) {
		if err := errors.Join(os.MkdirAll(x.root, 0o755), x.w.dir.set(x.root)); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(x.root)
	if err != nil {
		return err
	}
	defer root.Close()
	s := &writer{extraction: x, root: root, write: d.content, entries: map[string]archiveEntry{}}
	for _, e := range rec.Entries { // with their final modes
		s.entries[e.Path] = e
		if e.Kind == aDir && d.content[e.Path] {
			if err := s.mkdir(e); err != nil {
				return err
			}
		}
	}
	return x.reader(ctx, s.entry).read(from, from.size)
}

// writer is the second walk through an archive. All that it does lies below root, whatever links are there.
type writer struct {
	*extraction
	root    *os.Root
	write   map[string]bool
	entries map[string]archiveEntry
}

func (s *writer) mkdir(e archiveEntry) error {
	if err := s.root.Mkdir(e.Path, 0o700); err != nil {
		return err
	}
	w := s.w.dir
	if !w.setMode {
		w.mode, w.setMode = e.Mode|0o700, true
	}
	return w.set(s.at(e.Path))
}

// entry writes a file or a link under another name, and gives it its own.
func (s *writer) entry(e archiveEntry, content io.Reader) error {
	if !s.write[e.Path] || e.Kind == aDir {
		return nil
	}
	short := sha256.Sum256([]byte(path.Base(e.Path)))
	temp := path.Join(path.Dir(e.Path), fmt.Sprintf("%snew-%x", recordPrefix, short[:6]))
	if err := s.root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := s.make(temp, e, content)
	if err == nil {
		err = s.root.Rename(temp, e.Path)
	}
	// Nothing is left of it, unless both were names of one file: then the rename did nothing.
	if gone := s.root.Remove(temp); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

func (s *writer) make(temp string, e archiveEntry, content io.Reader) error {
	w := s.wanted(s.entries[e.Path])
	switch e.Kind {
	case aHard:
		return s.root.Link(e.Target, temp)
	case aLink:
		if err := s.root.Symlink(e.Target, temp); err != nil {
			return err
		}
		return w.set(s.at(temp))
	}
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := w.set(s.at(temp)); err != nil || e.time.IsZero() {
		return err
	}
	return s.root.Chtimes(temp, e.time, e.time)
}

// finish sets what is left of owners and modes, removes what an earlier archive of this step left, and writes the record.
func (x *extraction) finish(rec, old *archiveRecord, written map[string]bool) error {
	for i, e := range rec.Entries {
		info, err := os.Lstat(x.at(e.Path))
		if err != nil {
			return err
		}
		if w := x.wanted(e); len(w.differs(info)) > 0 {
			if err := w.set(x.at(e.Path)); err != nil {
				return err
			}
			if info, err = os.Lstat(x.at(e.Path)); err != nil {
				return err
			}
		}
		if e.Kind == aFile {
			rec.Entries[i].Seen = stampOf(info)
		}
	}
	stale, err := x.stale(rec, old)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(x.root)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, rel := range stale {
		if err := root.Remove(rel); err != nil {
			return err
		}
	}
	if err := x.sync(rec.Entries, written); err != nil {
		return err
	}
	return rec.save(x.record())
}

// manyFiles are so many that the whole file system is made durable at once, rather than each of them.
const manyFiles = 200

// sync makes all that was written durable: only then may the record say that it is there.
func (x *extraction) sync(entries []archiveEntry, written map[string]bool) error {
	if len(written) > manyFiles {
		dir, err := os.Open(x.root)
		if err != nil {
			return err
		}
		defer dir.Close()
		return unix.Syncfs(int(dir.Fd()))
	}
	dirs := map[string]bool{x.root: true}
	for _, e := range entries {
		if !written[e.Path] {
			continue
		}
		dirs[filepath.Dir(x.at(e.Path))] = true
		if e.Kind == aFile {
			if err := state.SyncDir(x.at(e.Path)); err != nil { // a file is synced as a directory is
				return err
			}
		}
	}
	for dir := range dirs {
		if err := state.SyncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// stale are the files and links that an earlier archive of the step left, and nobody has changed since: what is in a directory before it,
// and a directory only if nothing else is in it.
func (x *extraction) stale(rec, old *archiveRecord) ([]string, error) {
	if old == nil {
		return nil, nil
	}
	wanted, gone := map[string]bool{}, map[string]bool{}
	for _, e := range rec.Entries {
		wanted[e.Path] = true
	}
	var out []string
	for _, e := range slices.Backward(old.Entries) {
		if wanted[e.Path] || x.throughLink(e.Path) {
			continue
		}
		info, err := os.Lstat(x.at(e.Path))
		if missing(err) {
			continue
		}
		same := false
		switch {
		case err != nil:
		case e.Kind == aDir && info.IsDir():
			same, err = x.emptyWithout(e.Path, gone)
		case e.Kind == aFile && info.Mode().IsRegular():
			same, err = x.sameContent(e, info)
		case e.Kind == aLink && info.Mode()&fs.ModeSymlink != 0:
			var target string
			target, err = os.Readlink(x.at(e.Path))
			same = target == e.Target
		}
		if err != nil {
			return nil, err
		}
		if same {
			out, gone[e.Path] = append(out, e.Path), true
		}
	}
	return out, nil
}

// throughLink reports a path whose parents are not all directories.
func (x *extraction) throughLink(rel string) bool {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if info, err := os.Lstat(x.at(dir)); err != nil || !info.IsDir() {
			return true
		}
	}
	return false
}

// emptyWithout reports a directory in which nothing is but what goes anyway.
func (x *extraction) emptyWithout(rel string, gone map[string]bool) (bool, error) {
	found, err := os.ReadDir(x.at(rel))
	return !slices.ContainsFunc(found, func(e fs.DirEntry) bool { return !gone[path.Join(rel, e.Name())] }), err
}
