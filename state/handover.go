package state

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/durable"
)

// HandOver moves the data of this host's own member, in whose directory Dir says, to another directory: what it knows
// goes on there. It returns the id of its cluster, which stays the same. Nothing happens where there is none, and the
// id is 0. It fails while a pull or an agent uses the member, and for one that cannot be read.
func (c Config) HandOver(ctx context.Context, to string) (cluster uint64, err error) {
	if c.Unmade() {
		return 0, nil
	}
	store, err := Open(ctx, Config{Fleet: c.Fleet, Dir: c.Dir}) // what a kill left is put right
	if err != nil {
		return 0, err
	}
	got, err := store.Client.Get(ctx, store.Versions.CurrentKey(), clientv3.WithCountOnly())
	if err = errors.Join(err, store.Close()); err != nil {
		return 0, err
	}
	lock := flock.New(filepath.Join(c.Dir, "lock"))
	free, err := lock.TryLock()
	if err == nil && !free {
		err = errors.New("a pull or an agent uses the record of this host: end it first, such as with " +
			"systemctl stop pullet-agent")
	}
	if err != nil {
		return 0, err
	}
	if err = os.Rename(filepath.Join(c.Dir, "member"), to); err == nil {
		err = errors.Join(durable.SyncDir(c.Dir), durable.SyncDir(filepath.Dir(to)))
	}
	return got.Header.ClusterId, errors.Join(err, lock.Unlock())
}
