package puller

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

// TestIndexOfAnotherTree: the child that reads packs of the remote writes their indexes. One that gives a commit the
// files of another one is noticed, for directories, commits and files alike: an error, or a store that is built anew.
func TestIndexOfAnotherTree(t *testing.T) {
	s := newContentsScene(t)
	evil := s.dev(s.base, "jobs/db/main", "evil")
	s.set(evil)
	for name, objects := range map[string][2]string{
		"directory": {s.base + ":jobs", evil + ":jobs"},
		"root":      {s.base + "^{tree}", evil + "^{tree}"},
		"file":      {s.base + ":jobs/db/main", evil + ":jobs/db/main"},
		"commit":    {s.base, evil},
	} {
		t.Run(name, func(t *testing.T) {
			src := s.source()
			src.Verify = Verify{} // so that the store has both
			p := open(t, t.TempDir(), src)
			pull(t, p)
			p.repos[0].src = s.source()
			swapInIndex(t, p.repos[0].store.dir, s.run(s.dir, "rev-parse", objects[0]), s.run(s.dir, "rev-parse", objects[1]))
			must(t, p.repos[0].store.reset())
			text, err := readAt(t, p, Head{Repo: "main", Commit: s.base}, "jobs/db/main")
			if err == nil && string(text) == "1" {
				return // the store was built anew
			}
			expect(t, err, "content does not match its name")
		})
	}
}

func readAt(t *testing.T, p *Puller, h Head, path string) ([]byte, error) {
	s, err := p.Snapshot(t.Context(), []Head{h})
	if err != nil {
		return nil, err
	}
	f, err := s.Layers[0].FS.Open(path)
	must(t, err)
	defer f.Close()
	text := make([]byte, 100)
	n, err := f.Read(text)
	return text[:n], err
}

// swapInIndex gives two objects of a store each other's place in the pack.
func swapInIndex(t *testing.T, dir, one, other string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.idx"))
	must(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		const start, size = 8 + 256*4, sha1.Size
		count := int(text[start-4])<<24 | int(text[start-3])<<16 | int(text[start-2])<<8 | int(text[start-1])
		place := func(id string) []byte {
			raw, err := hex.DecodeString(id)
			must(t, err)
			for i := range count {
				if bytes.Equal(text[start+i*size:start+(i+1)*size], raw) {
					at := start + count*(size+4) + i*4
					return text[at : at+4]
				}
			}
			t.Fatalf("no %s in %s", id, file)
			return nil
		}
		a, b := place(one), place(other)
		kept := bytes.Clone(a)
		copy(a, b)
		copy(b, kept)
		sum := sha1.Sum(text[:len(text)-size])
		copy(text[len(text)-size:], sum[:])
		must(t, os.Chmod(file, 0o600))
		must(t, os.WriteFile(file, text, 0o600))
	}
}
