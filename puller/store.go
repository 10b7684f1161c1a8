package puller

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// maxObject bounds the files that are read into memory, maxTree a single
	// directory (some 400,000 entries), maxCommit a commit with its message.
	maxObject = 64 << 20
	maxTree   = 16 << 20
	maxCommit = 1 << 20
	// cacheSize holds the delta bases of a repository of some ten thousand
	// small files; each repository of a running agent has one.
	cacheSize = 16 << 20
	// damagedFile in a store marks it for rebuilding; it goes with the store.
	damagedFile = "pullet-damaged"
)

// store is a bare repository on disk. Its methods may be called from several
// goroutines; another process may put packs together or swap the store while
// this one reads.
type store struct {
	repo, dir string
	limit     int64 // bytes of one object, maxObject
	maxPacks  int   // small packs before they are put together, mostPacks

	mu     sync.Mutex // go-git's storage does not bear concurrent readers
	st     *filesystem.Storage
	opened fs.FileInfo // the directory of packs, when st was opened
	closed bool
}

func newStore(repo, dir string) *store {
	return &store{repo: repo, dir: dir, limit: maxObject, maxPacks: mostPacks}
}

// exists says whether the store was ever built.
func (s *store) exists() bool {
	_, err := os.Lstat(s.dir)
	return err == nil
}

// shallow says whether the store was cloned without its history.
func (s *store) shallow() bool {
	_, err := os.Stat(filepath.Join(s.dir, "shallow"))
	return err == nil
}

// with runs a read on the open store. A damaged store can make go-git panic;
// that is an error like any other here.
func (s *store) with(read func(*filesystem.Storage) error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if p := recover(); p != nil {
			s.st = nil
			err = fmt.Errorf("unreadable git data: %v", p)
		}
	}()
	if s.closed {
		return fs.ErrClosed
	}
	if s.st == nil {
		s.opened = s.packDir()
		if s.st, err = openStorage(s.dir); err != nil {
			return err
		}
	}
	return read(s.st)
}

// openStorage keeps packs open and trusts its lists of objects, so it has to be
// reset when the store changes.
func openStorage(dir string) (*filesystem.Storage, error) {
	if err := checkPacks(dir); err != nil {
		return nil, err
	}
	st := filesystem.NewStorageWithOptions(osfs.New(dir), cache.NewObjectLRU(cacheSize),
		filesystem.Options{ExclusiveAccess: true, KeepDescriptors: true})
	// Looking for anything reads the indexes. A bad one is reported only the
	// first time; later the objects of its pack just seem to be missing.
	if _, err := st.EncodedObjectSize(plumbing.ZeroHash); !errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, errors.Join(fmt.Errorf("its indexes: %w", err), st.Close())
	}
	return st, nil
}

// change runs a change of the store's files while nobody reads; the next read
// opens it again.
func (s *store) change(change func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st != nil {
		if err := s.st.Close(); err != nil {
			return err
		}
		s.st = nil
	}
	return change()
}

// reset makes the next read see what was fetched.
func (s *store) reset() error { return s.change(func() error { return nil }) }

func (s *store) close() error {
	return s.change(func() error {
		s.closed = true
		return nil
	})
}

// sound is the cheap check before a store is relied on: its marker, config,
// refs and the ends of its packs. What else is wrong shows when it is read.
func (s *store) sound() error {
	if reason, err := os.ReadFile(filepath.Join(s.dir, damagedFile)); err == nil {
		return errors.New(strings.TrimSpace(string(reason)))
	}
	return s.with(func(st *filesystem.Storage) error {
		if _, err := st.Config(); err != nil {
			return fmt.Errorf("its config: %w", err)
		}
		if _, err := st.Reference(plumbing.HEAD); err != nil {
			return fmt.Errorf("its HEAD: %w", err)
		}
		if _, err := st.IterReferences(); err != nil {
			return fmt.Errorf("its refs: %w", err)
		}
		return nil
	})
}

// damaged marks the store, so that the next pull rebuilds it, whichever
// process that is.
func (s *store) damaged(what string, cause error) error {
	reason := fmt.Sprintf("%s: %v\n", what, cause)
	err := &CorruptError{Repo: s.repo, What: what, Err: cause}
	if mark := os.WriteFile(filepath.Join(s.dir, damagedFile), []byte(reason), 0o600); mark != nil {
		return errors.Join(err, fmt.Errorf("cannot mark the store for that: %w", mark))
	}
	return err
}

// commit reads a commit; plumbing.ErrObjectNotFound if it is not there.
func (s *store) commit(id plumbing.Hash) (*object.Commit, error) {
	text, err := s.object(plumbing.CommitObject, id, maxCommit)
	if err != nil {
		return nil, err
	}
	o := checkedObject{&plumbing.MemoryObject{}, id}
	o.SetType(plumbing.CommitObject)
	if _, err := o.Write(text); err != nil {
		return nil, err
	}
	c := &object.Commit{}
	return c, c.Decode(o)
}

// checkedObject is an object whose content was compared with its name.
type checkedObject struct {
	*plumbing.MemoryObject
	id plumbing.Hash
}

func (o checkedObject) Hash() plumbing.Hash { return o.id }

// holds says that the store is sound and can read a commit.
func (s *store) holds(id plumbing.Hash) bool {
	if !s.exists() || s.sound() != nil {
		return false
	}
	_, err := s.commit(id)
	return err == nil
}

// lacks says that a commit is not there, as opposed to being unreadable.
func (s *store) lacks(id plumbing.Hash) bool {
	_, err := s.commit(id)
	return errors.Is(err, plumbing.ErrObjectNotFound)
}

// sizes returns the size of each object, and so makes sure that they exist.
// (HasEncodedObject does not find packed objects in a storage that is opened
// for exclusive access.)
func (s *store) sizes(ids []plumbing.Hash) ([]int64, error) {
	sizes := make([]int64, len(ids))
	return sizes, s.with(func(st *filesystem.Storage) (err error) {
		for i, id := range ids {
			if sizes[i], err = st.EncodedObjectSize(id); err != nil {
				return fmt.Errorf("object %s: %w", id, err)
			}
		}
		return nil
	})
}

// blob reads a file's content.
func (s *store) blob(id plumbing.Hash) ([]byte, error) {
	return s.object(plumbing.BlobObject, id, s.limit)
}

// object reads a git object as it is, and compares it with its name, the hash.
func (s *store) object(kind plumbing.ObjectType, id plumbing.Hash, limit int64) (data []byte, err error) {
	err = s.with(func(st *filesystem.Storage) error {
		if size, err := st.EncodedObjectSize(id); err != nil || size > limit {
			return tooLarge(size, limit, err)
		}
		o, err := st.EncodedObject(kind, id)
		if err != nil {
			return err
		}
		r, err := o.Reader()
		if err != nil {
			return err
		}
		defer r.Close()
		data, err = io.ReadAll(r)
		return err
	})
	if err == nil && plumbing.ComputeHash(kind, data) != id {
		err = fmt.Errorf("object %s: its content does not match its name", id)
	}
	return data, err
}

// entries returns the entries of a directory, in git's order. It is the only reader of directories. A directory that
// git itself would not write is a contentError, and so has one reading only.
func (s *store) entries(id plumbing.Hash) ([]object.TreeEntry, error) {
	text, err := s.object(plumbing.TreeObject, id, maxTree)
	if err != nil {
		return nil, err
	}
	return parseDirectory(text)
}
