package etcdmodel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// TestModelAgrees: the model without faults answers random scripts as a real etcd does: values, revisions, counts,
// branches, errors, the events of watches, and what a revoked lease takes along.
func TestModelAgrees(t *testing.T) {
	real, err := state.Open(t.Context(), state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := real.Close(); err != nil {
			t.Error(err)
		}
	})
	scripts := 300
	if testing.Short() {
		scripts = 30
	}
	var said strings.Builder
	for seed := range uint64(scripts) {
		said.WriteString(strings.Join(agree(t, real.Client, seed), "\n"))
	}
	if testing.Short() {
		return
	}
	// Scripts that never came to these would prove nothing of them.
	for _, want := range []string{
		rpctypes.ErrTooManyOps.Error(), rpctypes.ErrDuplicateKey.Error(), rpctypes.ErrLeaseNotFound.Error(), rpctypes.ErrCompacted.Error(),
		rpctypes.ErrFutureRev.Error(), rpctypes.ErrLeaseTTLTooLarge.Error(), "txn true", "txn false", "revoked", "renewed 600", "compacted @",
		`lease true true \d+ \[\w`, `got \d+ true`, "\n    DELETE", "\n    PUT", `lease \d true\}`, "ended: .*closed", `\n    txn (true|false)`,
	} {
		if !regexp.MustCompile(want).MatchString(said.String()) {
			t.Errorf("no script came to %q", want)
		}
	}
}

// agree runs one script on both, and returns what they said.
func agree(t *testing.T, real *clientv3.Client, seed uint64) []string {
	t.Helper()
	s := newScript(seed)
	ctx, cancel := context.WithTimeout(t.Context(), patience.Stretch(20*time.Second))
	defer cancel()
	want := s.run(t, ctx, real, seed)
	synctest.Test(t, func(t *testing.T) {
		c := New(rand.New(rand.NewPCG(seed, 2)))
		defer c.Close()
		got := s.run(t, t.Context(), c.Connect("n").Client(), seed)
		for n := range want {
			if n >= len(got) || got[n] != want[n] {
				t.Fatalf("seed %d, step %d: the model says\n%s\netcd says\n%s\nafter\n%s", seed, n, strings.Join(got[n:min(n+1, len(got))], ""), want[n], strings.Join(want[:n], "\n"))
			}
		}
		if len(got) != len(want) {
			t.Fatalf("seed %d: the model says more: %q", seed, got[len(want):])
		}
	})
	return want
}

// run does a script and returns what came of each step, and of the watches.
func (s *script) run(t *testing.T, ctx context.Context, client *clientv3.Client, seed uint64) []string {
	t.Helper()
	r := &runner{ctx: ctx, client: client, prefix: fmt.Sprintf("/%d/", seed)}
	begin, err := client.Get(ctx, r.prefix)
	must(t, err)
	r.base = begin.Header.Revision
	var out []string
	for _, step := range s.steps {
		out = append(out, step(r))
	}
	return append(out, r.events(t)...)
}

// events are what the watches of a script saw.
func (r *runner) events(t *testing.T) []string {
	t.Helper()
	for { // also those that wait for what is to come
		got, err := r.client.Put(r.ctx, r.prefix+"pad", "")
		must(t, err)
		if got.Header.Revision > r.base+farRevision {
			break
		}
	}
	var puts []clientv3.Op
	for _, key := range append([]string{"x/1"}, keys...) {
		puts = append(puts, clientv3.OpPut(r.prefix+key, "end"))
	}
	put, err := r.client.Txn(r.ctx).Then(puts...).Commit()
	must(t, err)
	deleted, err := r.client.Delete(r.ctx, r.prefix, clientv3.WithPrefix())
	must(t, err)
	var out []string
	for n, w := range r.watches {
		end := put.Header.Revision
		if w.deletes {
			end = deleted.Header.Revision
		}
		out = append(out, fmt.Sprintf("watch %d: %s", n, r.drain(t, w.channel, end)))
	}
	return out
}

// drain reads a watch until the event that ends it.
func (r *runner) drain(t *testing.T, channel clientv3.WatchChan, end int64) string {
	t.Helper()
	var out strings.Builder
	for answer := range channel {
		if answer.Err() != nil {
			fmt.Fprint(&out, " ended: ", r.failed(answer.Err()), answer.Canceled, r.relative(answer.CompactRevision))
			continue
		}
		for _, e := range answer.Events {
			if e.Kv.ModRevision <= end { // what is after it may come along or not
				fmt.Fprint(&out, "\n    ", e.Type, r.kv(e.Kv))
			}
		}
		if answer.Events[len(answer.Events)-1].Kv.ModRevision >= end {
			return out.String()
		}
	}
	if !strings.Contains(out.String(), "ended") {
		t.Fatal("a watch was closed without a reason")
	}
	return out.String() + " closed"
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
