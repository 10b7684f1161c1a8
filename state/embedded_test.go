package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/pkg/v3/pbutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/durable"
)

// TestSecondProcess: a command finds the member that another process runs, and both see one record.
func TestSecondProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startOther(t, "store", dir)
	s := open(t, dir)
	v, _, err := s.Versions.Current(ctx)
	if err != nil || v == nil || v.ID != "theirs" {
		t.Errorf("%v %v", v, err)
	}
	if s.embedded.server != nil {
		t.Error("two processes run the member")
	}
}

// TestKilledMember: what the member of a killed process wrote is there when the next one starts it.
func TestKilledMember(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"short", strings.Repeat("long", 30)} {
		dir := filepath.Join(t.TempDir(), name)
		startOther(t, "store", dir).kill()
		s := open(t, dir)
		if v, _, err := s.Versions.Current(ctx); err != nil || v == nil || v.ID != "theirs" {
			t.Errorf("%.10s: %v %v", name, v, err)
		}
	}
}

// logOnly is what a kill in the very first start of a member leaves: a log that does not say of whom.
func logOnly(t *testing.T, data string) {
	t.Helper()
	metadata := pbutil.MustMarshalMessage(&etcdserverpb.Metadata{NodeID: new(uint64(1)), ClusterID: new(uint64(2))})
	w, err := wal.Create(zap.NewNop(), filepath.Join(data, "member", "member", "wal"), metadata)
	must(t, err)
	must(t, w.Close())
}

// TestKilledFirstStart: a member that was killed before it served for the first time starts anew.
func TestKilledFirstStart(t *testing.T) {
	t.Run("before its log was there", func(t *testing.T) { killedFirstStart(t, false) })
	t.Run("with its log", func(t *testing.T) { killedFirstStart(t, true) })
}

func killedFirstStart(t *testing.T, log bool) {
	dir := t.TempDir()
	must(t, durable.Replace(filepath.Join(dir, unborn), nil), durable.Replace(filepath.Join(dir, atWork), nil))
	if log {
		logOnly(t, dir)
	}
	s := open(t, dir)
	if _, err := s.Versions.Propose(ctx, Version{ID: "v"}, nil, 0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, unborn)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next start would drop what is written: %v", err)
	}
}

// TestBornWithSnapshot: raft never goes through the log from its first entry. It panicked there in one of 17,000 starts
// on a busy host.
func TestBornWithSnapshot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open(t, dir)
	found, err := filepath.Glob(filepath.Join(dir, "member", "member", "snap", "*.snap"))
	if err != nil || len(found) == 0 {
		t.Errorf("%v %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(dir, unborn)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next start would drop what is written: %v", err)
	}
}

// TestUnlocked: a member waits for the locks of its log, which a command that just starts has as well.
func TestUnlocked(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err, s.Close())
	logs, err := filepath.Glob(filepath.Join(dir, "member", "member", "wal", "*.wal"))
	must(t, err)
	file, err := fileutil.LockFile(logs[0], os.O_RDWR, 0o600)
	must(t, err)
	cmd := exec.Command("cat")
	cmd.ExtraFiles = []*os.File{file.File}
	in, err := cmd.StdinPipe()
	must(t, err, cmd.Start(), file.File.Close())
	hurry, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := Open(hurry, Config{Fleet: "f", Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another process has it: %v", err)
	}
	must(t, in.Close(), cmd.Wait())
	open(t, dir)
}

// TestNeverReady: a member that does not get ready is an error, and what was started of it ends.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logOnly(t, dir)
	file := filepath.Join(dir, "member", "member", "snap", "db")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	db, err := bbolt.Open(file, 0o600, nil)
	must(t, err, db.Close())
	hurry, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := Open(hurry, Config{Fleet: "f", Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "member")); err != nil {
		t.Error("what it does not know is gone:", err)
	}
}

// TestLongPath: sockets go to a short directory, which is private and gone afterwards.
func TestLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err)
	sockets := s.embedded.sockets
	info, err := os.Stat(sockets)
	if err != nil || info.Mode().Perm() != 0o700 || len(sockets) > maxSocketPath {
		t.Errorf("%q %v %v", sockets, info, err)
	}
	second := open(t, dir)
	if _, err := second.Versions.Propose(ctx, Version{ID: "v"}, nil, 0); err != nil {
		t.Error(err)
	}
	must(t, s.Close())
	if _, err := os.Stat(sockets); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the sockets are left: %v", err)
	}
}

// TestOddPaths: characters that mean something in etcd's lists of URLs do not in a path.
func TestOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a,b", "a b", "a=b", "50%", "a%41", "what?", "no#1", "ü"} {
		dir := filepath.Join(t.TempDir(), name)
		s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		second := open(t, dir)
		if _, err := second.Versions.Propose(ctx, Version{ID: "v"}, nil, 0); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		must(t, s.Close())
	}
}

// TestReopened: the record outlives the store, and one member runs at a time.
func TestReopened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
		must(t, err)
		v, rev, err := s.Versions.Current(ctx)
		if err != nil || i > 0 && (v == nil || v.ID != fmt.Sprint(i-1)) {
			t.Errorf("%d: %v %v", i, v, err)
		}
		if is, err := s.Versions.Propose(ctx, Version{ID: fmt.Sprint(i)}, nil, rev); !is.Done || err != nil {
			t.Errorf("%d: %v %v", i, is.Done, err)
		}
		must(t, s.Close())
	}
}

// TestHistoryIsForgotten: what was written long ago is neither kept nor gone through at each start, although nobody ran
// the member for hours.
func TestHistoryIsForgotten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := Open(ctx, Config{Fleet: "f", Dir: dir})
	must(t, err)
	var writers sync.WaitGroup
	for i := range 20 { // side by side, they share what is synced
		writers.Go(func() {
			for n := range 2*keptRevisions/20 + 1 {
				if _, err := s.Client.Put(ctx, fmt.Sprint("key", i), fmt.Sprint(n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	must(t, s.Close())
	kv := open(t, dir).embedded.server.Server.KV()
	if left := kv.Rev() - kv.FirstRev(); left > keptRevisions {
		t.Errorf("%d revisions are kept", left)
	}
	found, err := filepath.Glob(filepath.Join(dir, "member", "member", "snap", "*.snap"))
	if err != nil || len(found) == 0 {
		t.Errorf("the log is gone through from its begin: %v %v", found, err)
	}
}
