package datastore

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// TestLockedLog: a member whose log is locked, as by a command that was forked and is not executed yet, waits for it
// and says so. etcd would end the whole process.
func TestLockedLog(t *testing.T) {
	t.Parallel()
	f := made(t)
	f.serve()
	f.end()
	logs, err := filepath.Glob(filepath.Join(f.Config.file(memberDir), "member", "wal", "*.wal"))
	f.must(err)
	if len(logs) == 0 {
		t.Fatal("the member has no log")
	}
	lock, err := fileutil.TryLockFile(logs[0], os.O_WRONLY, 0o600)
	f.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if m, err := startMember(ctx, f.Config, f.Node, nil); err == nil || !strings.Contains(err.Error(), "has a lock on "+logs[0]) {
		t.Errorf("%v %v", m, err)
	}
	f.must(lock.Close())
	f.serve()
}
