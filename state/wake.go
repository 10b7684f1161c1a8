package state

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
)

// AliveKey is the key on a node's lease.
func (s *Presences) AliveKey(node string) string { return s.store.key("alive", node) }

// Key is the one key that those watch who are first in a queue: it is written whenever something changed that a
// node may wait for.
func (s *Bells) Key() string { return s.store.key("bell") }

// RingOp wakes the nodes that are first in a queue.
func (s *Bells) RingOp() clientv3.Op {
	return clientv3.OpPut(s.Key(), strconv.FormatInt(time.Now().UnixNano(), 36))
}

// Await waits until a key changes after a revision, or for as long as a poll takes: a watch is never trusted alone. It
// is false when ctx ends first.
func (s *Bells) Await(
	ctx context.Context,
	key string,
	after int64,
	poll time.Duration,
	opts ...clientv3.OpOption,
) bool {
	watch, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), poll)
	defer cancel()
	if after > 0 { // 0: nothing could be read, and what is to come counts
		opts = append(opts, clientv3.WithRev(after+1))
	}
	select {
	case _, open := <-s.store.Client.Watch(watch, key, opts...):
		if !open && watch.Err() == nil { // the watch broke: not so fast again
			Pause(watch, time.Second)
		}
	case <-watch.Done():
	}
	return ctx.Err() == nil
}

// Listener is a watch of a key that stays open from one wait to the next. One that is opened at a revision which is
// past already, as Await's mostly is, hears of what comes only when etcd has looked for what it missed, each 100 ms.
type Listener struct {
	events clientv3.WatchChan
	lost   <-chan struct{}
	Close  context.CancelFunc
}

// Listen begins to listen to what happens to a key from now on: what was there before is to be read afterwards.
func (s *Bells) Listen(ctx context.Context, key string) *Listener {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	late := time.AfterFunc(operationTimeout, cancel) // it waits for the store
	defer late.Stop()
	return &Listener{s.store.Client.Watch(ctx, key), Lost(ctx, s.store), cancel}
}

// Await waits until the key changes after a revision, or for as long as a poll takes. It is false when nothing is heard
// any more, also when the connection is lost.
func (l *Listener) Await(ctx context.Context, after int64, poll time.Duration) bool {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		select {
		case answer, open := <-l.events:
			if !open || answer.Err() != nil {
				return false
			}
			for _, e := range answer.Events {
				if e.Kv.ModRevision > after {
					return true
				}
			}
		case <-l.lost:
			return false
		case <-timer.C:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// Pause waits for so long. It is false when ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// AwaitWork returns nil as soon as the fleet's version is another than the given one, or there is something else to do
// for a node; or why it cannot tell any more. What was there at the revision woken is not new.
func (s *Bells) AwaitWork(ctx context.Context, node, version string, woken int64) error {
	rang := int64(0) // how often the bell rang
	for {
		got, err := s.store.Client.Get(ctx, s.wakeKey())
		if err != nil {
			return err
		}
		v, _, err := s.store.Versions.Current(ctx)
		if unlessBad(err) != nil {
			return err
		}
		if v != nil && v.ID != version {
			return nil
		}
		for _, kv := range got.Kvs {
			says, err := Read[Title](s.store, kv)
			once := rang > 0 && kv.Version == rang+1
			if kv.ModRevision > woken && !(once && err == nil && forOthers(string(says), node)) {
				return nil
			}
			woken, rang = max(woken, kv.ModRevision), kv.Version
		}
		if !s.Await(ctx, s.wakeKey(), got.Header.Revision, time.Minute) {
			return ctx.Err()
		}
	}
}

// wakeHosts begins what the bell says where it rings for some hosts.
const wakeHosts = "hosts "

// forOthers reports a bell that rang for other hosts.
func forOthers(says, node string) bool {
	hosts, some := strings.CutPrefix(says, wakeHosts)
	return some && !slices.Contains(strings.Fields(hosts), node)
}

// wakeHostsOp wakes the agents of some hosts: all where they are many.
func (s *Bells) wakeHostsOp(hosts []string) clientv3.Op {
	says := wakeHosts + strings.Join(hosts, " ")
	if len(says) > maxText { // which is all that is read of it
		return s.wakeOp()
	}
	return clientv3.OpPut(s.wakeKey(), says)
}

// AwaitNodes returns nil as soon as a node registered, changed or left after a revision, or why it cannot tell any
// more.
func (s *Bells) AwaitNodes(ctx context.Context, seen int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	nodes := s.store.Client.Watch(ctx, s.store.key("node", ""), clientv3.WithPrefix(), clientv3.WithRev(seen+1))
	facts := s.store.Client.Watch(ctx, s.store.key("facts", ""), clientv3.WithPrefix(), clientv3.WithRev(seen+1))
	var answer clientv3.WatchResponse
	select {
	case answer = <-nodes:
	case answer = <-facts:
	}
	if len(answer.Events) > 0 {
		return nil
	}
	if err := errors.Join(answer.Err(), ctx.Err()); err != nil {
		return err
	}
	return errWatchEnded
}

var errWatchEnded = errors.New("the watch ended")

// wakeKey is written when there is something new to do for agents: a version, a command to run.
func (s *Bells) wakeKey() string { return s.store.key("wake") }

// wakeOp wakes the agents that wait for their next pull.
func (s *Bells) wakeOp() clientv3.Op {
	return clientv3.OpPut(s.wakeKey(), strconv.FormatInt(time.Now().UnixNano(), 36))
}

// Lost returns a channel that is closed when a store has no connection any more: a watch goes on silently then, so
// whoever waits looks for itself, and learns why. ctx ends it.
func Lost(ctx context.Context, s *Store) <-chan struct{} {
	lost := make(chan struct{})
	conn := s.Client.ActiveConnection()
	if conn == nil { // the client does not use one
		return lost
	}
	go func() {
		for connects(conn) {
			if !conn.WaitForStateChange(ctx, conn.GetState()) {
				return
			}
		}
		close(lost)
	}()
	return lost
}

// Connected reports that a store has a connection, as far as is known.
func Connected(s *Store) bool {
	conn := s.Client.ActiveConnection()
	return conn == nil || connects(conn)
}

func connects(conn *grpc.ClientConn) bool {
	is := conn.GetState()
	return is == connectivity.Ready || is == connectivity.Idle
}
