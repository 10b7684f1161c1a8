package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestBrokenCommand: a command that cannot be read is told, and keeps the node from nothing.
func TestBrokenCommand(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	ctx := context.Background()
	s, err := h.OpenStore(ctx)
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: s.Client.Endpoints()}) // one that writes anything
	if err != nil {
		t.Fatal(err)
	}
	root, _ := strings.CutSuffix(s.Commands.Prefix("c1", ""), "command_/c1/")
	for key, value := range map[string]string{"command_given/c1": "no JSON", "command_pending/c1": ""} {
		if _, err := etcd.Put(ctx, root+key, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := etcd.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out := h.pull()
	if !out.Upgrade || h.statuses()[state.Rollout].State != state.Success {
		t.Errorf("it did not upgrade: %+v", out)
	}
	if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0].Error(), "command_given/c1 cannot be read") || out.ExitCode() != ExitOK {
		t.Errorf("%q %q", out.Warnings, out.Failures)
	}
}

// TestCommandPlaces: a place at a command that a dead node keeps takes nothing of the time for the gates of the
// rollout.
func TestCommandPlaces(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Agent.AllowRun.Anybody = true
	ctx := context.Background()
	s, err := h.OpenStore(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"c1", "c2"} {
		c := state.Command{ID: id, Args: []string{"true"}, Stages: [][]string{{"dead", "web1"}}, Max: 1, Timeout: time.Minute, Until: time.Now().Add(time.Hour), At: time.Now()}
		_, err := s.Client.Txn(ctx).Then(state.Put(s.Commands.Prefix(id, "claim")+"0", state.Claim{Node: "dead"})).Commit()
		if err := errors.Join(err, s.Commands.Give(ctx, c)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	p := a.pull(ctx, Options{Wait: 3 * time.Second, Waiting: func(*lock.Wait) {}})
	if err := errors.Join(p.do(ctx), p.local.close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	if p.waits.spent != 0 || p.waits.aside < p.Wait || p.waits.aside > 2*p.Wait {
		t.Errorf("%s at gates, %s for commands", p.waits.spent, p.waits.aside)
	}
	if !p.out.Upgrade || len(p.out.Failures) > 0 || p.out.Wait != nil {
		t.Errorf("%+v", p.out)
	}
}
