package state

import (
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestSettleAgain: a step that is to run again loses what is on record of it, and the places that its nodes keep for it. Nothing of another step goes.
func TestSettleAgain(t *testing.T) {
	s := open(t, t.TempDir())
	_, err := s.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	election := StepHash("election")
	var all []clientv3.Op
	for _, step := range []string{"init", "token"} {
		hash := StepHash(step)
		all = append(all, Put(s.RunKey("v1", hash, "started", "n1"), StepStart{Step: step, Attempt: "1"}),
			Put(s.RunKey("v1", hash, "result", "n1"), StepResult{Node: "n1", Step: step, Result: "unknown", Attempt: "1"}),
			Put(s.RunKey("v1", election, "took", "n1", hash), Title(step)))
	}
	all = append(all, Put(s.DecommissionedKey("n1"), gone{By: "ada"}))
	_, err = s.Client.Txn(ctx).Then(all...).Commit()
	must(t, err)
	settled, err := s.Settle(ctx, "token", "ada", false, false)
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
	want := []string{election + "/took/n1/" + StepHash("init"), StepHash("init") + "/result/n1", StepHash("init") + "/started/n1", StepHash("token") + "/again"}
	if slices.Sort(want); !slices.Equal(left, want) {
		t.Errorf("left %q\nwant %q", left, want)
	}
}

// TestSettleUnknown: without a record of the step the error names those of which there is one.
func TestSettleUnknown(t *testing.T) {
	s := open(t, t.TempDir())
	_, err := s.Propose(ctx, Version{ID: "v1"}, nil, 0)
	must(t, err)
	settle := func(want string) {
		t.Helper()
		if _, err := s.Settle(ctx, "x", "ada", true, false); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	settle(`there is no record of a targeted step "x" in version v1, nor of any other`)
	_, err = s.Client.Do(ctx, Put(s.RunKey("v1", StepHash("init"), "result", "n1"), StepResult{Node: "n1", Step: "init", Result: "ok"}))
	must(t, err)
	settle(`there is no record of a targeted step "x" in version v1: there is one of init`)
}
