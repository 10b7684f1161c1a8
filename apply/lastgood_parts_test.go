package apply_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
)

// TestPartsPutBack: a part that a failed upgrade put into a file goes, and who watches it reacts; one that was there
// before stays, and is named where it was changed. The next version begins with what was there.
func TestPartsPutBack(t *testing.T) {
	t.Parallel()
	part := func(value string) string {
		return "{name: p, action: t.part, parameters: {name: p, value: " + value + "}}"
	}
	daemon := "{name: d, action: t.daemon, parameters: {name: d}, watch: [p]}"
	for name, c := range map[string]struct {
		before    string // of the part
		refuses   string
		want      string
		why       string
		left      string
		notUndone []string
		ran       []string
	}{
		"it is new": {"", "", "p changed, d changed, fails failed, restore asset p changed, d (restore) changed", "", "", nil,
			[]string{"p", "d!", "fails", "no p", "d!"}},
		"it was there, and said something else": {"one", "", "p changed, d changed, fails failed", "", "two", []string{"a/p", "a/d"},
			[]string{"p", "d!", "fails"}},
		"it cannot be removed": {"", "it is locked", "p changed, d changed, fails failed, restore asset p failed, d (restore) changed",
			"asset p could not be put back: it is locked", "", nil, []string{"p", "d!", "fails", "no p", "d!"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAssets(t)
			a.values["d"] = ""
			if c.before != "" {
				a.values["p"] = c.before
			}
			a.fails["fails"], a.fails["no p"] = "broken", c.refuses
			var seen []string
			js := jobs{{"a", "onFailure: restore\n" + list(part("two"), daemon, puts("fails"))}}
			r := a.pull(js, func(o *apply.Options) {
				o.Watch = func(s *apply.StepReport) { seen = append(seen, s.Step) }
			})
			a.want(r, c.want)
			if restored := len(c.notUndone) == 0; r.Restored != restored || !slices.Equal(r.NotUndone, c.notUndone) || len(seen) != len(r.Steps) {
				t.Errorf("restored %v, not undone %q, seen %q", r.Restored, r.NotUndone, seen)
			}
			if c.why != "" && step(t, r, "restore asset p").Reason != c.why {
				t.Error(step(t, r, "restore asset p").Reason)
			}
			if a.values["p"] != c.left {
				t.Errorf("the part says %q", a.values["p"])
			}
			a.wantRan(c.ran...)
		})
	}
}

// TestOtherJobsKeepTheirParts: only what the failed job brought is undone.
func TestOtherJobsKeepTheirParts(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.fails["fails"] = "broken"
	part := func(name string) string { return thing("t.part", name) }
	r := a.pull(jobs{
		{"a", "onFailure: restore\n" + list(part("p"), thing("t.asset", "whole"), puts("fails"))}, {"b", "onFailure: restore\n" + list(part("q"))}, {"c", list(part("r"))},
	}, nil)
	a.want(r, "p changed, whole changed, fails failed, q changed, r changed, restore asset p changed")
	if !slices.Equal(r.NotUndone, []string{"a/whole"}) {
		t.Errorf("not undone: %q", r.NotUndone)
	}
}

// rootDir is a directory below the lab's root.
type rootDir struct {
	rootFile `yaml:",inline"`
}

func (a *rootDir) Check(context.Context, *apply.Host) (apply.Change, error) {
	if info, err := os.Stat(a.path()); err == nil && info.IsDir() {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "make"}, nil
}

func (a *rootDir) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return apply.Output{}, os.Mkdir(a.path(), 0o700)
}

// TestFilledDirectoryStays: a directory that others filled since is no failure, and is named.
func TestFilledDirectoryStays(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.root = t.TempDir()
	a.more = append(a.more, apply.Spec{Name: "t.dir", New: func() apply.Action { return &rootDir{rootFile{lab: a.lab}} }})
	a.fails["fails"] = "broken"
	a.onApply = func(string) {
		if err := os.WriteFile(filepath.Join(a.root, "full", "x"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	dir := func(name string) string {
		return "{name: " + name + ", action: t.dir, parameters: {name: /" + name + "}}"
	}
	r := a.pull(jobs{{"a", "onFailure: restore\n" + list(dir("full"), dir("empty"), puts("fails"))}}, nil)
	a.want(r, "full changed, empty changed, fails failed, restore /empty changed")
	if !slices.Equal(r.NotUndone, []string{"a/full"}) {
		t.Errorf("not undone: %q", r.NotUndone)
	}
}

// TestRestoreBehindTheRunsTime: files are put back also where the run's own time is over, but not where a signal ended
// it.
func TestRestoreBehindTheRunsTime(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]bool{"its time is over": true, "a signal": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAssets(t)
			a.root = t.TempDir()
			a.pull(jobs{{"a", restored("one")}}, nil)
			a.version = "v2"
			a.fails["fails"] = "broken"
			p := a.program(jobs{{"a", restored("two", puts("fails"))}})
			signaled, cancel := context.WithCancel(t.Context())
			defer cancel()
			over := &timeUp{t.Context(), time.Now().Add(time.Minute), make(chan struct{})}
			ctx := map[bool]context.Context{true: over, false: signaled}[back]
			a.onApply = func(string) {
				cancel()
				close(over.up)
			}
			o := a.options()
			o.Keep = filepath.Join(a.dir, "kept")
			r, err := p.Run(ctx, o)
			if err != nil || r.Restored != back {
				t.Errorf("restored %v, stopped %q: %s %v", r.Restored, r.Stopped, outcomes(r), err)
			}
			a.wantFile(map[bool]string{true: "one", false: "two"}[back])
		})
	}
}
