package storm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/cluster"
	"github.com/pullet/pullet/state"
)

// datastore is the etcd of a storm, its faults, and the view of the storm on its record.
type datastore struct {
	*notes
	dir     string
	secure  bool // with users
	cluster *cluster.Cluster
	client  *clientv3.Client // without a link
	store   *state.Store

	era    int                // number of restores
	stop   context.CancelFunc // of the watcher
	seen   atomic.Int64       // the last revision that the log has
	halted sync.Map           // of the watcher

	busy sync.Mutex // held while a fault is injected into the members
}

// quota is the size of the etcd of a storm: enough for its record, and soon filled.
const quota = 96 << 20

// newDatastore starts the members, with users if the storm has them, and watches the record.
func newDatastore(n *notes, dir string, k Kind) *datastore {
	d := &datastore{notes: n, dir: dir, secure: k.Secure}
	d.cluster = cluster.Start(n.t, cluster.Options{Dir: dir, Size: k.Members, TLS: k.Secure, Quota: quota})
	d.connect()
	if k.Secure {
		d.addUsers()
		d.connect()
	}
	got, err := d.client.Get(n.t.Context(), "/")
	if err != nil {
		n.t.Fatal(err)
	}
	d.watch(got.Header.Revision)
	return d
}

// The users of etcd: hosts can do what docs/node.md requires, and the storm can do everything.
const user, password = "node", "not a secret"

// settings returns the part of a configuration of pullet about etcd. Its endpoints are those of the members, or links
// to them.
func (d *datastore) settings(addresses []string) string {
	var endpoints []string
	for _, address := range addresses {
		endpoints = append(endpoints, "'"+d.cluster.Scheme()+"://"+address+"'")
	}
	out := "endpoints: [" + strings.Join(endpoints, ", ") + "]"
	if d.secure {
		at := filepath.Join(d.dir, cluster.CertFile)
		out += fmt.Sprintf(", tls: {ca: %s}, username: %s, passwordFile: %s/password", at, user, d.dir)
	}
	return out
}

// addUsers adds the users, and has etcd require them from here on.
func (d *datastore) addUsers() {
	write(d.t, filepath.Join(d.dir, "password"), password+"\n")
	ctx, c := d.t.Context(), d.client
	end, may := clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)
	for _, do := range []func() error{
		func() error { _, err := c.UserAdd(ctx, "root", password); return err },
		func() error { _, err := c.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := c.RoleAdd(ctx, "fleet"); return err },
		func() error { _, err := c.RoleGrantPermission(ctx, "fleet", prefix, end, may); return err },
		func() error { _, err := c.UserAdd(ctx, user, password); return err },
		func() error { _, err := c.UserGrantRole(ctx, user, "fleet"); return err },
		func() error { _, err := c.AuthEnable(ctx); return err },
	} {
		if err := do(); err != nil {
			d.t.Fatal(err)
		}
	}
}

// connect opens the client of the storm when etcd answers. Users exist from its second call on.
func (d *datastore) connect() {
	c := d.cluster.Config()
	if d.secure && d.client != nil {
		c.Username, c.Password = "root", password
	}
	end := time.Now().Add(time.Minute)
	for {
		client, err := clientv3.New(c)
		if err == nil {
			ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Second)
			_, err = client.Get(ctx, "/")
			cancel()
		}
		if err == nil {
			d.t.Cleanup(func() { client.Close() })
			d.client, d.store = client, state.Over(client, "default", nil)
			return
		}
		if time.Now().After(end) {
			d.t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// watch watches the record after a revision.
func (d *datastore) watch(after int64) {
	ctx, cancel := context.WithCancel(d.t.Context())
	d.stop = cancel
	d.seen.Store(after)
	w := &watcher{notes: d.notes, era: d.era, seen: &d.seen, halted: &d.halted}
	go w.run(ctx, d.client, after+1)
}

// isHalted reports whether a group is halted in the current rollout.
func (d *datastore) isHalted() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	current, _, err := d.store.Versions.Current(ctx)
	if err != nil || current == nil {
		return false
	}
	found := false
	d.halted.Range(func(key, halted any) bool {
		found = found || halted.(bool) && strings.HasPrefix(key.(string), current.Rollout()+"/")
		return !found
	})
	return found
}

// hurtMember kills or freezes a member, which is the leader in half of the cases.
func (d *datastore) hurtMember(x *rand.Rand) {
	if !d.busy.TryLock() {
		return
	}
	defer d.busy.Unlock()
	lasts := chance.Between(x, time.Second, 6*time.Second)
	i := d.cluster.Leader(d.client)
	if n := len(d.cluster.Members()); n > 1 && x.IntN(2) == 0 {
		i = (i + 1 + x.IntN(n-1)) % n
	}
	m := d.cluster.Members()[i]
	if x.IntN(2) == 0 {
		d.did("member killed", "%s for %s", m.Name, lasts/2)
		m.Kill(false)
		time.Sleep(lasts / 2)
		m.Start(d.t)
		return
	}
	d.did("member stopped", "%s for %s", m.Name, lasts)
	frozen := m.Freeze(false)
	time.Sleep(lasts)
	frozen.Thaw()
}

// killAll kills all members, calls do after a time, and starts the members.
func (d *datastore) killAll(lasts time.Duration, do func()) {
	d.cluster.KillAll()
	d.say("away")
	time.Sleep(lasts)
	do()
	d.cluster.StartAll()
	d.say("back")
}

// blackout kills all members for some seconds.
func (d *datastore) blackout(x *rand.Rand) {
	d.busy.Lock()
	defer d.busy.Unlock()
	lasts := chance.Between(x, time.Second, 8*time.Second)
	d.did("all members killed", "for %s", lasts)
	d.killAll(lasts, func() {})
}

// compact compacts the history of etcd that the watcher has seen.
func (d *datastore) compact(*rand.Rand) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Second)
	defer cancel()
	at := d.seen.Load()
	if _, err := d.client.Compact(ctx, at); err == nil {
		d.did("compaction", "to revision %d", at)
	}
}

// restore restores etcd from a copy that is some seconds old. In the end it calls accept, which accepts the restore as
// an operator.
func (d *datastore) restore(x *rand.Rand, accept func()) {
	d.busy.Lock()
	defer d.busy.Unlock()
	copies := filepath.Join(d.dir, "backup")
	copyData := func(from, to string) {
		if err := d.cluster.CopyData(from, to); err != nil {
			d.t.Error(err)
		}
	}
	if err := os.MkdirAll(copies, 0o700); err != nil {
		d.t.Error(err)
	}
	d.killAll(0, func() { copyData(d.dir, copies) })
	time.Sleep(chance.Between(x, 2*time.Second, 12*time.Second))
	d.did("etcd restored", "to where it was")
	d.cluster.KillAll()
	d.stop()
	copyData(copies, d.dir)
	d.era++
	d.say("restored %d", d.era)
	d.cluster.StartAll()
	d.connect()
	d.watch(0) // all that etcd still has belongs to the new era, too
	time.Sleep(chance.Between(x, time.Second, 5*time.Second))
	accept()
}

// revoke ends the lease of a node. The node does not notice.
func (d *datastore) revoke(node string) {
	ctx, cancel := context.WithTimeout(d.t.Context(), 2*time.Second)
	defer cancel()
	got, err := d.client.Get(ctx, d.store.Presences.AliveKey(node))
	if err != nil || len(got.Kvs) == 0 {
		return
	}
	d.did("lease revoked", "%s", node)
	_, _ = d.client.Revoke(ctx, clientv3.LeaseID(got.Kvs[0].Lease)) // without an answer it may be done
}

// fill fills etcd up to its quota for some seconds. Then it makes room as the documentation of etcd says: delete,
// compact, defragment, disarm.
func (d *datastore) fill(x *rand.Rand) {
	d.busy.Lock()
	defer d.busy.Unlock()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	_, err := d.client.Put(ctx, marker, "")
	block, i := strings.Repeat("x", 1<<20), 0
	for ; err == nil && i < 300; i++ {
		_, err = d.client.Put(ctx, fmt.Sprint("/junk/", i), block)
	}
	if errors.Is(err, rpctypes.ErrNoSpace) {
		lasts := chance.Between(x, time.Second, 10*time.Second)
		d.did("etcd out of space", "for %s", lasts)
		time.Sleep(lasts)
	}
	d.makeRoom()
}

// makeRoom makes room in etcd. It tries again after errors, because members start and stop.
func (d *datastore) makeRoom() {
	for end := time.Now().Add(time.Minute); ; time.Sleep(300 * time.Millisecond) {
		err := d.tryRoom()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			d.t.Errorf("make room in etcd: %v", err)
			return
		}
	}
}

// tryRoom makes room in etcd once.
func (d *datastore) tryRoom() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err := d.client.Delete(ctx, "/junk/", clientv3.WithPrefix()); err != nil {
		return err
	}
	marked, err := d.client.Delete(ctx, marker)
	if err != nil {
		return err
	}
	for marked.Deleted > 0 && d.seen.Load() < marked.Header.Revision {
		if ctx.Err() != nil {
			return fmt.Errorf("wait for the watch of the storm: %w", ctx.Err())
		}
		time.Sleep(20 * time.Millisecond)
	}
	if _, err := d.client.Compact(ctx, d.seen.Load()); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	for _, at := range d.cluster.Endpoints() {
		if _, err := d.client.Defragment(ctx, at); err != nil {
			return err
		}
	}
	_, err = d.client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	return err
}
