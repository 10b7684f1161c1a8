package state

import (
	"fmt"
	"testing"
	"time"
)

// TestForgetRuns: of runs with many hosts the oldest go, and so do those that are old, or of a time that is absurd.
func TestForgetRuns(t *testing.T) {
	s := open(t, t.TempDir())
	hosts := make([]string, keptHosts/2)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("web%05d", i)
	}
	now := time.Now().UTC()
	give := func(id string, at time.Time, hosts []string) {
		e := Event{ID: "e", Name: "disk/full", By: "web1", Time: at}
		_, err := s.Client.Txn(ctx).Then(Put(s.Reactions.givenKey(id), ReactionRun{
			ID: id, Reaction: "disk/full", Event: Reacted{Event: e, Occurrences: 1}, Hosts: hosts, By: "web1", At: at,
		})).Commit()
		must(t, err)
	}
	give("r0", now.Add(-2*KeptEvents), nil)
	give("r1", now, hosts)
	give("r2", now, hosts)
	give("r3", now, hosts)
	give("r4", now.Add(2*KeptEvents), nil)
	must(t, s.Reactions.Forget(ctx, now))
	all, err := s.Reactions.List(ctx, "")
	must(t, err)
	if len(all) != 2 || all[0].ID != "r2" || all[1].ID != "r3" {
		t.Errorf("%d runs are kept: %+v", len(all), all[0].ID)
	}
}
