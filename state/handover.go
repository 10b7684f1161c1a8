package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/durable"
)

// HandOver moves the data of this host's own member, in whose directory Dir says, to another directory: what it knows
// goes on there. Known is told the id of its cluster before, which stays the same: a kill in between leaves what can be
// done again. Nothing happens where there is no member. It fails while a pull or an agent uses it, and for one that
// cannot be read.
func (c Config) HandOver(ctx context.Context, to string, known func(cluster uint64) error) error {
	if c.Unmade() {
		return nil
	}
	store, err := Open(ctx, Config{Fleet: c.Fleet, Dir: c.Dir}) // what a kill left is put right
	if err != nil {
		return err
	}
	got, err := store.Client.Get(ctx, store.Versions.CurrentKey(), clientv3.WithCountOnly())
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(c.Dir, "lock"))
	free, err := lock.TryLock()
	if err == nil && !free {
		err = errors.New("a pull or an agent uses the record of this host: " +
			"end it first, such as with systemctl stop pullet-agent")
	}
	if err != nil {
		return err
	}
	if err = known(got.Header.ClusterId); err == nil {
		err = os.Rename(filepath.Join(c.Dir, "member"), to)
	}
	if err == nil {
		err = errors.Join(durable.SyncDir(c.Dir), durable.SyncDir(filepath.Dir(to)))
	}
	return errors.Join(err, lock.Unlock())
}
