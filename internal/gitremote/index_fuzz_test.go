package gitremote

import (
	"bytes"
	"crypto/sha1"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// An index that passes the check can be read by go-git.
func FuzzIndex(f *testing.F) {
	text := goodIndex(f)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 2*sha1.Size {
			return
		}
		body := text[:len(text)-sha1.Size]
		sum := sha1.Sum(body) // a child that was taken over would get it right
		text = append(bytes.Clone(body), sum[:]...)
		pack := [sha1.Size]byte(body[len(body)-sha1.Size:])
		for objects := range 4 {
			if checkIndex(text, objects, 1000, pack) != nil {
				continue
			}
			idx := idxfile.NewMemoryIndex()
			if err := idxfile.NewDecoder(bytes.NewReader(text)).Decode(idx); err != nil {
				t.Errorf("go-git: %v", err)
			}
			if n, err := idx.Count(); err != nil || int(n) != objects {
				t.Errorf("%d objects, %v", n, err)
			}
		}
	})
}
