package puller

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	mostPacks = 50      // each fetch adds one, and every read looks through all
	smallPack = 4 << 20 // larger ones are left as they are
	window    = 10      // how far to look for a similar object, as in git
)

// compact puts small packs together once there are many. It keeps every
// object: go-git's own repacking drops what no ref reaches, such as commits
// from before a rewind, and fails on shallow stores.
func (s *store) compact() error {
	small, err := smallPacks(s.dir)
	if err != nil || len(small) <= s.maxPacks {
		return err
	}
	objects, err := objectsIn(small)
	if err != nil {
		return err
	}
	whole, err := s.writePack(objects)
	if err != nil {
		return err
	}
	return s.change(func() error {
		var errs []error
		for _, pack := range small {
			if pack != whole { // an index without a pack is tidied up, the reverse is damage
				errs = append(errs, os.Remove(pack), os.Remove(indexOf(pack)))
			}
		}
		return errors.Join(errs...)
	})
}

func smallPacks(dir string) (small []string, err error) {
	files, err := packs(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		if info.Size() < smallPack {
			small = append(small, file)
		}
	}
	return small, nil
}

// objectsIn lists the objects of packs, each once.
func objectsIn(packs []string) (ids []plumbing.Hash, err error) {
	seen := map[plumbing.Hash]bool{}
	for _, pack := range packs {
		idx, err := readIndex(indexOf(pack))
		if err != nil {
			return nil, err
		}
		iter, err := idx.Entries()
		if err != nil {
			return nil, err
		}
		for {
			e, err := iter.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if !seen[e.Hash] {
				seen[e.Hash] = true
				ids = append(ids, e.Hash)
			}
		}
	}
	return ids, nil
}

// writePack writes objects into a new pack, and returns it once it is on disk
// and was read back with all of them.
func (s *store) writePack(ids []plumbing.Hash) (pack string, err error) {
	st := filesystem.NewStorage(osfs.New(s.dir), cache.NewObjectLRU(cacheSize))
	defer st.Close()
	w, err := st.PackfileWriter()
	if err != nil {
		return "", err
	}
	sum, err := packfile.NewEncoder(w, st, false).Encode(ids, window)
	if err := errors.Join(err, w.Close()); err != nil {
		return "", errors.Join(err, removeLeftovers(s.dir))
	}
	pack = filepath.Join(s.dir, "objects", "pack", "pack-"+sum.String()+".pack")
	idx, err := readIndex(indexOf(pack))
	if err := errors.Join(err, checkPack(pack, true)); err != nil {
		return "", err
	}
	for _, id := range ids {
		if ok, err := idx.Contains(id); !ok || err != nil {
			return "", errors.Join(fmt.Errorf("object %s is not in the new pack", id), err)
		}
	}
	return pack, syncTree(s.dir)
}

func indexOf(pack string) string { return strings.TrimSuffix(pack, ".pack") + ".idx" }
