package datastore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/state"
)

// workDir has the copy of a record on which a recovery works.
const workDir = "member.recover"

// setAside puts the files of the member where nothing starts it, and keeps them. Back puts them back, where nothing
// came in their place.
func (r Recovering) setAside(now time.Time) (to memberFiles, back func() error, err error) {
	from, err := r.files()
	if err != nil {
		return "", nil, err
	}
	cluster, err := os.ReadFile(r.file(clusterFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, err
	}
	to = from
	if string(from) == r.file(memberDir) { // else one that was killed did
		to = memberFiles(r.file(asidePrefix + now.UTC().Format("20060102T150405Z")))
		if err := os.Rename(string(from), string(to)); err != nil {
			return "", nil, err
		}
	}
	return to, func() error { return r.putBack(to, cluster) }, durable.SyncDir(r.Dir)
}

func (r Recovering) putBack(from memberFiles, cluster []byte) error {
	if _, err := os.Stat(r.file(memberDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if cluster != nil {
		if err := durable.Replace(r.file(clusterFile), cluster); err != nil {
			return err
		}
	}
	if err := os.Rename(string(from), r.file(memberDir)); err != nil {
		return err
	}
	return durable.SyncDir(r.Dir)
}

// commit has all entries of a log count. A member knows of the last ones only that others may have them: with them the
// record lacks nothing that was confirmed to a host and is here.
func (f memberFiles) commit() (err error) {
	defer recovered(&err)
	err = f.commitAll()
	if errors.Is(err, io.ErrUnexpectedEOF) && wal.Repair(toolLog(), f.log()) { // it was killed as it wrote
		err = f.commitAll()
	}
	return err
}

func (f memberFiles) commitAll() error {
	start, err := f.start()
	if err != nil {
		return err
	}
	w, err := wal.Open(toolLog(), f.log(), start)
	if err != nil {
		return err
	}
	_, hard, entries, err := w.ReadAll()
	if n := len(entries); err == nil && n > 0 {
		hard.Commit = entries[n-1].Index
		err = w.Save(hard, nil)
	}
	return errors.Join(err, w.Close())
}

// settle has etcd write what its log has into its file, as the only member. Nobody reaches it meanwhile.
func (r Recovering) settle(ctx context.Context, at memberFiles) error {
	socket := func(name string) url.URL {
		return url.URL{Scheme: "unix", Path: filepath.Join(r.Dir, name+".sock:0")} // the port means nothing
	}
	client, peer := socket("recover"), socket("peer")
	c := embed.NewConfig()
	c.Name, c.Dir, c.ForceNewCluster = r.Node, string(at), true
	c.QuotaBackendBytes = r.quota()
	level := zap.NewAtomicLevelAt(zapcore.ErrorLevel)
	c.ZapLoggerBuilder = loggedFrom(level)
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{{Scheme: peer.Scheme, Host: peer.Path}}, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	release, err := shorten(c, r.Dir)
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(c)
	if err != nil {
		return errors.Join(fmt.Errorf("etcd does not start with the record of this host: %w", err), release())
	}
	select {
	case <-server.Server.ReadyNotify():
	case err = <-server.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		server.Server.HardStop() // Close alone would wait until it is ready
	}
	(&member{r.Config, server, level, release}).stop()
	return err
}

// goOn makes the record of this host alone from that of a member, and puts it in its place.
func (r Recovering) goOn(from memberFiles, cluster uint64, now time.Time) error {
	if err := r.remake(r.Node, from.record(), "recovered "+now.UTC().Format(time.RFC3339Nano), true); err != nil {
		return err
	}
	recovery := state.Recovery{Cluster: cluster, Node: r.Node, At: now.UTC()}
	if err := durable.WriteJSON(r.file(recoveryFile), recovery); err != nil {
		return err
	}
	if err := os.Rename(r.file(restoringDir), r.file(memberDir)); err != nil {
		return err
	}
	return durable.SyncDir(r.Dir)
}

// recordRecovery records that this host went on alone, before anybody is answered.
func recordRecovery(ctx context.Context, c Config, d *state.Datastores) error {
	var r state.Recovery
	if _, err := os.Stat(c.file(recoveryFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := durable.ReadJSON(c.file(recoveryFile), &r)
	if err == nil {
		err = d.Recovered(ctx, r)
	}
	if err == nil {
		err = os.Remove(c.file(recoveryFile))
	}
	return err
}
