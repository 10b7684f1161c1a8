package state

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
)

// TestAwait: the bell wakes at once, also when it rang before anybody listened; a context that ends says so.
func TestAwait(t *testing.T) {
	s := open(t, t.TempDir())
	_, rev, err := s.Versions.Current(ctx)
	must(t, err)
	must(t, func() error { _, err := s.Versions.Propose(ctx, Version{ID: "v"}, nil, rev); return err }())
	began := time.Now()
	if !s.Bells.Await(ctx, s.Bells.Key(), 1, time.Minute) || time.Since(began) > patience.Stretch(5*time.Second) {
		t.Errorf("it rang before, and nobody woke for %s", time.Since(began))
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if s.Bells.Await(ended, s.Bells.Key(), 1<<40, time.Minute) {
		t.Error("the context ended")
	}
	if !s.Bells.Await(ctx, s.Bells.Key(), 1<<40, 10*time.Millisecond) {
		t.Error("a poll that is over is no end")
	}
}

// TestAwaitLost: who waits looks for itself when the connection is lost, as a watch alone does not tell; what it asks
// then fails soon, with the reason.
func TestAwaitLost(t *testing.T) {
	t.Parallel()
	member, err := Open(ctx, Config{Fleet: "f", Dir: t.TempDir()})
	must(t, err)
	s, err := Open(ctx, Config{Fleet: "f", Endpoints: member.Client.Endpoints()})
	must(t, err)
	defer s.Close()
	if !Connected(s) {
		t.Error("it is connected")
	}
	heard := make(chan bool, 1)
	listener := s.Bells.Listen(ctx, s.Bells.Key()) // when the watch is there
	go func() { heard <- listener.Await(ctx, 1<<40, time.Minute) }()
	lost := Lost(ctx, s)
	must(t, member.Close())
	for _, ends := range []func(){func() { <-lost }, func() {
		if <-heard {
			t.Error("it heard something")
		}
	}} {
		ended := make(chan struct{})
		go func() { ends(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(patience.Stretch(20 * time.Second)):
			t.Fatal("nobody was told")
		}
	}
	if Connected(s) {
		t.Error("it is not connected")
	}
	began := time.Now()
	_, err = s.Client.Get(ctx, s.Bells.Key())
	if took := time.Since(began); took > operationTimeout {
		t.Errorf("it was known after %s", took)
	}
	if err := s.Explain(err); !strings.Contains(err.Error(), ": no such file or directory; try: ") {
		t.Error(err)
	}
}

// TestAwaitWork wakes for another version, or a command, and not for its own version.
func TestAwaitWork(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	woken := make(chan error, 1)
	go func() { woken <- s.Bells.AwaitWork(ctx, "web1", "v1", 1<<40) }()
	must(t, func() error { _, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0); return err }())
	_, rev, err := s.Versions.Current(ctx)
	must(t, err)
	select {
	case err := <-woken:
		t.Fatalf("woken by its own version: %v", err)
	default:
	}
	must(t, func() error { _, err := s.Versions.Propose(ctx, Version{ID: "v2"}, nil, rev); return err }())
	select {
	case err := <-woken:
		must(t, err)
	case <-time.After(patience.Stretch(10 * time.Second)):
		t.Fatal("not woken")
	}
}

// TestAwaitCommand: what was there when the node looked last is not new, and what comes after is.
func TestAwaitCommand(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	got, err := s.Client.Get(ctx, s.Bells.wakeKey())
	must(t, err)
	seen := got.Kvs[0].ModRevision
	if err := s.Bells.AwaitWork(ctx, "web1", "v1", seen-1); err != nil { // it came in between
		t.Error(err)
	}
	woken := make(chan error, 1)
	go func() { woken <- s.Bells.AwaitWork(ctx, "web1", "v1", seen) }()
	must(t, put(s, s.Bells.Key()))
	select {
	case err := <-woken:
		t.Fatalf("woken by nothing: %v", err)
	default:
	}
	_, err = s.Client.Do(ctx, s.Bells.wakeOp())
	must(t, err)
	must(t, <-woken)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Bells.AwaitWork(ended, "web1", "v1", 1<<40); err == nil {
		t.Error("the context ended")
	}
}

// TestResumeWakes: an agent that backs off from a version that failed looks again when an operator resumes it.
func TestResumeWakes(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	_, err := s.Client.Do(ctx, s.Rollouts.GateOp("v1", "web", Gate{State: Halted, Node: "web1"}))
	must(t, err)
	got, err := s.Client.Get(ctx, s.Bells.wakeKey())
	must(t, err)
	woken := make(chan error, 1)
	go func() { woken <- s.Bells.AwaitWork(ctx, "web1", "v1", got.Header.Revision) }()
	opened, err := s.Rollouts.Resume(ctx, "ada")
	if must(t, err); len(opened) != 1 {
		t.Fatal(opened)
	}
	select {
	case err := <-woken:
		must(t, err)
	case <-time.After(patience.Stretch(10 * time.Second)):
		t.Error("not woken")
	}
}

// looks counts what is read.
type looks struct {
	clientv3.KV
	n atomic.Int64
}

func (l *looks) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	defer l.n.Add(1)
	return l.KV.Get(ctx, key, opts...)
}

// TestAwaitWorkOfOthers does not wake for what is given to other hosts.
func TestAwaitWorkOfOthers(t *testing.T) {
	s := open(t, t.TempDir())
	ring := func(op clientv3.Op) int64 {
		done, err := s.Client.Txn(ctx).Then(op).Commit()
		must(t, err)
		return done.Header.Revision
	}
	seen := ring(s.Bells.wakeOp())
	counts := &looks{KV: s.Client.KV}
	s.Client.KV = counts
	woken := make(chan error, 1)
	go func() { woken <- s.Bells.AwaitWork(ctx, "web1", "v1", seen) }()
	const each = 2 // reads of a look
	for n := range int64(3) {
		patience.Until(t, "it looks", func() bool { return counts.n.Load() >= (n+1)*each })
		ring(s.Bells.wakeHostsOp([]string{"web2", "web10"}))
	}
	patience.Until(t, "it looks", func() bool { return counts.n.Load() >= 4*each })
	select {
	case err := <-woken:
		t.Fatal("it woke for others", err)
	default:
	}
	ring(s.Bells.wakeHostsOp([]string{"web2", "web1"}))
	select {
	case err := <-woken:
		must(t, err)
	case <-time.After(patience.Stretch(time.Minute)):
		t.Fatal("it did not wake")
	}
	if forOthers("", "web1") || forOthers("hosts web1", "web1") || !forOthers("hosts web10", "web1") {
		t.Error("whom the bell rings for")
	}
}
