package datastore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/state"
)

// Restoring is a backup that is to become the fleet's record.
type Restoring struct {
	Config
	Fleet    string
	Node     string                           // this host
	From     string                           // the file
	Keys     func() ([]trust.Identity, error) // that open it, where it is encrypted
	Believed []byte                           // authorities that this host believes, in PEM; nothing: not known
}

// Restored is what was restored.
type Restored struct {
	Made        time.Time // the backup
	Authority   bool      // that of the fleet came with it
	Fingerprint string    // of the fleet's authority
}

const (
	restoringFile = "restore.db"     // the snapshot of a backup
	restoringDir  = "member.restore" // the record that is made from it
)

// Restore makes the fleet's record from a backup, where there is none. It is another cluster to etcd, so that every
// host sees that the record went back in time. The record is in its place when it is whole, and not before; who is
// killed does it again.
func (r Restoring) Restore(now time.Time) (done Restored, err error) {
	if err := (leaving{r.Config}).finish(); err != nil {
		return done, err
	}
	to := r.file(memberDir)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return done, errors.Join(err, fmt.Errorf("there is a record in %s: stop pullet-etcd and move it away first", to))
	}
	if err := r.makeDir(); err != nil {
		return done, err
	}
	defer func() {
		err = errors.Join(err, os.RemoveAll(r.file(restoringFile)), os.RemoveAll(r.file(restoringDir)))
	}()
	u, err := r.unpack()
	if err != nil {
		return done, fmt.Errorf("%s: %w", r.From, err)
	}
	if err := r.record(now); err != nil {
		return done, fmt.Errorf("restore %s: %w", r.From, err)
	}
	done = Restored{u.Made, u.brought != nil, u.authority.Fingerprint()}
	if done.Authority {
		if err := durable.Replace(r.file(authorityFile), u.brought); err != nil {
			return done, err
		}
	}
	// Members of the cluster that had the record may come back, and learn that it goes on here.
	went := state.Recovery{Cluster: u.Cluster, Node: r.Node, At: now.UTC()}
	if err := durable.WriteJSON(r.file(recoveryFile), went); err != nil {
		return done, err
	}
	if err := os.Rename(r.file(restoringDir), to); err != nil {
		return done, err
	}
	return done, durable.SyncDir(r.Dir)
}

// record makes the files of etcd from the snapshot.
func (r Restoring) record(now time.Time) error {
	return r.remake(r.Node, r.file(restoringFile), "restored "+now.UTC().Format(time.RFC3339Nano), false)
}

// remake makes the files of another cluster from a record, with this host as the only member. Of a snapshot etcd checks
// the sum at its end; the file of a member has none.
func (c Config) remake(node, record, token string, ofMember bool) (err error) {
	defer recovered(&err)
	// The record of one member: those who were members with it are not, and listen no more.
	for _, name := range []string{clusterFile, lifeFile} {
		if err := os.Remove(c.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	member, err := c.member(node)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(c.file(restoringDir)); err != nil { // of one that was killed
		return err
	}
	return snapshot.NewV3(toolLog()).Restore(snapshot.RestoreConfig{
		SnapshotPath: record, SkipHashCheck: ofMember, OutputDataDir: c.file(restoringDir),
		Name: member.Name, PeerURLs: []string{member.AdvertisePeerUrls[0].String()},
		InitialCluster: member.InitialCluster, InitialClusterToken: token,
	})
}
