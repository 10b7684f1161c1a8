package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// looping is an agent at work.
type looping struct {
	*host
	pulls  chan *Outcome
	reload chan os.Signal
	ended  chan error
	end    context.CancelFunc
}

// loop starts the host's agent, whose next pull is due in an hour.
func (h *host) loop() *looping { return h.loopEvery(time.Hour) }

// loopEvery is loop with another interval.
func (h *host) loopEvery(interval time.Duration) *looping {
	h.t.Helper()
	h.Agent.Interval, h.Agent.Splay = render.Duration(interval), 0
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &looping{h, make(chan *Outcome, 100), make(chan os.Signal, 1), make(chan error, 1), cancel}
	ignore := func(*lock.Wait) {}
	go func() {
		err := a.Loop(ctx, Observer{Waiting: ignore, Begin: func(apply.Begun) {}, Step: func(*apply.StepReport) {}, Reload: l.reload, Pulled: func(out *Outcome, err error) {
			if err != nil {
				out.Failures = append(out.Failures, err)
			}
			l.pulls <- out
		}})
		l.ended <- errors.Join(err, a.Close())
	}()
	h.t.Cleanup(cancel)
	return l
}

// pulled is the agent's next pull, which follows from what was done.
func (l *looping) pulled(after string) *Outcome {
	l.t.Helper()
	select {
	case out := <-l.pulls:
		return out
	case err := <-l.ended:
		l.t.Fatalf("%s: the agent ended: %v", after, err)
	case <-time.After(patience.Stretch(time.Minute)):
		l.t.Fatalf("%s: nothing was pulled", after)
	}
	return nil
}

// until waits for something that the agent does between two pulls.
func (l *looping) until(what string, is func() bool) {
	l.t.Helper()
	patience.UntilWithin(l.t, time.Minute, what, is)
}

// TestLoop: an agent pulls at once, when a commit comes to a repository on its machine, when the host's variables
// change, when the fleet's version does, and when a service appears that it read; a check that has an interval is asked
// between pulls. It ends with the context.
func TestLoop(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, "steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ dig `x` 0 vars }}{{ range services `db` }}{{ .node }}{{ end }}'}}]\n", map[string]string{
		"base/services.yaml": "services: {web1: [{name: web, address: 192.0.2.1, check: {cmd: test ! -e etc/down, interval: 20ms}}]}\n",
		"pullet.yaml":        "rollout: {rollingRules: {global: 2}}\n",
	})
	web1.write("f/web1/vars.d/README", "")
	first := web1.head()
	l := web1.loop()
	if out := l.pulled("the start"); !out.Upgrade || out.Version.ID != first || web1.file("etc/motd") != "0" {
		t.Errorf("%s", saidBy(out, nil))
	}
	s := web1.open()
	works := func() bool {
		all, err := s.Services.Instances(t.Context(), "web")
		return err == nil && !all["web1"].Ready.IsZero()
	}
	l.until("its service becomes ready", works)
	web1.write("f/web1/root/etc/down", "")
	l.until("its service is no longer ready", func() bool { return !works() })
	if all, err := s.Services.Instances(t.Context(), "web"); err != nil || all["web1"].Why != "test ! -e etc/down: exit code 1" {
		t.Errorf("%+v %v", all, err)
	}
	web1.remove("etc/down")
	l.until("its service becomes ready again", works)
	if n := strings.Count(web1.log.String(), "not ready: test ! -e etc/down: exit code 1"); n != 1 || len(l.pulls) > 0 {
		t.Errorf("%d lines, %d pulls", n, len(l.pulls))
	}

	web1.write("f/web1/vars.d/own.yaml", "x: 7\n")
	if l.pulled("a variable"); web1.file("etc/motd") != "7" {
		t.Errorf("%q", web1.file("etc/motd"))
	}
	if err := s.Services.Announce(t.Context(), "db", "db1", state.Service{Address: "192.0.2.7"}, false); err != nil {
		t.Fatal(err)
	}
	if l.pulled("a service"); web1.file("etc/motd") != "7db1" {
		t.Errorf("%q", web1.file("etc/motd"))
	}
	web1.write("repo/x", "")
	web1.git("add", "-A")
	web1.git("commit", "-qm", "x")
	if out := l.pulled("a commit"); out.Version.ID != web1.head() || !out.Upgrade {
		t.Errorf("%+v", out)
	}
	web2.exits(ExitOK, "")
	current, rev, err := s.Versions.Current(t.Context())
	if err == nil {
		_, err = s.Versions.Undo(t.Context(), current, rev, "ada", "bad", 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	for out := l.pulled("an undo"); out.Version.ID != first; out = l.pulled("an undo") {
		if out.ExitCode() != ExitOK {
			t.Errorf("%s", saidBy(out, nil))
		}
	}
	l.end()
	if err := <-l.ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestLoopReloads: a configuration that can be used ends the agent, to be started anew; with one that cannot it goes
// on, and says so. An agent whose state directory is gone ends with an error.
func TestLoopReloads(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	text := "node: {name: web1, labels: {role: web}}\nrepositories: [{name: main, url: " + filepath.Join(h.home, "repo") + "}]\nagent: {interval: 1h, splay: 0s}\npaths: {state: " +
		h.Paths.State + ", hostVars: " + h.Paths.HostVars + "}\n"
	start := func() *looping {
		t.Helper()
		h.write("conf/pullet.yaml", text)
		c, err := ReadConfig(filepath.Join(h.home, "conf/pullet.yaml"), h.Root)
		if err != nil {
			t.Fatal(err)
		}
		h.Config = c
		l := h.loop()
		l.pulled("the start")
		return l
	}
	l := start()
	l.reload <- syscall.SIGHUP
	if err := <-l.ended; !errors.Is(err, ErrReload) {
		t.Errorf("%v", err)
	}
	l = start()
	h.write("conf/pullet.yaml", "node: [\n")
	if out := l.pulled("a slip"); out.ExitCode() != ExitOK || !strings.Contains(h.log.String(), "the configuration cannot be used: the agent keeps the one it has") {
		t.Errorf("%s %s", saidBy(out, nil), &h.log)
	}
	h.write("conf/pullet.yaml", text+"fleet: other\n")
	if err := <-l.ended; !errors.Is(err, ErrReload) {
		t.Errorf("%v", err)
	}
	l = start()
	if err := os.Rename(h.Paths.State, h.Paths.State+"-away"); err != nil {
		t.Fatal(err)
	}
	h.write("vars.d/own.yaml", "x: 1\n")
	h.write("conf/pullet.yaml", "node: [\n")
	if err := <-l.ended; err == nil || !strings.Contains(err.Error(), "was removed or replaced while the agent ran") {
		t.Errorf("%v", err)
	}
}

// TestAway: while the fleet's record cannot be reached, a host corrects drift with what it saw of the fleet last, and
// takes no new version. The pull and the agent say so, the agent once, and that it is back.
func TestAway(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, "steps:\n- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ range services `web` }}{{ .node }} {{ end }}'}}\n"+
		"- {name: up, action: service.wait, parameters: {name: web, kind: announced, count: 2, timeout: 1ms, interval: 1ms}}\n", map[string]string{
		"base/services.yaml": "services: {'*': [{name: web, address: 192.0.2.1}]}\n", "pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	away := func(is bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.refuse = nil
		if is {
			m.refuse = func(string) bool { return true }
		}
	}
	away(true)
	out := web1.exits(ExitWaiting, "waiting for etcd: it is unreachable, and version "+state.Short(web1.head())+" is new here; see why: pullet doctor")
	if out.Report != nil || web1.file("etc/motd") != "" || len(out.Warnings) != 1 {
		t.Errorf("%+v", out)
	}
	away(false)
	web1.exits(ExitWaiting, "web")
	web2.exits(ExitOK, "")
	web1.exits(ExitOK, "")
	away(true)
	web1.write("f/web1/root/etc/motd", "by hand")
	out = web1.exits(ExitOK, "what is read of other nodes and of services is stale: as this host saw the fleet ")
	if web1.file("etc/motd") != "web1 web2 " || len(out.Warnings) != 2 || out.Wait != nil {
		t.Errorf("%q %s", web1.file("etc/motd"), saidBy(out, nil))
	}
	if plan, err := web1.plan(""); err != nil || plan.Report.Changed() > 0 || len(plan.Warnings) == 0 || plan.Version.ID != web1.head() {
		t.Errorf("a plan: %v %+v", err, plan)
	}
	view, at, err := CachedView(web1.Paths.State)
	if err != nil || time.Since(at) > time.Hour || len(view.Nodes) != 2 || len(view.Services["web"]) != 2 {
		t.Errorf("%v %s %+v", err, at, view)
	}
	if view, at, err := CachedView(t.TempDir()); err != nil || !at.IsZero() || view.Nodes != nil {
		t.Errorf("%v %s %+v", err, at, view)
	}
	running := web1.head()
	web1.write("repo/x", "")
	web1.git("add", "-A")
	web1.git("commit", "-qm", "x")
	if out := web1.exits(ExitWaiting, "is new here"); out.Version.ID != running {
		t.Errorf("%+v", out.Version)
	}
	web1.write("f/web1/vars.d/README", "")
	l := web1.loop()
	for i := range 2 {
		web1.write("f/web1/root/etc/motd", "by hand")
		if out := l.pulled("the start"); i > 0 && len(out.Warnings) > 0 || web1.known().Running.ID != running {
			t.Errorf("%s", saidBy(out, nil))
		}
		if i > 0 {
			away(false)
		}
		web1.write("f/web1/vars.d/own.yaml", "x: "+string(rune('0'+i))+"\n")
	}
	if out := l.pulled("it is back"); out.ExitCode() != ExitOK || !out.Upgrade || web1.file("etc/motd") != "web1 web2 " {
		t.Errorf("%s", saidBy(out, nil))
	}
	l.end()
	if err := <-l.ended; err != nil {
		t.Error(err)
	}
	if text := web1.log.String(); strings.Count(text, "; away since ") != 1 || strings.Count(text, "etcd answers again") != 1 {
		t.Error(text)
	}
}

// TestLoopUnwatchable: an agent that cannot watch what it depends on ends with the reason, and does not go on blind.
func TestLoopUnwatchable(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.write("a-file", "")
	h.Paths.HostVars = filepath.Join(h.home, "a-file", "vars.d")
	l := h.loop()
	select {
	case err := <-l.ended:
		if !errors.Is(err, syscall.ENOTDIR) || len(l.pulls) > 0 {
			t.Errorf("it ended with %v after %d pulls", err, len(l.pulls))
		}
	case <-time.After(patience.Stretch(time.Minute)):
		t.Error("it goes on")
	}
}

// TestBrokenStays: an agent whose record can be opened by another process only knows why.
func TestBrokenStays(t *testing.T) {
	t.Parallel()
	c := &connection{self: &self{}}
	why := &state.BrokenError{}
	_, err := c.openBy(t.Context(), func(context.Context, state.Config) (*state.Store, error) { return nil, why })
	if !errors.Is(err, why) || !errors.Is(c.broken(), why) {
		t.Errorf("%v, %v", err, c.broken())
	}
}
