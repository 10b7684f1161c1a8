package state

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// TestTakenOver: who found the member of another process goes on when that ends in order or is killed, and whoever came
// with it. A long path has its sockets elsewhere each time.
func TestTakenOver(t *testing.T) {
	for _, name := range []string{"short", strings.Repeat("long", 30)} {
		for _, killed := range []bool{false, true} {
			dir := filepath.Join(t.TempDir(), name)
			p := startOther(t, "store", dir)
			second, third := open(t, dir), open(t, dir)
			if killed {
				p.kill()
			} else {
				must(t, p.in.Close(), p.Wait())
			}
			began := time.Now()
			for i, s := range []*Store{second, third} {
				current, rev, err := s.Versions.Current(ctx)
				must(t, err)
				if is, err := s.Versions.Propose(ctx, Version{ID: fmt.Sprint("v", i)}, current, rev); err != nil || !is.Done {
					t.Errorf("%.10s, killed %v: %v %v", name, killed, is.Done, err)
				}
			}
			if took := time.Since(began); took > dialTimeout {
				t.Errorf("%.10s, killed %v: it took %s", name, killed, took)
			}
		}
	}
}

// TestFindsNoMember: a process that ends before it says where it listens is not waited for.
func TestFindsNoMember(t *testing.T) {
	dir := t.TempDir()
	starting := flock.New(filepath.Join(dir, "lock"))
	must(t, starting.Lock())
	time.AfterFunc(100*time.Millisecond, func() { _ = starting.Unlock() })
	began := time.Now()
	if s := open(t, dir); s.embedded.server == nil || time.Since(began) > dialTimeout {
		t.Errorf("after %s: %v", time.Since(began), s.embedded.server)
	}
}
