package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestThousandFailAtOnce: a commit that fails on a thousand nodes in the same moment halts the group once; every
// failure is on record with its reason, each node is in one state of a category, and the fleet still fits on a screen.
func TestThousandFailAtOnce(t *testing.T) {
	const nodes = 1000
	dir := t.TempDir()
	config := filepath.Join(dir, "pullet.yaml")
	text := fmt.Sprintf("node: {name: web0000}\nrepositories: [{name: main, url: /nowhere}]\netcd: {dir: %[1]s/etcd}\npaths: {state: %[1]s/state}\n", dir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := state.Open(ctx, state.Config{Fleet: "default", Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.Versions.Propose(ctx, state.Version{ID: "v1", By: "ada"}, nil, 0)
	must(err)
	current, rev, err := s.Versions.Current(ctx)
	must(err)
	_, err = s.Versions.Propose(ctx, state.Version{ID: "v2", By: "ada", Previous: "v1"}, current, rev)
	must(err)
	current, rev, err = s.Versions.Current(ctx)
	must(err)
	turns := make([]*lock.Turn, nodes)
	all(t, nodes, func(i int) error {
		name := fmt.Sprintf("web%04d", i)
		p, err := s.Presences.Register(ctx, state.Node{Name: name, Role: "web", LastSeen: time.Now()}, state.Alive{Owner: name}, nil, time.Minute)
		if err != nil {
			return err
		}
		turns[i] = lock.NewTurn(s, lock.Request{Presence: p, Version: current, VersionRev: rev, Run: "run-" + name, Rules: lock.Rules{
			Group: "web", Role: "web", Limit: func(roster int) int { return roster }, GroupOf: func(_ string, m state.Member) string { return m.Role },
		}})
		_, err = s.Client.Txn(ctx).Then(append(s.Statuses.RunningOps(p, "v1"), s.Statuses.Ops(name, state.Configured, state.Running, state.Status{Version: "v2"})...)...).Commit()
		return err
	})
	all(t, nodes, func(i int) error {
		name := fmt.Sprintf("web%04d", i)
		reason := "site/motd: no disk on " + name
		if err := s.Statuses.Set(ctx, name, state.Configured, state.Failed, state.Status{Version: "v2", Reason: reason, Time: time.Now()}); err != nil {
			return err
		}
		asked, cancel := context.WithTimeout(ctx, 30*time.Second) // a pull has 10 s to record its end, on a host of its own
		defer cancel()
		return turns[i].Fail(asked, reason, lock.Halting)
	})
	pullet := func(code int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(ctx, append(args, "--config", config), &out, &errs, nil); got != code {
			t.Errorf("%v: exit code %d, want %d: %s", args, got, code, &errs)
		}
		return out.String()
	}
	var failures map[string][]failure
	must(json.Unmarshal([]byte(pullet(1, "failures", "-o", "json")), &failures))
	for _, category := range []string{state.Configured, state.Rollout} {
		if len(failures[category]) != nodes {
			t.Errorf("%s: %d failures", category, len(failures[category]))
		}
		for i, f := range failures[category] {
			if name := fmt.Sprintf("web%04d", i); f.Node != name || f.Reason != "site/motd: no disk on "+name {
				t.Errorf("%s: %+v", category, f)
			}
		}
	}
	if lines := strings.Count(pullet(1, "failures", "--category", "rollout"), "\n"); lines != nodes+1 {
		t.Errorf("%d lines of failures", lines)
	}
	screen := pullet(0, "status")
	for _, want := range []string{"\n1000 nodes: 1000 failed\n", "\nand 980 more: pullet nodes --state failed,lost,missing,upgrading\n"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	if lines := strings.Count(screen, "\n"); lines > 40 {
		t.Errorf("%d lines do not fit on a screen", lines)
	}
	gate, _, err := s.Rollouts.Gate(ctx, "v2", "web") // the first failure is what it says, however many came after
	must(err)
	if gate.State != state.Halted || len(gate.Failed) == 0 || gate.Node != gate.Failed[0] || gate.Reason != "site/motd: no disk on "+gate.Node {
		t.Errorf("%s, %d failed, the first %s: %s", gate.State, len(gate.Failed), gate.Node, gate.Reason)
	}
	oneStateEach(t, s, nodes)
}

// oneStateEach: each node is in exactly one state of each category that anything was said of.
func oneStateEach(t *testing.T, s *state.Store, nodes int) {
	t.Helper()
	got, err := s.Client.Get(context.Background(), "/pullet/default/status/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]int{} // by category and node
	for _, kv := range got.Kvs {
		part := strings.Split(string(kv.Key), "/")
		states[part[4]+" "+part[6]]++
	}
	for of, n := range states {
		if n != 1 {
			t.Errorf("%s: in %d states", of, n)
		}
	}
	if len(states) != 3*nodes { // provisioned, configured, rollout
		t.Errorf("%d states", len(states))
	}
}

// all does something for each of many at once.
func all(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	errs := make(chan error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs <- do(i) })
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
