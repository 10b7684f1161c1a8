package state

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pullet/pullet/internal/durable"
)

// embedded is the single etcd member in a directory of this machine: run by this process, or by another one of the
// node.
type embedded struct {
	dir      string
	endpoint string
	server   *embed.Etcd // nil: another process runs it
	crash    *crash      // of the member that this process runs
	follows  sync.WaitGroup
	rest     context.CancelFunc // ends follow; nil: nobody follows
	lock     *flock.Flock
	sockets  string // a directory made for the sockets, where the state directory's path is too long or too odd for one
}

// Limits of the embedded member. One node writes a few keys at each pull.
const (
	tick          = 10 * time.Millisecond
	election      = 50 * time.Millisecond // alone, the member wins at once: this is what a start waits for
	walSegment    = 1 << 20
	startTimeout  = 20 * time.Second
	maxSocketPath = 90  // of the 108 bytes that the kernel allows, less the names
	snapshotEvery = 500 // entries of the log: those behind the last snapshot are gone through at every start
	keptEntries   = 4 * snapshotEvery
	keptRevisions = 1000
)

// start runs the member in this process and waits until it serves.
func (e *embedded) start(ctx context.Context, data string) error {
	sockets, err := e.socketDir(data)
	if err != nil {
		return err
	}
	client, peer := socketURL(sockets, "client"), socketURL(sockets, "peer")
	c := e.config(data, client, peer)
	first, err := firstStart(data, c.Dir)
	if err == nil && first {
		err = e.bootstrap(ctx, data, *c)
	}
	if err != nil {
		return err
	}
	if err := e.serve(ctx, c); err != nil {
		return err
	}
	if err := e.compact(ctx); err != nil {
		return err
	}
	e.endpoint = client.String()
	return durable.Replace(filepath.Join(data, "endpoint"), []byte(e.endpoint+"\n"))
}

// config is how the member runs.
func (e *embedded) config(data string, client, peer url.URL) *embed.Config {
	c := embed.NewConfig()
	c.Dir = filepath.Join(data, "member")
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(
		zap.New(zapcore.NewNopCore(), zap.WithFatalHook(e.crash), zap.WithPanicHook(e.crash)),
	)
	c.TickMs, c.ElectionMs = uint(tick.Milliseconds()), uint(election.Milliseconds())
	c.AutoCompactionMode, c.AutoCompactionRetention = "revision", strconv.Itoa(keptRevisions)
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEvery, keptEntries
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// Of a peer's URL etcd listens at the host: with a path alone it would take an abstract socket, open to everybody.
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{{Scheme: peer.Scheme, Host: peer.Path}}, []url.URL{peer}
	c.InitialCluster = c.Name + "=" + peer.String()
	return c
}

// serve launches the member, once its files are free, and waits until it is ready.
func (e *embedded) serve(ctx context.Context, c *embed.Config) error {
	if err := AwaitUnlocked(ctx, c.Dir); err != nil {
		return err
	}
	if err := e.launch(c); err != nil {
		return err
	}
	select {
	case <-e.server.Server.ReadyNotify():
		return nil
	case err := <-e.server.Err():
		return err
	case <-e.crash.Done():
		return e.crash.broken()
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startTimeout):
		return fmt.Errorf("not ready after %s", startTimeout)
	}
}

// compact forgets how keys were long ago. etcd does so every five minutes only, for which single pulls do not run it.
func (e *embedded) compact(ctx context.Context) error {
	kv := e.server.Server.KV()
	if kv.Rev()-kv.FirstRev() < 2*keptRevisions {
		return nil
	}
	_, err := e.server.Server.Compact(ctx, &etcdserverpb.CompactionRequest{Revision: kv.Rev() - keptRevisions})
	return err
}

// launch starts the member. Damaged files can make etcd end or hang instead of returning.
func (e *embedded) launch(c *embed.Config) error {
	failed := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				e.crash.fail(fmt.Errorf("%v", p))
			}
		}()
		if err := readable(c.Dir); err != nil {
			failed <- err
			return
		}
		server, err := embed.StartEtcd(c)
		e.server = server
		failed <- err
	}()
	select {
	case err := <-failed:
		return err
	case <-e.crash.Done():
	case <-time.After(startTimeout):
		e.crash.fail(fmt.Errorf("it does not start within %s", startTimeout))
	}
	return e.crash.broken()
}

// A shorter log than for a fleet: it is written out at every start. It is etcd's own variable, which its members read
// at any time.
func init() { wal.SegmentSizeBytes = walSegment }

// socketDir is where the sockets lie: beside the data, or in a private directory of its own when that path is too long
// or too odd.
func (e *embedded) socketDir(data string) (string, error) {
	abs, err := filepath.Abs(data)
	if err != nil {
		return "", err
	}
	if err := removeSockets(abs); err != nil {
		return "", err
	}
	if len(abs) <= maxSocketPath &&
		!strings.ContainsAny(abs, ",=%?# ") { // which mean something in etcd's lists of URLs
		return abs, nil
	}
	e.sockets, err = os.MkdirTemp("", socketsPrefix)
	return e.sockets, err
}

const socketsPrefix = "pullet-etcd-"

// removeSockets removes what a member that was killed left behind.
func removeSockets(abs string) error {
	old := []string{
		filepath.Join(abs, "client.sock:0"),
		filepath.Join(abs, "peer.sock:0"),
		filepath.Join(abs, "endpoint"),
	}
	text, err := os.ReadFile(filepath.Join(abs, "endpoint"))
	elsewhere := filepath.Dir(strings.TrimPrefix(strings.TrimSpace(string(text)), "unix://"))
	if err == nil && filepath.Dir(elsewhere) == filepath.Clean(os.TempDir()) &&
		strings.HasPrefix(filepath.Base(elsewhere), socketsPrefix) {
		old = append(old, elsewhere)
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// socketURL is a unix socket as etcd spells it: the port is part of its form and means nothing.
func socketURL(dir, name string) url.URL {
	return url.URL{Scheme: "unix", Path: filepath.Join(dir, name+".sock:0")}
}

// stopFollowing ends what may still make this process run the member.
func (e *embedded) stopFollowing() {
	if e.rest != nil {
		e.rest()
		e.follows.Wait()
	}
}

// end stops the member in order, as far as that goes.
func (e *embedded) end() error {
	if e.server == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-e.server.Server.ReadyNotify():
		default: // Close alone would wait until it is
			e.server.Server.HardStop()
		}
		e.server.Close()
	}()
	select {
	case <-done:
	case <-e.crash.Done():
	}
	return e.crash.broken()
}

// stop ends the member if this process runs it.
func (e *embedded) stop() error {
	if e.crash.broken() != nil { // nothing of it can be ended in order
		return nil
	}
	if err := e.end(); err != nil {
		return err
	}
	err := e.rested()
	if e.sockets != "" {
		err = errors.Join(err, os.RemoveAll(e.sockets))
	}
	return errors.Join(err, e.lock.Unlock())
}
