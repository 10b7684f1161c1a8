package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// TestNewerVersionInMidRun: a host in the middle of a step ends that, starts no further one of a version that the fleet
// left, keeps its slot, and goes on inside it with the newer version.
func TestNewerVersionInMidRun(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.exits(ExitOK, "")
	web2.write("f/web2/root/etc/go", "")
	web1.commit("steps:\n- {name: slow, action: cmd.run, parameters: {cmd: 'touch etc/begun; until test -e etc/go; do sleep 0.02; done; touch etc/ended'}}\n" +
		"- {name: behind, action: file.managed, parameters: {name: /etc/behind, content: x}}\n")
	left := web1.head()
	done := make(chan *Outcome)
	go func() {
		out, err := web1.with(Options{})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	web1.started("etc/begun")
	web1.commit(job("three", "true"))
	web2.exits(ExitOK, "")
	web1.write("f/web1/root/etc/go", "")
	out := <-done
	if out.ExitCode() != ExitWaiting || out.Wait == nil || out.Wait.Kind != state.WaitNewer || out.Wait.Gate != "rollout of "+state.Short(left) || web1.file("etc/behind") != "" {
		t.Errorf("%s", saidBy(out, nil))
	}
	web1.started("etc/ended")
	if local := web1.known(); local.Held == nil || local.Upgrading != left {
		t.Errorf("%+v", local)
	}
	if o := web1.overview(); len(o.Slots["web"]) != 1 || o.Statuses["web1"][state.Rollout].Kind != state.WaitNewer {
		t.Errorf("%+v %+v", o.Slots, o.Statuses["web1"])
	}
	web1.exits(ExitOK, "")
	if o := web1.overview(); len(o.Slots["web"]) > 0 || web1.file("etc/motd") != "three" || o.Running["web1"] != web1.head() {
		t.Errorf("%+v", o.Slots)
	}
}

// TestSerializedSteps: the second host waits for its place by name, and the fleet knows that; then it goes on. A step
// that fails halts it for the others, unless it may fail everywhere first; a step may have its own word on lost hosts.
func TestSerializedSteps(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, `steps:
- {name: join, action: cmd.run, parameters: {cmd: 'touch etc/begun; until test -e etc/go; do sleep 0.02; done'}, runOptions: {serialize: {count: 1}, onLost: release}}
`, map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	done := make(chan *Outcome)
	pull := func(h *host, o Options) {
		out, err := h.with(o)
		if err != nil {
			t.Error(err)
		}
		done <- out
	}
	s := state.Over(m.store.Client, "f", nil)
	places := func() int64 {
		t.Helper()
		got, err := s.Client.Get(t.Context(), s.Steps.SemaphorePrefix(state.StepHash("site/join")), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		return got.Count
	}
	go pull(web1, Options{})
	web1.started("etc/begun")
	waits := make(chan *lock.Wait, 10)
	go pull(web2, Options{Wait: time.Minute, Waiting: func(w *lock.Wait) { waits <- w }})
	if w := <-waits; !strings.HasPrefix(w.Gate, "serialize site/join") || !strings.HasPrefix(w.Reason, "web1 holds it") {
		t.Errorf("%+v", w)
	}
	if st := web2.overview().Statuses["web2"][state.Rollout]; st.State != state.Pending || !strings.HasPrefix(st.Gate, "serialize site/join") || places() == 0 {
		t.Errorf("%+v", st)
	}
	web1.write("f/web1/root/etc/go", "")
	if out := <-done; out.ExitCode() != ExitOK {
		t.Errorf("%s", saidBy(out, nil))
	}
	web2.started("etc/begun")
	if st := web2.overview().Statuses["web2"][state.Rollout]; st.State != state.Running {
		t.Errorf("%+v", st)
	}
	web2.write("f/web2/root/etc/go", "")
	if out := <-done; out.ExitCode() != ExitOK || places() != 0 {
		t.Errorf("%d places, %s", places(), saidBy(out, nil))
	}
	fails := "steps:\n- {name: join, action: cmd.run, parameters: {cmd: 'echo x >> etc/tries; exit 3'}, runOptions: {serialize: {count: 1}, failAfterAllTargetsRan: true}}\n"
	web1.commit(fails)
	web1.exits(ExitError, "exit code 3")
	web2.exits(ExitError, "exit code 3")
	if web2.file("etc/tries") != "x\n" || places() != 0 {
		t.Errorf("%q, %d places", web2.file("etc/tries"), places())
	}
	web1.write("repo/pullet.yaml", "rollout: {rollingRules: {global: 2}, maxFailures: 5}\n")
	web1.commit(strings.Replace(fails, ", failAfterAllTargetsRan: true", "", 1))
	web1.exits(ExitError, "exit code 3")
	web2.exits(ExitWaiting, "waiting for step site/join (halted): it failed on web1: ")
	if web2.file("etc/tries") != "x\n" || places() != 0 {
		t.Errorf("%q, %d places", web2.file("etc/tries"), places())
	}
}

// TestBarrierWithFailures: a host whose step failed by its own fault does not keep the others at a barrier, one whose
// step failed by the commit's does.
func TestBarrierWithFailures(t *testing.T) {
	t.Parallel()
	for class, code := range map[string]int{"host": ExitOK, "commit": ExitWaiting} {
		t.Run(class, func(t *testing.T) {
			web1, web2, _ := pair(t, "steps:\n- {name: meet, action: cmd.run, parameters: {cmd: 'test $PULLET_NODE = web2'}, runOptions: {sync: true, failureClass: "+class+"}}\n"+
				"- {name: behind, action: file.managed, parameters: {name: /etc/behind, content: x}}\n", map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
			web2.exits(ExitWaiting, "barrier site/meet: not arrived yet: web1")
			web1.exits(ExitError, "exit code 1")
			web2.exits(code, map[int]string{ExitWaiting: "step site/meet failed on web1"}[code])
			if got := web2.file("etc/behind"); (got == "x") != (code == ExitOK) {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestLongStep: the fleet knows which step of a run takes long, with its place in the run.
func TestLongStep(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "until test -e etc/go; do sleep 0.05; done"))
	begun := make(chan apply.Begun, 10)
	done := make(chan *Outcome)
	go func() {
		out, err := h.with(Options{Begins: func(b apply.Begun) { begun <- b }})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case b := <-begun:
		if b.ID != "site/motd" {
			t.Errorf("%+v", b)
		}
	case <-ctx.Done():
		h.write("root/etc/go", "") // the step ends
		t.Fatalf("nobody is told of a step that begins: %s", saidBy(<-done, nil))
	}
	s := h.open()
	patience.SucceedsWithin(t, time.Minute, "the step is on record", func() error {
		st, err := s.Statuses.Get(t.Context(), "web1", state.Configured, state.Running)
		if err == nil && !strings.Contains(st.Step, ": site/command: ") {
			err = fmt.Errorf("status %+v", st)
		}
		return err
	})
	h.write("root/etc/go", "")
	if out := <-done; out.ExitCode() != ExitOK {
		t.Errorf("%s", saidBy(out, nil))
	}
	if st := h.statuses()[state.Configured]; st.Step != "" || st.State != state.Success {
		t.Errorf("%+v", st)
	}
}

// TestUnreadableVersion: where the fleet's version cannot be read, a host goes on with its own, waits by the name of
// the key, and proposes nothing.
func TestUnreadableVersion(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	running := web1.head()
	s := state.Over(m.store.Client, "f", nil)
	etcd, err := clientv3.New(clientv3.Config{Endpoints: m.store.Client.Endpoints()}) // one that writes anything
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	if _, err := etcd.Put(t.Context(), s.Versions.CurrentKey(), "no JSON"); err != nil {
		t.Fatal(err)
	}
	web1.commit(job("two", "true"))
	web1.write("f/web1/root/etc/motd", "by hand")
	out := web1.exits(ExitWaiting, "waiting for the fleet's version: etcd key current_version cannot be read: ")
	if out.Version.ID != running || web1.file("etc/motd") != "one" || out.Wait.Since.IsZero() || out.Wait.Kind != state.WaitRecord {
		t.Errorf("%+v", out)
	}
	if out := web2.exits(ExitWaiting, "cannot be read"); out.Report != nil || web2.file("etc/motd") != "" {
		t.Errorf("%+v", out)
	}
	web2.said(state.Configured, state.Pending, string(state.WaitRecord), "cannot be read")
	if plan, err := web1.plan(""); err != nil || plan.Version.ID != web1.head() {
		t.Errorf("a plan: %v %+v", err, plan.Version)
	}
}

// TestLabelsFromInventory: the labels that the inventory gives a host hold from its next registration on; the fleet
// knows them at once.
func TestLabelsFromInventory(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), map[string]string{"nodes/web.yaml": "nodes: {web1: {labels: {role: front, zone: a}}}\n"})
	for range 2 {
		web1.exits(ExitOK, "")
		if n := web1.overview().Nodes["web1"]; n.Labels["role"] != "front" || n.Labels["zone"] != "a" || n.Role != "front" {
			t.Errorf("%+v", n)
		}
		if got := web1.known().Labels; got["role"] != "front" || len(got) != 2 {
			t.Errorf("%v", got)
		}
	}
	web1.write("repo/nodes/web.yaml", "nodes: {}\n")
	web1.commit(job("two", "true"))
	web1.exits(ExitOK, "")
	if n := web1.overview().Nodes["web1"]; n.Labels["role"] != "web" || len(n.Labels) != 1 {
		t.Errorf("%+v", n)
	}
}

// TestBackToWhatRuns: a rollout that comes back to the version which runs here needs no turn, and the others learn that
// the host is through. The canaries of a version that was validated everywhere are not watched again.
func TestBackToWhatRuns(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {canary: {target: web2, soak: 1h}}\n"})
	first := web1.head()
	web1.exits(ExitWaiting, "role canary")
	a, err := New(web1.Config, "test", web1.entry())
	if err != nil {
		t.Fatal(err)
	}
	s := state.Over(m.store.Client, "f", nil)
	proposal, err := a.Prepare(t.Context(), s, []string{"main"}, Instructions{Text: []byte(`{"canary": {"target": "web2", "soak": "0s"}}`)})
	if err == nil {
		proposal.Version.Held = false
		err = errors.Join(s.Versions.Move(t.Context(), proposal.Version, proposal.Current, proposal.Seen), a.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	undo := func() {
		t.Helper()
		current, rev, err := s.Versions.Current(t.Context())
		if err == nil {
			_, err = s.Versions.Undo(t.Context(), current, rev, "ada", "bad", 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	web2.exits(ExitOK, "")
	web1.exits(ExitOK, "")
	web1.write("repo/pullet.yaml", "rollout: {rollingRules: {global: 2}}\n")
	web1.commit(job("two", "true"))
	web2.exits(ExitOK, "")
	undo()
	if out := web1.exits(ExitOK, ""); out.Upgrade {
		t.Errorf("%+v", out)
	}
	o := web1.overview()
	if !o.Current.Proven || o.Current.ID != first || o.Current.Rollout() == first || web1.known().Through != o.Current.Rollout() {
		t.Errorf("%+v %+v", o.Current, web1.known())
	}
	if got, err := s.Client.Get(t.Context(), s.Rollouts.DoneKey(o.Current.Rollout(), "web", "web1")); err != nil || got.Count != 1 {
		t.Errorf("%v %v", got, err)
	}
	web2.exits(ExitOK, "")
	if _, _, err := s.Versions.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	web1.commit(job("three", "true"))
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	undo()
	web2.exits(ExitOK, "")
	if out := web1.exits(ExitOK, ""); !out.Upgrade || web1.file("etc/motd")+web2.file("etc/motd") != "oneone" {
		t.Errorf("%q %q", web1.file("etc/motd"), web2.file("etc/motd"))
	}
}

// TestSlotLeftOfWhatRuns: a host that already runs the version, and waits in it for a condition, gives back a slot that
// the fleet's record still has of it, as a restored record may. The other host needs the slot.
func TestSlotLeftOfWhatRuns(t *testing.T) {
	t.Parallel()
	const text = "steps:\n- {name: one, action: file.managed, parameters: {name: /etc/motd, content: %s}, " +
		"conditions: {when: {condition: \"macros['ready'] == 5\", retry: {interval: 100ms, limit: 0}}}}\n"
	web1, web2, m := pair(t, fmt.Sprintf(text, "one"), map[string]string{
		"base/macros.yaml": "macros: {'*': [{name: site}]}\n",
		"macros/site.yaml": "ready: {action: cmd.run, parameters: [{cmd: cat etc/ready}]}\n",
	})
	ready := func(host, text string) { web1.write("f/"+host+"/root/etc/ready", text) }
	ready("web1", "5")
	ready("web2", "5")
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	web1.commit(fmt.Sprintf(text, "two"))
	web2.exits(ExitOK, "")
	s := state.Over(m.store.Client, "f", nil)
	current, rev, err := s.Versions.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	back, err := s.Versions.Undo(t.Context(), current, rev, "ada", "bad", 0)
	if err != nil {
		t.Fatal(err)
	}
	held := &state.HeldPlace{Group: "web", Claim: state.Claim{Node: "web1", Version: back.ID, Rollout: back.ID}}
	always := clientv3.Compare(clientv3.CreateRevision(s.Doubts.Key()), "=", 0)
	if _, err := lock.PutBack(t.Context(), s, held, always); err != nil {
		t.Fatal(err)
	}
	ready("web1", "4")
	web1.exits(ExitWaiting, "macros['ready'] == 5")
	web2.exits(ExitOK, "")
	ready("web1", "5")
	web1.exits(ExitOK, "")
	if o := web1.overview(); len(o.Slots) > 0 || web2.file("etc/motd") != "one" {
		t.Errorf("%+v %q", o.Slots, web2.file("etc/motd"))
	}
}
