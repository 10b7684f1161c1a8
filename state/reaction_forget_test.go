package state

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestForgetRuns: of runs with many hosts the oldest go, and so do those that are old by the fleet's clock. The time by
// the clock of a host does not count, even if it is the only one on record.
func TestForgetRuns(t *testing.T) {
	s := open(t, t.TempDir())
	hosts := make([]string, keptHosts/2)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("web%05d", i)
	}
	now := time.Now().UTC()
	give := func(id string, at, clock time.Time, hosts []string) { giveRun(t, s, id, at, clock, hosts) }
	give("r0", now, now.Add(-2*KeptEvents), nil)
	give("r9", now.Add(2*KeptEvents), now, hosts)
	give("r2", now.Add(-2*KeptEvents), now, hosts)
	give("r1", now, now, hosts)
	give("r3", now.Add(-2*KeptEvents), time.Time{}, nil)
	must(t, s.Reactions.Forget(ctx, now))
	if got := runsLeft(t, s); !slices.Equal(got, []string{"r1", "r2", "r3"}) {
		t.Errorf("%v are kept", got)
	}
}

// TestForgetNoOpenRun: a run that is not over stays, however old it is and however many there are, until a host that is
// at it ends it or is given up.
func TestForgetNoOpenRun(t *testing.T) {
	s := open(t, t.TempDir())
	now := time.Now().UTC()
	long := now.Add(-2 * KeptEvents)
	register := func(node string) {
		_, err := s.Client.Txn(ctx).Then(Put(s.Nodes.Key(node), Node{Name: node})).Commit()
		must(t, err)
	}
	register("web1")
	register("web2")
	for _, id := range []string{"over", "open", "running", "waiting", "gone"} {
		giveRun(t, s, id, long, long, []string{"web1"})
	}
	_, err := s.Client.Put(ctx, s.Reactions.pendingKey("open"), "")
	must(t, err)
	must(t, s.Reactions.Tell(ctx, "over", ReactionResult{Node: "web1", State: ReactionDone}))
	must(t, s.Reactions.Tell(ctx, "running", ReactionResult{Node: "web1", State: Running}))
	must(t, s.Reactions.Tell(ctx, "waiting", ReactionResult{Node: "web2", State: ReactionWaits}))
	must(t, s.Reactions.Tell(ctx, "gone", ReactionResult{Node: "web3", State: Running}))
	must(t, s.Reactions.Forget(ctx, now))
	if got := runsLeft(t, s); !slices.Equal(got, []string{"open", "running", "waiting"}) {
		t.Errorf("%v are kept", got)
	}
	must(t, s.Reactions.Tell(ctx, "running", ReactionResult{Node: "web1", State: Failed}))
	_, err = s.Client.Delete(ctx, s.Nodes.Key("web2"))
	must(t, err)
	must(t, s.Reactions.Forget(ctx, now))
	if got := runsLeft(t, s); !slices.Equal(got, []string{"open"}) {
		t.Errorf("%v are kept", got)
	}
}

// TestForgetPages: pages go that are old by the fleet's clock, and those before them. The time by the clock of a host
// does not count, even if it is the only one on record.
func TestForgetPages(t *testing.T) {
	s := open(t, t.TempDir())
	now := time.Now().UTC()
	put := func(n int, at, clock time.Time) {
		_, err := s.Client.Txn(ctx).Then(Put(s.EventLog.pageKey(n), Page{At: at, Clock: clock})).Commit()
		must(t, err)
	}
	left := func() (out []int) {
		must(t, s.EventLog.Forget(ctx, now))
		pages, err := s.EventLog.After(ctx, -1, 100)
		must(t, err)
		for _, p := range pages {
			out = append(out, p.Number)
		}
		return out
	}
	put(1, now.Add(-2*KeptEvents), time.Time{})
	put(2, now.Add(-2*KeptEvents), now)
	if got := left(); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("%v are kept", got)
	}
	put(2, now, now.Add(-2*KeptEvents))
	put(3, now.Add(2*KeptEvents), now)
	if got := left(); !slices.Equal(got, []int{3}) {
		t.Errorf("%v are kept", got)
	}
}

// giveRun puts a run on record, with its time by the clock of the reactor's host and by the fleet's.
func giveRun(t *testing.T, s *Store, id string, at, clock time.Time, hosts []string) {
	t.Helper()
	e := Event{ID: "e", Name: "disk/full", By: "web1", Time: at}
	_, err := s.Client.Txn(ctx).Then(Put(s.Reactions.givenKey(id), ReactionRun{
		ID: id, Reaction: "disk/full", Event: Reacted{Event: e, Occurrences: 1}, Hosts: hosts, By: "web1", At: at, Clock: clock,
	})).Commit()
	must(t, err)
}

// runsLeft returns the ids of the runs that are on record.
func runsLeft(t *testing.T, s *Store) (out []string) {
	t.Helper()
	all, err := s.Reactions.List(ctx)
	must(t, err)
	for _, run := range all {
		out = append(out, run.ID)
	}
	return out
}
