package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestSettleAgain: a step that is to run again loses what is on record of it, and the places that its nodes keep for
// it. Nothing of another step goes.
func TestSettleAgain(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	election := StepHash("election")
	var all []clientv3.Op
	for _, step := range []string{"init", "token"} {
		hash := StepHash(step)
		all = append(all, Put(s.Steps.Key("v1", hash, "started", "n1"), StepStart{Step: step, Attempt: "1"}),
			Put(s.Steps.Key("v1", hash, "result", "n1"), StepResult{Node: "n1", Step: step, Result: "unknown", Attempt: "1"}),
			Put(s.Steps.Key("v1", election, "took", "n1", hash), Title(step)))
	}
	all = append(all, Put(s.Nodes.DecommissionedKey("n1"), gone{By: "ada"}))
	_, err = s.Client.Txn(ctx).Then(all...).Commit()
	must(t, err)
	settled, err := s.Steps.Settle(ctx, "token", "ada", Settling{})
	must(t, err)
	if !slices.Equal(settled.Nodes, []string{"n1"}) || !slices.Equal(settled.Gone, []string{"n1"}) || settled.Once || settled.Done {
		t.Errorf("%+v", settled)
	}
	got, err := s.Client.Get(ctx, s.key("run", "v1")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	must(t, err)
	var left []string
	for _, kv := range got.Kvs {
		left = append(left, strings.TrimPrefix(string(kv.Key), s.key("run", "v1")+"/"))
	}
	want := []string{election + "/took/n1/" + StepHash("init"), StepHash("init") + "/result/n1", StepHash("init") + "/started/n1"}
	if slices.Sort(want); !slices.Equal(left, want) {
		t.Errorf("left %q\nwant %q", left, want)
	}
}

// TestSettleMany: a step that 200 nodes began is settled in one transaction, though etcd limits its operations.
func TestSettleMany(t *testing.T) {
	t.Parallel()
	const nodes = 200
	s := open(t, t.TempDir())
	_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	prefix := s.Steps.Key("v1", StepHash("init"), "started", "")
	for i := range nodes {
		_, err = s.Client.Do(ctx, Put(fmt.Sprintf("%sn%d", prefix, i), StepStart{Step: "init", Attempt: "1"}))
		must(t, err)
	}
	settled, err := s.Steps.Settle(ctx, "init", "ada", Settling{})
	must(t, err)
	got, err := s.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	must(t, err)
	if len(settled.Nodes) != nodes || got.Count != 0 {
		t.Errorf("%d nodes settled, %d starts left", len(settled.Nodes), got.Count)
	}
}

// TestSettleUnknown: without a record of the step the error names those of which there is one.
func TestSettleUnknown(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	settle := func(want string) {
		t.Helper()
		if _, err := s.Steps.Settle(ctx, "x", "ada", Settling{Done: true}); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	settle(`there is no record of a targeted step "x" in version v1, nor of any other`)
	_, err = s.Client.Do(ctx, Put(s.Steps.Key("v1", StepHash("init"), "result", "n1"), StepResult{Node: "n1", Step: "init", Result: "ok"}))
	must(t, err)
	settle(`there is no record of a targeted step "x" in version v1: there is one of init`)
}

// TestSettleSome: an operator's word counts for the nodes on which the step did not succeed, and by force for all. In a
// version it counts for those that were given up, too: else their places stay taken. Until each of them began again, or
// another node in the place of one that was given up, that is on record.
func TestSettleSome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scope string
		how   Settling
		gone  string
		nodes string
	}{
		{"v1", Settling{}, "", "n2"}, {"v1", Settling{Done: true}, "", "n2"}, {"v1", Settling{Force: true}, "", "n1 n2"}, {"v1", Settling{}, "n1", "n1 n2"},
		{OnceScope, Settling{}, "n1", "n2"}, {OnceScope, Settling{Force: true}, "n1", "n1 n2"}, {OnceScope, Settling{Done: true}, "n2", "n2"},
	} {
		s := open(t, t.TempDir())
		_, err := s.Versions.Propose(ctx, Version{ID: "v1"}, nil, 0)
		must(t, err)
		begins := func(node, result string) {
			t.Helper()
			_, err := s.Client.Txn(ctx).Then(Put(s.Steps.Key(c.scope, StepHash("init"), "started", node), StepStart{Step: "init", Attempt: "1"}),
				Put(s.Steps.Key(c.scope, StepHash("init"), "result", node), StepResult{Node: node, Step: "init", Result: result, Attempt: "1"})).Commit()
			must(t, err)
		}
		begins("n1", "ok")
		begins("n2", "unknown")
		for _, node := range []string{"n1", "n2"} {
			n := Node{Name: node, Decommissioned: node == c.gone}
			_, err := s.Client.Txn(ctx).Then(Put(s.Nodes.Key(node), n)).Commit()
			must(t, err)
		}
		if c.gone != "" {
			_, err := s.Client.Txn(ctx).Then(Put(s.Nodes.DecommissionedKey(c.gone), gone{By: "ada"})).Commit()
			must(t, err)
		}
		settled, err := s.Steps.Settle(ctx, "init", "ada", c.how)
		must(t, err)
		if got := strings.Join(settled.Nodes, " "); got != c.nodes || len(settled.Nodes)+len(settled.Kept) != 2 {
			t.Errorf("%+v: %q, kept %q", c, got, settled.Kept)
		}
		waiting := func(want string) {
			t.Helper()
			o, err := s.Views.Fleet(ctx, false)
			must(t, err)
			if got := o.Settled["init"]; strings.Join(got.Waiting, " ") != want || got.Done != c.how.Done || got.By != "ada" {
				t.Errorf("%+v: %+v, want %q", c, got, want)
			}
		}
		if c.how.Done {
			waiting("")
			continue
		}
		waiting(c.nodes)
		var asked *AskedError
		if _, err := s.Steps.Settle(ctx, "init", "bob", Settling{}); !errors.As(err, &asked) || asked.By != "ada" {
			t.Errorf("%+v: %v", c, err)
		}
		for i, node := range settled.Nodes {
			if node == c.gone {
				node = "n3"
			}
			begins(node, "ok")
			waiting(strings.Join(settled.Nodes[i+1:], " "))
		}
	}
}
