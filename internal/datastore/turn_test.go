package datastore

import (
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/tier"
)

// turn asks for the turn of a host as its agent does.
func (c *cluster) turn(name string) Turn {
	c.Helper()
	t, err := TakeTurn(c.Context(), c.hosts[name].Config)
	c.must(err)
	return t
}

// TestTurn: one member at a time may be away, and only when each other one is there.
func TestTurn(t *testing.T) {
	t.Parallel()
	tier.Long(t, "three members come one behind the other")
	c := threeMembers(t)
	c.until("each serves", func() bool { return c.hosts["db2"].has(socketName) && c.hosts["db3"].has(socketName) })
	c.until("db2 may be away", func() bool { return c.turn("db2") == Turn{} })
	for _, name := range []string{"db1", "db3"} {
		if got := c.turn(name); got != (Turn{Waits: "db2 has the turn"}) {
			t.Error(name, got)
		}
	}
	c.must(KeepTurn(t.Context(), c.hosts["db2"].Config))
	c.must(GiveTurn(t.Context(), c.hosts["db3"].Config)) // it has none
	if got := c.turn("db3"); got != (Turn{Waits: "db2 has the turn"}) {
		t.Error(got)
	}
	c.kill("db2") // it was to be away: until its lease ends, and as long as it is
	if got := c.turn("db3"); got != (Turn{Waits: "db2 has the turn"}) {
		t.Error(got)
	}
	if got := c.turn("db2"); got != (Turn{}) {
		t.Error("who does not run needs no turn: ", got)
	}
	keeper := c.keeperAt("db1")
	_, err := keeper.Delete(t.Context(), "/pullet/"+fleetName+"/datastore/turn") // as its lease does
	c.must(err)
	var asking sync.WaitGroup
	end := time.Now().Add(5 * time.Second)
	for _, name := range []string{"db1", "db3"} {
		asking.Go(func() {
			for time.Now().Before(end) {
				if got := c.turn(name); got.Waits == "" {
					t.Error(name + " may be away beside db2")
				}
			}
		})
	}
	asking.Wait()
	if got := c.turn("db1"); got != (Turn{"db2 does not answer", "look at pullet-etcd on db2: pullet datastore status"}) {
		t.Error(got)
	}
	c.start("db2")
	c.until("db3 may be away", func() bool { return c.turn("db3") == Turn{} })
}

// TestMissed: for what a member waits before it may be away.
func TestMissed(t *testing.T) {
	voters := []*pb.Member{{ID: 3, Name: "db3"}, {ID: 1, Name: "db1"}, {ID: 2, Name: "db2"}}
	how := func(index uint64, errs ...string) *clientv3.StatusResponse {
		return &clientv3.StatusResponse{RaftIndex: index, RaftAppliedIndex: index, Errors: errs}
	}
	type answers = map[uint64]*clientv3.StatusResponse
	const cure = "look at pullet-etcd on db2: pullet datastore status"
	for what, c := range map[string]struct {
		voters []*pb.Member
		answers
		want Turn
	}{
		"all are there": {voters, answers{1: how(9000), 2: how(8500), 3: how(9000)}, Turn{}},
		"one is away":   {voters, answers{1: how(9000), 3: how(9000)}, Turn{"db2 does not answer", cure}},
		"one has no leader": {voters, answers{1: how(9000), 2: how(9000, "etcdserver: no leader"), 3: how(9000)},
			Turn{"db2: etcdserver: no leader", cure}},
		"one is behind": {voters, answers{1: how(9000), 2: how(7000), 3: how(9000)}, Turn{Waits: "db2 lacks 2000 changes"}},
		"two members": {voters[:2], answers{1: how(9000), 3: how(9000)},
			Turn{"there are two, and nothing is written without one of them", "pullet datastore status says for which host they wait"}},
		"one alone": {voters[:1], answers{3: how(9000)}, Turn{}},
	} {
		if got := missed(c.voters, c.answers); got != c.want {
			t.Errorf("%s: %+v", what, got)
		}
	}
}
