package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/pullet/pullet/state"
)

// TestTwins holds the table of the source documents' commands in docs/commands.md to the script that runs each of them.
func TestTwins(t *testing.T) {
	page, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/twins.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{} // the documents' command -> what the script runs
	for _, section := range strings.Split(string(script), "\n# ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		sections[name] = body
	}
	_, table, found := strings.Cut(string(page), "| the source documents | pullet |\n")
	if !found {
		t.Fatal("docs/commands.md has no table of the source documents' commands")
	}
	rows := 0
	for line := range strings.Lines(table) {
		if strings.TrimSpace(line) == "" {
			break
		}
		code := strings.Split(line, "`")
		if len(code) < 4 { // the rule below the heading
			continue
		}
		rows++
		old, twin := code[1], code[3]
		if !strings.HasPrefix(twin, "pullet ") {
			twin = code[5]
		}
		words := strings.Fields(twin)
		command := strings.Join(words[:min(2, len(words))], " ")
		if !strings.Contains(sections[old], " "+command) {
			t.Errorf("docs/commands.md: `%s`: its section of twins.txtar runs no %q:\n%s", old, command, sections[old])
		}
		delete(sections, old)
	}
	if rows < 20 || len(sections) > 0 {
		t.Errorf("%d rows; sections of twins.txtar without a row: %v", rows, sections)
	}
}

// TestOperatorsAtOnce: of two operators who change the same thing at the same moment, one is told.
func TestOperatorsAtOnce(t *testing.T) {
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var current *state.Version
	rev := int64(0)
	for _, id := range []string{"v1", "v2"} {
		if is, err := s.Versions.Propose(ctx, state.Version{ID: id, By: "web1"}, current, rev); err != nil || !is.Done {
			t.Fatal(is, err)
		}
		if current, rev, err = s.Versions.Current(ctx); err != nil {
			t.Fatal(err)
		}
	}
	told := atOnce(t, func(i int) error {
		return s.Versions.Move(ctx, state.Version{ID: fmt.Sprint("v", 3+i), By: fmt.Sprint("operator", i)}, current, rev)
	})
	if want := "the fleet's version was changed just now by operator"; !strings.HasPrefix(told.Error(), want) {
		t.Errorf("%q does not begin with %q", told, want)
	}
	web := state.RoleScope("web")
	told = atOnce(t, func(i int) error {
		return s.Switches.Set(ctx, web, &state.Switch{By: fmt.Sprint("operator", i), At: time.Now()}, nil, 0)
	})
	if want := "the switch of role web was changed just now"; !strings.HasPrefix(told.Error(), want) {
		t.Errorf("%q does not begin with %q", told, want)
	}
}

// atOnce does something twice at the same time, of which one must succeed, and returns what the other is told.
func atOnce(t *testing.T, do func(i int) error) error {
	t.Helper()
	var errs [2]error
	var both sync.WaitGroup
	for i := range errs {
		both.Go(func() { errs[i] = do(i) })
	}
	both.Wait()
	told := errors.Join(errs[:]...)
	var moved *state.MovedError
	if (errs[0] == nil) == (errs[1] == nil) || !errors.As(told, &moved) {
		t.Fatalf("one is to succeed and the other to be told: %v, %v", errs[0], errs[1])
	}
	return told
}

// TestStatusOfManyNodes: ten thousand nodes fit on a screen, with what is wrong and who waits for whom.
func TestStatusOfManyNodes(t *testing.T) {
	now := time.Now()
	o := &state.Overview{
		Current: &state.Version{ID: "0123456789", Release: "v2", By: "ada", At: now, Held: true, Reason: "the announced release"},
		Held:    true,
		Nodes:   map[string]state.Node{}, Alive: map[string]bool{}, Running: map[string]string{}, Statuses: map[string]map[string]state.StatusLine{},
		Slots: map[string]map[string]state.Claim{"web": {"0": {Node: "web0007", Step: "site/reload", Since: now}}},
	}
	for i := range 10000 {
		name := fmt.Sprintf("web%04d", i)
		o.Nodes[name], o.Alive[name], o.Running[name] = state.Node{Name: name, Role: "web", LastSeen: now}, i%100 != 99, "0123456789"
		says := func(value string, s state.Status) {
			s.Version, s.Time, o.Running[name] = "0123456789", now, "old"
			o.Statuses[name] = map[string]state.StatusLine{state.Rollout: {State: value, Status: s}}
		}
		holder := []state.Holder{{Node: "web0007", Alive: true}}
		switch {
		case i == 7:
			says(state.Running, state.Status{})
		case i == 8:
			says(state.Failed, state.Status{Reason: "site/motd: no disk"})
		case i < 320:
			says(state.Pending, state.Status{Kind: state.WaitSlot, Gate: "slot web (1 at a time)", Reason: "slot web (1 at a time): web0007 holds it", Holders: holder, Remedy: state.NoAction(), Parked: i < 12, Since: now.Add(-12 * time.Minute)})
		case i < 330:
			says(state.Pending, state.Status{Kind: state.WaitQueue, Gate: "slot web (1 at a time)", Reason: "slot web (1 at a time): web0100 comes first in the queue", Remedy: state.NoAction()})
		}
	}
	v := viewOf(o)
	var b strings.Builder
	v.print(&b)
	text := b.String()
	for _, want := range []string{
		"version v2 (01234567), set by ada 0s ago, held there: the announced release (pullet rollout follow)\n",
		"10000 nodes: 9573 ok, 1 upgrading, 325 waiting (10 parked), 1 failed, 100 lost\n",
		"web0008  web   old",
		"and 82 more: pullet nodes --state failed,lost,missing,upgrading\n",
		"325 nodes wait for slot web (1 at a time): held by web0007 in step site/reload for 0s (alive) (the first for 12m); no action needed\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
	if lines := strings.Count(text, "\n"); lines > 40 {
		t.Errorf("%d lines do not fit on a screen", lines)
	}
}

// TestWhyHasItsAge: for how long a node waits, when it failed and what clears it is said also where the reason is cut.
func TestWhyHasItsAge(t *testing.T) {
	at := time.Now().Add(-12 * time.Minute)
	long := strings.Repeat("no disk ", 30)
	for _, c := range []struct {
		node  nodeStatus
		width int
		want  string
	}{
		{nodeStatus{State: waiting, Why: "slot web: web1 holds it", Remedy: state.Act("wait"), Since: at, lasts: true}, 80, "slot web: web1 holds it (for 12m); wait"},
		{nodeStatus{State: waiting, Why: "0 of 2 instances", Since: at}, 80, "0 of 2 instances (12m ago)"},
		{nodeStatus{State: failed, Why: long, Remedy: state.Act("fix it"), Since: at}, 40, "no disk no disk no disk no disk no... (12m ago); fix it"},
		{nodeStatus{State: failed, Why: "größer " + long, Since: at}, 40, "größer no disk no disk no disk no... (12m ago)"},
		{nodeStatus{State: failed, Why: long, Since: at}, 20, "no disk no disk... (12m ago)"},
		{nodeStatus{State: upToDate, Why: "a warning", Since: at}, 80, "a warning"},
		{nodeStatus{State: waiting, Why: "never told when"}, 80, "never told when"},
	} {
		if got := c.node.why(io.Discard, c.width); got != c.want {
			t.Errorf("in %d columns %q, want %q", c.width, got, c.want)
		}
	}
}

// TestWhoWaitsForALock: those who wait for the result of a chosen node are shown with it, also before it has got to the
// step.
func TestWhoWaitsForALock(t *testing.T) {
	result := waitGroup{Gate: "result of site/token", Holders: []state.Holder{{Node: "web1", Election: "1 of role=web"}}}
	slot := waitGroup{Kind: state.WaitSlot, Gate: "slot web (1 at a time)"}
	for _, c := range []struct {
		wait waitGroup
		lock state.Lock
		want bool
	}{
		{result, state.Lock{Kind: "election", Name: "1 of role=web", Node: "web1"}, true},
		{result, state.Lock{Kind: "election", Name: "1 of role=web", Node: "web1", Step: "site/token"}, true},
		{result, state.Lock{Kind: "election", Name: "1 of role=web", Node: "web1", Step: "site/other"}, true},
		{result, state.Lock{Kind: "election", Name: "2 of role=web", Node: "web1"}, false},
		{result, state.Lock{Kind: "election", Name: "1 of role=web", Node: "web2"}, false},
		{slot, state.Lock{Kind: "election", Name: "1 of role=web", Node: "web1"}, false},
		{slot, state.Lock{Kind: "slot", Name: "web", Node: "web1"}, true},
		{slot, state.Lock{Kind: "slot", Name: "db", Node: "web1"}, false},
	} {
		if got := c.wait.waitsFor(c.lock); got != c.want {
			t.Errorf("%s at %+v: %v", c.wait.Gate, c.lock, got)
		}
	}
}

// TestAnswerLost: when etcd goes away while a command changes something, nobody knows whether it was done, and that is
// said.
func TestAnswerLost(t *testing.T) {
	config := t.TempDir() + "/pullet.yaml"
	text := fmt.Sprintf("node: {name: web1}\nrepositories: [{name: main, url: /nowhere}]\npaths: {state: %s}\n", t.TempDir())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{config: config, rootDir: "/"}
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	err := a.steers(cmd, func(context.Context, *state.Store) error { return context.DeadlineExceeded })
	var away *state.UnreachableError
	if !errors.As(err, &away) || !strings.HasSuffix(err.Error(), "; whether it was done is not known: look at pullet status") {
		t.Error(err)
	}
}

// TestScreenDrawsOver: on a terminal what was there is drawn over, and no line is broken.
func TestScreenDrawsOver(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b)
	s.draw([]line{{text: "one"}, {text: strings.Repeat("x", 200)}}, nil)
	s.draw([]line{{text: "two"}}, nil)
	s.draw([]line{{text: "two"}}, nil) // as it was
	want := "one\x1b[K\r\n" + strings.Repeat("x", 76) + "...\x1b[K\r\n\x1b[2A\x1b[Jtwo\x1b[K\r\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}
