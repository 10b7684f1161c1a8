package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// TestPrepare: a version that an operator names exists, compiles and follows the fleet's; what it stands for is written
// nowhere yet.
func TestPrepare(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.write("repo/nodes/web.yaml", "nodes: {web1: {labels: {role: web}}}\n")
	h.write("repo/pullet.yaml", "rollout: {rollingRules: {global: 1}}\n")
	h.commit(job("one", "true"))
	first := h.head()
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := h.open()
	prepare := func(instructions string, revs ...string) (*Proposal, error) {
		return a.Prepare(t.Context(), s, revs, Instructions{From: "upgrade.json", Text: []byte(instructions)})
	}
	got, err := prepare("", "main")
	if err != nil || got.Version.ID != first || !got.Version.Held || got.Current != nil || got.Version.Previous != "" || len(got.Inventory) != 1 || got.Version.Commits[0].Subject != "x" || got.Version.Canary ||
		got.Version.Instructions != nil || !slices.Equal(got.Version.Asked, []string{"main"}) {
		t.Fatalf("%v %+v", err, got)
	}
	if o := h.overview(); o.Current != nil {
		t.Errorf("%+v", o.Current)
	}
	if err := s.Versions.Move(t.Context(), got.Version, nil, got.Seen); err != nil {
		t.Fatal(err)
	}
	h.exits(ExitOK, "")
	h.write("repo/pullet.yaml", "rollout: {canary: {target: web1}}\n")
	h.commit(job("two", "true"))
	second := h.head()
	got, err = prepare(`{ "max_failures": 3 }`, "main")
	if err != nil || got.Version.ID != second || got.Version.Previous != first || got.Current.ID != first || got.Rollout.MaxFailures != 3 || string(got.Version.Instructions) != `{"max_failures":3}` || !got.Version.Canary {
		t.Fatalf("%v %+v", err, got)
	}
	current, rev, err := s.Versions.Current(t.Context())
	if err == nil {
		next := got.Version
		next.Bad = []string{second, first}
		err = s.Versions.Move(t.Context(), next, current, rev)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err = prepare("", state.Short(second))
	if err != nil || got.Version.Previous != first || !slices.Equal(got.Version.Bad, []string{first}) || got.Rollout.MaxFailures != 3 || string(got.Version.Instructions) != `{"max_failures":3}` {
		t.Errorf("again: %v %+v", err, got)
	}
	got, err = a.Prepare(t.Context(), s, []string{state.Short(second)}, Instructions{None: true})
	if err != nil || got.Rollout.MaxFailures != 0 || got.Version.Instructions != nil {
		t.Errorf("again without: %v %+v", err, got)
	}
	rules, inventory, err := a.Rules(t.Context(), s, got.Current)
	if err != nil || rules.MaxFailures != 3 || len(inventory) != 1 {
		t.Errorf("%v %+v %v", err, rules, inventory)
	}
	h.git("checkout", "-q", "-b", "side", first)
	h.commit(job("side", "true"))
	h.git("tag", "-a", "v1", "-m", "v1")
	h.git("checkout", "-q", "main")
	h.commit("stps: []\n")
	for _, c := range []struct{ instructions, rev, want string }{
		{"", first, " is older than the fleet's version, " + state.Short(second) + ": to go back to the last good one, run: pullet rollout undo"},
		{"", "side", "side"},
		{"", "v1", "v1"},
		{"", "nothing", "nothing"},
		{"", "other=main", `there is no repository "other" in the configuration`},
		{"", "main", "does not compile on this node:\njobs/site.yaml:1:1: unknown field"},
		{"{", second, "instructions: upgrade.json is not JSON: "},
		{`{"x": "` + strings.Repeat("x", state.MaxInstructions) + `"}`, second, "instructions: upgrade.json has more than 64 KiB"},
		{`{"max_failures": "x"}`, second, "max_failures"},
	} {
		if got, err := prepare(c.instructions, c.rev); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v %+v, want %s", c.rev, err, got, c.want)
		}
	}
	heads, err := a.Heads(t.Context())
	if err != nil || len(heads) != 1 || heads[0].Commit != h.head() {
		t.Errorf("%+v %v", heads, err)
	}
}

// TestPrepareSeveral: with several repositories a revision names its own; those that nobody names stay where the fleet
// is.
func TestPrepareSeveral(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	second := filepath.Join(h.home, "second")
	if err := os.CopyFS(second, os.DirFS(filepath.Join(h.home, "repo"))); err != nil {
		t.Fatal(err)
	}
	h.Repositories = append(h.Repositories, puller.Source{Name: "second", URL: second})
	h.exits(ExitOK, "")
	was := h.head()
	h.commit(job("two", "true"))
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := h.open()
	if _, err := a.Prepare(t.Context(), s, []string{"main"}, Instructions{}); err == nil || err.Error() != "the fleet has several repositories: write NAME=REV, such as main=main" {
		t.Errorf("%v", err)
	}
	for rev, want := range map[string]string{"main=main": h.head(), "second=main": was} {
		got, err := a.Prepare(t.Context(), s, []string{rev}, Instructions{})
		if err != nil || got.Version.Commits[0].Commit != want || got.Version.Commits[1].Commit != was {
			t.Errorf("%s: %v %+v", rev, err, got)
		}
	}
}

// TestCommands: what operators give a host to run, it runs once, where its own configuration allows that, and in its
// stage; what came of it is on record. A command that a pull was killed in is not run again.
func TestCommands(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.exits(ExitOK, "")
	give := func(id string, stages [][]string, args ...string) {
		t.Helper()
		s, err := h.OpenStore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		now := time.Now()
		if err := s.Commands.Give(t.Context(), state.Command{ID: id, Args: args, Stages: stages, Max: 1, Timeout: time.Minute, At: now, Until: now.Add(time.Hour), By: "ada"}); err != nil {
			t.Fatal(err)
		}
	}
	result := func(id string) state.CommandResult {
		t.Helper()
		s, err := h.OpenStore(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c, _, err := s.Commands.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return c.Results["web1"]
	}
	mine := [][]string{{"web1"}}
	give("c1", mine, "echo no > ran")
	h.exits(ExitOK, "")
	if r := result("c1"); r.State != state.Refused || !strings.HasPrefix(r.Reason, "agent.allowRun is not set in ") || !r.Ended.Equal(r.Started) || h.file("ran") != "" {
		t.Errorf("%+v", r)
	}
	h.Agent.AllowRun.Anybody = true
	give("c2", mine, "echo ran >> ran; echo out; echo err >&2")
	give("c3", mine, "/bin/sh", "-c", "exit $0", "3")
	give("c4", mine, "head -c 20000 /dev/zero | tr '\\0' x; echo the end")
	give("c5", [][]string{{"web2"}, {"web1"}}, "echo too early >> ran")
	give("c6", mine, "echo killed >> ran")
	s := h.open()
	_, err := s.Commands.Begin(t.Context(), state.Command{ID: "c6"}, state.CommandResult{Node: "web1", State: state.Running, Instance: "another", Started: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	out := h.exits(ExitOK, "")
	if r := result("c2"); r.State != state.Ran || r.Output != "out\nerr\n" || r.ExitCode != 0 || r.Reason != "" || r.Instance != out.Run || r.Ended.Before(r.Started) {
		t.Errorf("%+v", r)
	}
	if r := result("c3"); r.State != state.Failed || r.ExitCode != 3 || !strings.Contains(r.Reason, "exit code 3") {
		t.Errorf("%+v", r)
	}
	if r := result("c4"); r.State != state.Ran || len(r.Output) != 3+16<<10 || !strings.HasPrefix(r.Output, "...x") || !strings.HasSuffix(r.Output, "xthe end\n") {
		t.Errorf("%d %.20q", len(r.Output), r.Output)
	}
	if r := result("c5"); r.State != "" {
		t.Errorf("%+v", r)
	}
	if r := result("c6"); r.State != state.Unknown || !strings.Contains(r.Reason, "it is not run again") {
		t.Errorf("%+v", r)
	}
	h.exits(ExitOK, "")
	if got := h.file("ran"); got != "ran\n" {
		t.Errorf("%q", got)
	}
}

// TestForget: what jobs left behind is listed, and reported until an operator says that it stays.
func TestForget(t *testing.T) {
	t.Parallel()
	step := func(name string) string {
		return fmt.Sprintf("- {name: %s, action: file.managed, parameters: {name: /etc/%[1]s, content: x}}\n", name)
	}
	h := newHost(t, "steps:\n"+step("a")+step("b")+step("c"))
	h.exits(ExitOK, "")
	h.commit("steps:\n" + step("a"))
	out := h.exits(ExitOK, "")
	left, err := Leftovers(h.Config)
	want := []Leftover{{"file /etc/b", "site"}, {"file /etc/c", "site"}}
	if err != nil || !slices.Equal(left, want) || len(out.Report.Leftovers) != 2 {
		t.Fatalf("%v %v %+v", err, left, out.Report.Leftovers)
	}
	held, err := state.LockRun(h.Paths.State, "another")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Forget(h.Config, func(Leftover) bool { return true }); err == nil || len(got) > 0 {
		t.Errorf("beside a pull: %v %v", got, err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	got, err := Forget(h.Config, func(l Leftover) bool { return l.Thing == "file /etc/b" })
	if err != nil || !slices.Equal(got, want[:1]) {
		t.Errorf("%v %v", got, err)
	}
	if left, err := Leftovers(h.Config); err != nil || !slices.Equal(left, want[1:]) {
		t.Errorf("%v %v", left, err)
	}
	if out := h.exits(ExitOK, ""); len(out.Report.Leftovers) != 1 || h.file("etc/b")+h.file("etc/c") != "xx" {
		t.Errorf("%+v", out.Report.Leftovers)
	}
}

// TestCommandThatOutlivedItsPull: nothing is started beside it. The host waits for as long as it may, and the fleet
// knows for what.
func TestCommandThatOutlivedItsPull(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.exits(ExitOK, "")
	h.commit(job("two", "true"))
	other := &apply.Host{Root: h.Root, Notes: filepath.Join(h.Paths.State, "commands")}
	ended := make(chan error, 1)
	go func() {
		_, err := other.Run(t.Context(), apply.Command{Args: apply.Shell("touch begun; until test -e go; do sleep 0.02; done")})
		ended <- err
	}()
	h.started("begun")
	var heard []string
	out, err := h.with(Options{Waiting: func(w *lock.Wait) { heard = append(heard, w.Gate) }})
	if len(heard) != 1 || heard[0] != "a command that outlived its pull" {
		t.Errorf("%q", heard)
	}
	if err == nil || !strings.Contains(err.Error(), "a command of a pull that was killed still runs: process group ") || out.Report != nil || h.file("etc/motd") != "one" {
		t.Errorf("%v %+v", err, out.Report)
	}
	st := h.statuses()[state.Configured]
	if st.State != state.Pending || st.Kind != state.WaitOrphan || !strings.Contains(st.Reason, "a command that outlived its pull: process group ") || !strings.Contains(st.Clear, "end it on web1: kill -- -") {
		t.Errorf("%+v", st)
	}
	h.write("root/go", "")
	if out, err := h.with(Options{Wait: time.Minute}); err != nil || !out.Upgrade || h.file("etc/motd") != "two" {
		t.Errorf("%v %s", err, saidBy(out, nil))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
