package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/patience"
)

// TestDamagedMember: what power loss can leave of a member's files either heals, or is an error that says what to move
// away. Nothing of it ends or hangs the process.
func TestDamagedMember(t *testing.T) {
	whole := t.TempDir()
	s, err := Open(ctx, Config{Fleet: "f", Dir: whole})
	must(t, err)
	_, err = s.Versions.Propose(ctx, Version{ID: "theirs"}, nil, 0)
	must(t, err, s.Close(), removeSockets(whole), os.WriteFile(filepath.Join(whole, atWork), nil, 0o600))
	for name, damage := range map[string]func(wal, db string) error{
		"log emptied":         func(wal, _ string) error { return os.Truncate(wal, 0) },
		"log garbled":         func(wal, _ string) error { return scribble(wal, 600) },
		"log gone":            func(wal, _ string) error { return os.RemoveAll(filepath.Dir(wal)) },
		"database emptied":    func(_, db string) error { return os.Truncate(db, 0) },
		"database gone":       func(_, db string) error { return os.Remove(db) },
		"database cut short":  func(_, db string) error { return os.Truncate(db, 5000) },
		"database cut":        func(_, db string) error { return os.Truncate(db, 2*4096) },
		"database garbled":    func(_, db string) error { return scribble(db, 0) },
		"pages of it garbled": func(_, db string) error { return scribble(db, 2*4096) },
		"endpoint garbled": func(_, db string) error {
			return os.WriteFile(filepath.Join(db, "../../../../endpoint"), []byte("x"), 0o600)
		},
		"nothing wrong at all": func(string, string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "member")
			must(t, err)
			t.Cleanup(func() { // an etcd that could not start may still make its next log file
				patience.Succeeds(t, "remove its directory", func() error { return os.RemoveAll(dir) })
			})
			must(t, os.CopyFS(dir, os.DirFS(whole)))
			member := filepath.Join(dir, "member", "member")
			must(t, damage(filepath.Join(member, "wal", "0000000000000000-0000000000000000.wal"), filepath.Join(member, "snap", "db")))
			heals := slices.Contains([]string{"endpoint garbled", "nothing wrong at all"}, name)
			limit := 2 * time.Second // where it does not heal, it is tried again until then
			if heals {
				limit = patience.Stretch(time.Minute)
			}
			hurry, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			s, err := Open(hurry, Config{Fleet: "f", Dir: dir})
			if err == nil { // a garbled log heals where the damage begins behind what the database has
				v, _, err := s.Versions.Current(ctx)
				if err != nil || v == nil || v.ID != "theirs" {
					t.Errorf("%v %v", v, err)
				}
				must(t, s.Close())
				return
			}
			if heals {
				t.Errorf("it does not heal: %v", err)
			}
			var away *UnreachableError
			if late := errors.Is(err, context.DeadlineExceeded); !late && (!errors.As(err, &away) || !strings.Contains(err.Error(), "move "+filepath.Join(dir, "member")+" away")) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestBrokenBecauseOf: what to do depends on why.
func TestBrokenBecauseOf(t *testing.T) {
	for want, err := range map[string]error{
		"move /x/member away: ": errors.New("crc mismatch"), "; make room: ": fmt.Errorf("write: %w", syscall.ENOSPC), "; fix that: ": fmt.Errorf("open: %w", syscall.EROFS),
	} {
		if got := (&BrokenError{"/x", err}).Error(); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// scribble writes over a part of a file.
func scribble(file string, at int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(strings.Repeat("no such thing ", 3000)), at)
	return errors.Join(err, f.Close())
}

// TestBroken: a member that cannot go on answers nobody any more, at once and with the reason; closing it does not
// hang, and no other process gets at its files before this one ends.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err, s.Broken())
	cause := &fs.PathError{Op: "write", Path: "db", Err: errors.New("no such luck")}
	go s.embedded.server.GetLogger().Fatal("failed to commit tx", zap.Error(cause)) // as etcd does on a full disk
	<-s.embedded.crash.Done()
	began := time.Now()
	_, _, err = s.Versions.Current(ctx)
	var away *UnreachableError
	if !errors.As(s.Explain(err), &away) || !errors.Is(err, cause) || !strings.Contains(err.Error(), "the embedded etcd in "+dir+" stopped: failed to commit tx: write db: no such luck; ") {
		t.Errorf("%v", err)
	}
	if s.Broken() == nil {
		t.Error("it is not known to be broken")
	}
	must(t, s.Close())
	if took := time.Since(began); took >= operationTimeout { // it waits for no answer
		t.Errorf("it took %s", took)
	}
	if free, err := flock.New(filepath.Join(dir, "lock")).TryLock(); free || err != nil {
		t.Errorf("another process would get what is left of it: %v", err)
	}
}
