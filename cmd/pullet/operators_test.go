package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestOperatorsTold: of two operators who give the same command at the same moment, one did it, and the other reads
// that somebody was faster.
func TestOperatorsTold(t *testing.T) {
	ctx := context.Background()
	s, err := state.Open(ctx, state.Config{Fleet: "f", Dir: t.TempDir()})
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
	config := filepath.Join(t.TempDir(), "pullet.yaml")
	must(os.WriteFile(config, []byte("node: {name: web1}\nrepositories: [{name: main, url: /nowhere}]\n"), 0o600))
	var current *state.Version
	rev := int64(0)
	for _, id := range []string{"v1", "v2", "v3"} {
		_, err := s.Versions.Propose(ctx, state.Version{ID: id, By: "web1"}, current, rev)
		must(err)
		current, rev, err = s.Versions.Current(ctx)
		must(err)
	}
	_, err = s.Presences.Register(ctx, state.Node{Name: "web1", LastSeen: time.Now()}, state.Alive{Owner: "x"}, nil, time.Minute)
	must(err)
	moved := " was changed just now.*: look at pullet status and try again"
	given := state.Command{ID: "c", By: "ada", Args: []string{"true"}}
	for _, c := range []struct {
		name string
		do   func(a *app, i int) error
		told string
	}{
		{"pause", func(a *app, _ int) error { return steerCmd{a}.pause(ctx, s, lasting{}) }, `the rollout is paused already, by \S+ \d+s ago: to change that, resume it first`},
		{"resume a pause", func(a *app, _ int) error { return steerCmd{a}.resume(ctx, s, resuming{}) }, "nothing is paused or halted: see pullet status"},
		{"fail", func(a *app, _ int) error { return steerCmd{a}.failRollout(ctx, s, "slow") }, "(the rollout of v3 is halted already: halted by .*: slow|the rollout" + moved + ")"},
		{"resume a halt", func(a *app, _ int) error { return steerCmd{a}.resume(ctx, s, resuming{}) }, "(nothing is paused or halted; \\S+ resumed the rollout: see pullet status|the rollout" + moved + ")"},
		{"set-status", func(_ *app, i int) error {
			return s.Statuses.Change(ctx, "web1", state.Validated, []string{state.Failed, state.Success}[i], state.Status{}, rev+1)
		}, "the state validated of web1" + moved},
		{"set-status, both looked", func(a *app, i int) error {
			return steerCmd{a}.setStatus(ctx, s, state.Provisioned, []string{state.Failed, state.Success}[i], "web9", "")
		}, `(the state provisioned of web9` + moved + `|web9: provisioned is \S+ \(before: \S+\))`},
		{"run", func(_ *app, _ int) error { return s.Commands.Give(ctx, given) }, "nothing was given: ada gave a command at the very same moment .*; look at pullet run and try again"},
		{"undo", func(a *app, _ int) error { return steerCmd{a}.undo(ctx, s, nil, lasting{}) }, `(\S+ took the fleet back to v2 \d+s ago: to leave that one too, name it: pullet rollout undo v2|the fleet's version` + moved + ")"},
		{"follow", func(a *app, _ int) error { return steerCmd{a}.follow(ctx, s) }, "(nothing holds the fleet: .*|the fleet's version" + moved + ")"},
		{"decommission", func(a *app, _ int) error { return steerCmd{a}.decommission(ctx, s, "web1", true) }, `web1 is decommissioned \(it was already, by \S+ \d+s ago\)`},
	} {
		var said [2]string
		var both sync.WaitGroup
		for i := range said {
			both.Go(func() {
				var out bytes.Buffer
				if err := c.do(&app{out: &out, err: &out, output: "table", config: config, rootDir: "/"}, i); err != nil {
					out.Reset()
					fmt.Fprintln(&out, err)
				}
				said[i] = out.String()
			})
		}
		both.Wait()
		told := regexp.MustCompile("^" + c.told + "\n$")
		if told.MatchString(said[0]) == told.MatchString(said[1]) {
			t.Errorf("%s: one is to be told %s:\n%s%s", c.name, c.told, said[0], said[1])
		}
	}
}
