package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/pullet/pullet/internal/durable"
)

// unborn marks a member that never served. One that is killed in its very first start has a log without the record of
// itself: etcd then waits for a leader for good.
const unborn = "unborn"

// firstStart marks a member that starts for the first time, and clears away what an earlier first start left: nothing
// was ever written to it.
func firstStart(data, member string) (first bool, err error) {
	mark := filepath.Join(data, unborn)
	_, marked := os.Stat(mark)
	_, made := os.Stat(member)
	switch {
	case marked == nil:
		return true, errors.Join(os.RemoveAll(member), os.RemoveAll(filepath.Join(data, atWork)))
	case errors.Is(made, os.ErrNotExist):
		return true, errors.Join(durable.Replace(mark, nil), durable.SyncDir(data))
	default:
		return false, made
	}
}

// bootstrap runs the member once, before the first client comes, until it has a snapshot. Without one, a start goes
// through the log from its first entry. etcd drops entries from memory as soon as it applied 100 of them. raft may
// still look at them when it campaigns, and panics then: it never looks at those before a snapshot.
func (e *embedded) bootstrap(ctx context.Context, data string, c embed.Config) error {
	c.SnapshotCount = 1
	if err := e.serve(ctx, &c); err != nil {
		return err
	}
	if err := e.end(); err != nil {
		return err
	}
	e.server = nil
	return errors.Join(os.Remove(filepath.Join(data, unborn)), durable.SyncDir(data))
}
