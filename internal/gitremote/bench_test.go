package gitremote

import (
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// BenchmarkChild is what it costs to start the process that reads packs.
func BenchmarkChild(b *testing.B) {
	for b.Loop() {
		if _, err := Isolation(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkListLocal is a pull that finds nothing new, of a repository on this
// machine.
func BenchmarkListLocal(b *testing.B) {
	dir, git := repository(b)
	git("pack-refs", "--all")
	c := Client{Scratch: b.TempDir()}
	for b.Loop() {
		if _, err := c.List(b.Context(), Remote{URL: dir}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFetchLocal is a first fetch of a repository of one commit.
func BenchmarkFetchLocal(b *testing.B) {
	dir, git := repository(b)
	want := plumbing.NewHash(git("rev-parse", "refs/heads/main"))
	c := Client{Scratch: b.TempDir()}
	for b.Loop() {
		q := Request{Wants: []plumbing.Hash{want}, Place: func(string, string) error { return nil }}
		if _, err := c.Fetch(b.Context(), Remote{URL: dir}, q); err != nil {
			b.Fatal(err)
		}
	}
}
