package state

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// TestDecommission: claims are freed, nothing of the node is shown, its name is free, and its next pull brings it back.
func TestDecommission(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	p := register(t, s, "n1", "web", "secret", time.Minute)
	register(t, s, "n2", "web", "other", time.Minute)
	ops := append(s.Statuses.RunningOps(p, "v1"), s.Statuses.Ops("n1", Rollout, Running, Status{Version: "v1"})...)
	for i, node := range []string{"n1", "n2"} {
		ops = append(ops, Put(s.Rollouts.SlotPrefix("web")+fmt.Sprint(i), Claim{Node: node}))
	}
	ops = append(ops, Put(s.Rollouts.SlotPrefix("db")+"0", Claim{Node: "n1"}))
	if _, err := s.Client.Txn(ctx).Then(ops...).Commit(); err != nil {
		t.Fatal(err)
	}
	done, err := s.Nodes.Decommission(ctx, "n1", "somebody", true)
	freed := done.Freed
	slices.Sort(freed)
	if err != nil || !slices.Equal(freed, []string{"slot/db/0", "slot/web/0"}) {
		t.Errorf("freed %q, %v", freed, err)
	}
	o, err := s.Views.Fleet(ctx, true)
	must(t, err)
	_, node := o.Nodes["n1"]
	_, facts := o.Facts["n1"]
	if node || facts || o.Alive["n1"] || o.Running["n1"] != "" || len(o.Statuses["n1"]) > 0 || len(o.Slots["db"]) > 0 {
		t.Errorf("something is left: %+v", o)
	}
	if want := map[string]map[string]Claim{"web": {"1": {Node: "n2"}}}; !reflect.DeepEqual(o.Slots, want) || !o.Alive["n2"] {
		t.Errorf("slots %v, want %v", o.Slots, want)
	}
	if _, err := s.Nodes.Decommission(ctx, "nobody", "x", true); err == nil || !strings.Contains(err.Error(), `no node "nobody"`) {
		t.Errorf("nobody: %v", err)
	}
	register(t, s, "n1", "web", "a new host", time.Minute)
	if o, err = s.Views.Fleet(ctx, false); err != nil || !o.Alive["n1"] || o.Nodes["n1"].Name != "n1" {
		t.Errorf("it is not back: %+v %v", o, err)
	}
}

// TestDecommissionIsCareful: a living node is given up by force only, and what it holds of every kind is freed: its
// places in the fleet, in serialized steps, and in frozen rosters.
func TestDecommissionIsCareful(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	propose(t, s, "v1")
	p := register(t, s, "n1", "web", "secret", time.Minute)
	register(t, s, "n2", "web", "other", time.Minute)
	for _, group := range []string{"web", "canaries"} {
		_, err := s.Rosters.Freeze(ctx, s.Rosters.Key("v1", group), nil, Belongs(everybody).Always())
		must(t, err)
	}
	_, err := s.Rosters.Freeze(ctx, s.Rosters.Key("v1", "db"), nil, ofRole("db"))
	must(t, err)
	claim := Claim{Node: "n1"}
	_, err = s.Client.Txn(ctx).Then(Put(s.Rollouts.SlotPrefix("web")+"0", claim), Put(s.Rollouts.TotalPrefix()+"0", claim), Put(s.Steps.SemaphorePrefix(StepHash("abc"))+"3", claim),
		Put(s.Commands.Prefix("c1", "claim")+"0", claim), Put(s.Commands.Prefix("c1", "claim")+"1", Claim{Node: "n2"}),
		Put(s.Rollouts.TotalPrefix()+"1", Claim{Node: "n2"}), Put(s.Steps.SemaphorePrefix(StepHash("abc"))+"4", Claim{Node: "n2"})).Commit()
	must(t, err)
	before := count(t, s, s.prefix)
	if done, err := s.Nodes.Decommission(ctx, "n1", "op", false); err == nil || !strings.Contains(err.Error(), "pullet decommission --force n1") || len(done.Freed) > 0 {
		t.Errorf("%v %v", done, err)
	}
	if after := count(t, s, s.prefix); after != before {
		t.Errorf("%d keys, before %d", after, before)
	}
	_, err = s.Client.Revoke(ctx, p.Lease)
	must(t, err)
	done, err := s.Nodes.Decommission(ctx, "n1", "op", false)
	freed := done.Freed
	if slices.Sort(freed); err != nil || !slices.Equal(freed, []string{"command_claim/c1/0", "semaphore/" + StepHash("abc") + "/3", "slot/web/0"}) {
		t.Errorf("%q %v", freed, err)
	}
	for prefix, want := range map[string]int64{
		s.Rollouts.SlotPrefix(""): 0, s.Rollouts.TotalPrefix(): 1, s.Steps.SemaphorePrefix(""): 1, s.Commands.claims(): 1, s.Rollouts.DoneKey("v1", "web", "n1"): 1, s.Rollouts.DoneKey("v1", "canaries", "n1"): 1,
		s.Rollouts.DoneKey("v1", "db", ""): 0, s.Nodes.DecommissionedKey("n1"): 1, s.Nodes.SeenKey("web", "n1"): 0, s.Nodes.SeenKey("web", "n2"): 1,
	} {
		if n := count(t, s, prefix); n != want {
			t.Errorf("%s: %d, want %d", prefix, n, want)
		}
	}
	if m, err := s.Rosters.Members(ctx, map[string]Member{"n1": {Role: "web"}}); err != nil || len(m) != 1 {
		t.Errorf("members %v %v", m, err)
	}
	register(t, s, "n1", "web", "secret", time.Minute) // it is back
	if m, err := s.Rosters.Members(ctx, nil); err != nil || len(m) != 2 || count(t, s, s.Nodes.DecommissionedKey("n1")) != 0 {
		t.Errorf("members %v %v", m, err)
	}
}

// TestDecommissionInABusyFleet: that others claim places all the time, and that the node's own record moves, is not in
// the way.
func TestDecommissionInABusyFleet(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	p := register(t, s, "n1", "web", "secret", time.Minute)
	_, err := s.Client.Txn(ctx).Then(Put(s.Rollouts.SlotPrefix("web")+"0", Claim{Node: "n1"})).Commit()
	must(t, err)
	writes := 0
	busy := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/Txn") {
			ops := []clientv3.Op{Put(s.Rollouts.SlotPrefix("db")+fmt.Sprint(writes), Claim{Node: "n2"})}
			if writes < 3 {
				ops = append(ops, Put(s.Nodes.Key("n1"), p.Node))
			}
			writes++
			if _, err := s.Client.Txn(ctx).Then(ops...).Commit(); err != nil {
				return err
			}
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: s.endpoints, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(busy)}})
	must(t, err)
	done, err := Over(client, "f", bootClock).Nodes.Decommission(ctx, "n1", "op", true)
	if must(t, client.Close()); err != nil || !slices.Equal(done.Freed, []string{"slot/web/0"}) || done.By != "" {
		t.Errorf("%+v %v", done, err)
	}
	if n := count(t, s, s.Rollouts.SlotPrefix("db")); n != int64(writes) || writes == 0 {
		t.Errorf("%d claims of others, want %d", n, writes)
	}
}

// TestDecommissionForgetsWhatIsSaidLate: what the node says of itself while it is given up is not kept.
func TestDecommissionForgetsWhatIsSaidLate(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	register(t, s, "n1", "web", "secret", time.Minute)
	late := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if strings.HasSuffix(method, "/Txn") && count(t, s, s.Nodes.DecommissionedKey("n1")) == 1 && count(t, s, s.key("facts", "n1")) == 0 &&
			count(t, s, s.key("late")) == 0 {
			_, put := s.Client.Txn(ctx).Then(clientv3.OpPut(s.key("late"), ""), clientv3.OpPut(s.key("facts", "n1"), `{"os":"linux"}`)).Commit()
			must(t, put)
		}
		return err
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: s.endpoints, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(late)}})
	must(t, err)
	_, err = Over(client, "f", bootClock).Nodes.Decommission(ctx, "n1", "op", true)
	must(t, err)
	must(t, client.Close())
	if count(t, s, s.key("late")) != 1 || count(t, s, s.key("facts", "n1")) != 0 {
		t.Error("the facts of a node that was given up are kept")
	}
}

// TestDecommissionWritesItsOwn: what others hold costs no write, and so wakes nobody.
func TestDecommissionWritesItsOwn(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	writes := func(node string) int64 {
		register(t, s, node, "web", node, time.Minute)
		before, err := s.Client.Get(ctx, s.Nodes.Key(node))
		must(t, err)
		_, err = s.Nodes.Decommission(ctx, node, "op", true)
		must(t, err)
		after, err := s.Client.Get(ctx, s.Nodes.Key(node))
		must(t, err)
		return after.Header.Revision - before.Header.Revision
	}
	alone := writes("n1")
	for i := range 5 {
		_, err := s.Client.Do(ctx, Put(s.Rollouts.SlotPrefix("web")+fmt.Sprint(i), Claim{Node: "other"}))
		must(t, err)
	}
	if beside := writes("n2"); alone == 0 || beside != alone {
		t.Errorf("%d writes beside claims of others, %d without", beside, alone)
	}
}

// TestDecommissionIsFinished: one that was killed between its mark and the end is finished by the next, with what the
// node said of itself meanwhile. A node that came back meanwhile keeps what it has.
func TestDecommissionIsFinished(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	p := register(t, s, "n1", "web", "secret", time.Minute)
	_, err := s.Client.Txn(ctx).Then(Put(s.Rollouts.SlotPrefix("web")+"0", Claim{Node: "n1"})).Commit()
	must(t, err)
	_, _, err = s.Nodes.markGone(ctx, "n1", "ada", true) // and no more
	must(t, err)
	if n := count(t, s, s.Rollouts.SlotPrefix("web")); n != 1 {
		t.Fatalf("%d claims", n)
	}
	_, err = s.Client.Txn(ctx).Then(append(s.Statuses.RunningOps(p, "v1"), s.Statuses.Ops("n1", Rollout, Success, Status{Version: "v1"})...)...).Commit()
	must(t, err)
	done, err := s.Nodes.Decommission(ctx, "n1", "bob", true)
	if err != nil || !slices.Equal(done.Freed, []string{"slot/web/0"}) {
		t.Errorf("%+v %v", done, err)
	}
	if again, err := s.Nodes.Decommission(ctx, "n1", "bob", false); err != nil || again.By != "bob" || len(again.Freed) > 0 {
		t.Errorf("%+v %v", again, err)
	}
	o, err := s.Views.Fleet(ctx, false)
	if _, shown := o.Nodes["n1"]; err != nil || shown || len(o.Statuses) > 0 || len(o.Running) > 0 || len(o.Slots) > 0 {
		t.Errorf("something is left: %+v %v", o, err)
	}

	register(t, s, "n1", "web", "secret", time.Minute)
	_, mark, err := s.Nodes.markGone(ctx, "n1", "ada", true)
	must(t, err)
	register(t, s, "n1", "web", "secret", time.Minute)
	_, err = s.Client.Txn(ctx).Then(Put(s.Rollouts.SlotPrefix("web")+"0", Claim{Node: "n1"})).Commit()
	must(t, err)
	var moved *MovedError
	if freed, err := s.Nodes.freeAll(ctx, "n1", mark); !errors.As(err, &moved) || len(freed) > 0 || count(t, s, s.Rollouts.SlotPrefix("web")) != 1 {
		t.Errorf("it came back: %q %v", freed, err)
	}
}
