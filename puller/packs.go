package puller

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// packs returns the pack files of a store.
func packs(dir string) ([]string, error) {
	return named(filepath.Join(dir, "objects", "pack"), "pack-", ".pack")
}

// named lists files of a directory by how their names begin and end; none
// where there is no directory. A pattern would also be looked for in the names
// of the directories above.
func named(dir, prefix, suffix string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// checkPacks compares the end of each pack with its name: both are the pack's
// checksum, so a pack that was cut short shows at once.
func checkPacks(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "objects")); err != nil {
		return err
	}
	files, err := packs(dir)
	for _, file := range files {
		err = errors.Join(err, checkPack(file, false))
	}
	return err
}

// checkPack checks one pack's end, or all of it.
func checkPack(file string, whole bool) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	want, err := hex.DecodeString(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "pack-"), ".pack"))
	if err != nil {
		return fmt.Errorf("pack %s: its name is no checksum", file)
	}
	end, err := f.Seek(-sha1.Size, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("pack %s is cut short", file)
	}
	got, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	sum := want
	if whole {
		h := sha1.New()
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, end)); err != nil {
			return err
		}
		sum = h.Sum(nil)
	}
	if !bytes.Equal(got, want) || !bytes.Equal(got, sum) {
		return fmt.Errorf("pack %s is cut short or changed", file)
	}
	return nil
}

// checkIndex reads an index and compares it with the pack it is for.
func checkIndex(index, pack string) error {
	idx, err := readIndex(index)
	if err != nil {
		return err
	}
	if !strings.Contains(pack, hex.EncodeToString(idx.PackfileChecksum[:])) {
		return fmt.Errorf("index %s is for another pack", index)
	}
	return nil
}

func readIndex(file string) (*idxfile.MemoryIndex, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	idx := idxfile.NewMemoryIndex()
	return idx, idxfile.NewDecoder(f).Decode(idx)
}
