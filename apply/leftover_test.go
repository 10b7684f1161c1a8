package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// stubborn removes an asset, or says why it cannot.
type stubborn struct {
	goneAsset `yaml:",inline"`
}

func (a *stubborn) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	if bad := a.all.checks["no "+a.Name]; bad != "" {
		return apply.Change{}, errors.New(bad)
	}
	return a.goneAsset.Check(ctx, h)
}

func (a *stubborn) Apply(ctx context.Context, h *apply.Host, c apply.Change) (apply.Output, error) {
	if a.all.fails["no "+a.Name] != "" {
		return a.all.apply("no " + a.Name)
	}
	return a.goneAsset.Apply(ctx, h, c)
}

// otherwise removes an asset by parameters that other versions of pullet do not know.
type otherwise struct {
	goneAsset `yaml:",inline"`
	Force     string `yaml:"force,required"`
}

// room is a directory below the lab's root. It is removed when it is empty.
type room struct {
	Name string `yaml:"name,required"`
	lab  *lab
	gone bool
}

func (a *room) path() string { return filepath.Join(a.lab.root, a.Name) }

func (a *room) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	_, err := os.Stat(a.path())
	full, _ := os.ReadDir(a.path())
	if a.gone && (err != nil || len(full) > 0 || h.Goes(a.Name)) || !a.gone && err == nil {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "directory", Removes: map[bool][]string{true: {a.Name}}[a.gone]}, nil
}

func (a *room) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	if a.gone {
		return apply.Output{}, os.Remove(a.path())
	}
	return apply.Output{}, os.Mkdir(a.path(), 0o700)
}

// roomMade is a room that is to be there.
type roomMade struct {
	room `yaml:",inline"`
}

func (a *roomMade) Manages() []apply.Resource {
	return []apply.Resource{{ID: "dir " + a.Name, Path: a.Name, Absent: "t.noroom", Params: map[string]any{"name": a.Name}}}
}

// remover makes the actions of assets that can be removed, or not.
func remover(t *testing.T) *assets {
	a := newAssets(t)
	a.root = t.TempDir()
	a.more[1].New = func() apply.Action { return &stubborn{goneAsset{all: a}} }
	a.more = append(
		a.more,
		apply.Spec{Name: "t.room", New: func() apply.Action { return &roomMade{room{lab: a.lab}} }},
		apply.Spec{Name: "t.noroom", New: func() apply.Action { return &room{lab: a.lab, gone: true} }},
	)
	return a
}

// leftovers are those of a report, a line each.
func leftovers(r *apply.Report) string {
	out := ""
	for _, l := range r.Leftovers {
		out += fmt.Sprintf("%s of %s: %s", l.ID, l.Job, l.Why) + map[bool]string{true: " (held)"}[l.Held] + "\n"
	}
	return out
}

// pruning is a job that prunes, with steps.
func pruning(steps ...string) jobs { return jobs{{"a", "prune: true\n" + list(steps...)}} }

// TestWhatCannotBeRemoved: a thing that cannot be removed stays on record, with the reason in the report, and is no
// failure where nothing was tried. The next run that can removes it.
func TestWhatCannotBeRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		step    string
		breaks  func(*assets)
		fixes   func(*assets)
		left    string
		outcome string
	}{
		"it cannot be looked at": {
			thing("t.asset", "x"), func(a *assets) { a.checks["no x"] = "cannot look" }, func(a *assets) { delete(a.checks, "no x") },
			"asset x of a: it cannot be removed: cannot look\n", "other ok",
		},
		"it does not go": {
			thing("t.asset", "x"), func(a *assets) { a.fails["no x"] = "busy" }, func(a *assets) { delete(a.fails, "no x") },
			"asset x of a: it could not be removed: busy\n", "other ok, prune asset x failed",
		},
		"nothing removes it any longer": {
			thing("t.asset", "x"), func(a *assets) { a.more[1].Name = "t.another" }, func(a *assets) { a.more[1].Name = "t.gone" },
			"asset x of a: nothing removes it by itself: a step has to\n", "other ok",
		},
		"it is removed otherwise now": {
			thing("t.asset", "x"),
			func(a *assets) {
				a.more[1].New = func() apply.Action { return &otherwise{goneAsset: goneAsset{all: a}} }
			},
			func(a *assets) { a.more[1].New = func() apply.Action { return &goneAsset{all: a} } },
			"asset x of a: it could not be removed in this run\n", "other ok",
		},
		"others have something in it": {
			thing("t.room", "/x"), func(a *assets) { mustDo(a, os.WriteFile(filepath.Join(a.root, "x/theirs"), nil, 0o600)) },
			func(a *assets) { mustDo(a, os.Remove(filepath.Join(a.root, "x/theirs"))) },
			"dir /x of a: there is something in it that no job brought\n", "other ok",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := remover(t)
			a.at("v1", pruning(puts("other"), c.step), nil)
			c.breaks(a)
			for _, version := range []string{"v2", "v2", "v3"} {
				r := a.at(version, pruning(puts("other")), nil)
				if a.want(r, c.outcome); leftovers(r) != c.left {
					t.Errorf("left %s\nwant %s", leftovers(r), c.left)
				}
			}
			c.fixes(a)
			r := a.at("v3", pruning(puts("other")), nil)
			if !strings.HasPrefix(outcomes(r), "other ok, prune ") || r.Changed() != 1 || r.Failed() || leftovers(r) != "" {
				t.Errorf("fixed: %s, left %s", outcomes(r), leftovers(r))
			}
			if r := a.at("v4", pruning(puts("other")), nil); r.Changed() > 0 || leftovers(r) != "" {
				t.Errorf("the next run: %s, left %s", outcomes(r), leftovers(r))
			}
		})
	}
}

func mustDo(a *assets, err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// TestGoneByHand: a thing that is gone already is forgotten without a word; one that comes back by another's hand is
// not pullet's.
func TestGoneByHand(t *testing.T) {
	for name, c := range map[string]struct {
		step string
		goes func(*assets)
		back func(*assets)
	}{
		"an asset":    {thing("t.asset", "x"), func(a *assets) { delete(a.values, "x") }, func(a *assets) { a.values["x"] = "theirs" }},
		"a directory": {thing("t.room", "/x"), func(a *assets) { mustDo(a, os.Remove(filepath.Join(a.root, "x"))) }, func(a *assets) { mustDo(a, os.Mkdir(filepath.Join(a.root, "x"), 0o700)) }},
		"a file that nothing removes": {
			"{name: x, action: t.file, parameters: {name: /x, value: x}}", func(a *assets) { mustDo(a, os.Remove(filepath.Join(a.root, "x"))) },
			func(a *assets) { mustDo(a, os.WriteFile(filepath.Join(a.root, "x"), nil, 0o600)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := remover(t)
			a.at("v1", pruning(puts("other"), c.step), nil)
			c.goes(a)
			r := a.at("v2", pruning(puts("other")), nil)
			if a.want(r, "other ok"); leftovers(r) != "" {
				t.Errorf("left %s", leftovers(r))
			}
			c.back(a)
			r = a.at("v3", pruning(puts("other")), nil)
			if a.want(r, "other ok"); leftovers(r) != "" {
				t.Errorf("what came back: left %s", leftovers(r))
			}
		})
	}
}

// TestPrunedIsForgotten: what was removed and comes back by another's hand is not pullet's, also where a plan came
// first.
func TestPrunedIsForgotten(t *testing.T) {
	a := remover(t)
	a.at("v1", pruning(puts("other"), thing("t.asset", "x"), thing("t.room", "/d")), nil)
	a.program(pruning(puts("other"))).Plan(t.Context(), a.options())
	a.want(a.at("v2", pruning(puts("other")), nil), "other ok, prune dir /d changed, prune asset x changed")
	a.values["x"] = "theirs"
	mustDo(a, os.Mkdir(filepath.Join(a.root, "d"), 0o700))
	r := a.at("v3", pruning(puts("other")), nil)
	if a.want(r, "other ok"); leftovers(r) != "" {
		t.Errorf("left %s", leftovers(r))
	}
}

// TestPruneTouchesNothingInAPlan: a plan says what would go, and forgets nothing. What a step of the plan removes is no
// leftover.
func TestPruneTouchesNothingInAPlan(t *testing.T) {
	a := remover(t)
	a.at("v1", pruning(thing("t.asset", "x"), thing("t.room", "/d"), "{name: f, action: t.file, parameters: {name: /f, value: x}}"), nil)
	a.ran = nil
	then := pruning(puts("other"))
	for range 2 {
		plan := a.program(then).Plan(t.Context(), a.options())
		a.want(plan, "other changed, prune dir /d changed, prune asset x changed")
		if want := "file /f of a: nothing removes it by itself: a step has to\n"; leftovers(plan) != want {
			t.Errorf("left %s\nwant %s", leftovers(plan), want)
		}
	}
	a.wantRan()
	byStep := pruning("{name: no d, action: t.noroom, parameters: {name: /d}}", thing("t.asset", "x"))
	plan := a.program(byStep).Plan(t.Context(), a.options())
	if a.want(plan, "no d changed, x ok"); strings.Contains(leftovers(plan), "/d") {
		t.Errorf("left %s", leftovers(plan))
	}
	r := a.at("v2", then, nil)
	a.want(r, "other changed, prune dir /d changed, prune asset x changed")
}

// TestStoppedWhileItPrunes: when a run is told to stop, what is left is removed by the next one.
func TestStoppedWhileItPrunes(t *testing.T) {
	a := remover(t)
	a.at("v1", pruning(puts("other"), thing("t.asset", "x"), thing("t.asset", "y")), nil)
	ctx, cancel := context.WithCancel(t.Context())
	a.onApply = func(string) { cancel() }
	a.version = "v2"
	r := a.runContext(ctx, pruning(puts("other")))
	a.want(r, "other ok, prune asset y changed")
	if want := "asset x of a: it could not be removed in this run\n"; leftovers(r) != want || !r.Pending() {
		t.Errorf("pending %v, left %s\nwant %s", r.Pending(), leftovers(r), want)
	}
	a.onApply, a.ran = nil, nil
	r = a.at("v2", pruning(puts("other")), nil)
	a.wantRan("no x")
	if leftovers(r) != "" || r.Pending() {
		t.Errorf("left %s", leftovers(r))
	}
}

// TestPruneOrder: what came last goes first, and what uses others before them.
func TestPruneOrder(t *testing.T) {
	a := remover(t)
	a.more[0].New = func() apply.Action { return &several{asset{put{lab: a.lab}}} }
	a.more = append(a.more, apply.Spec{Name: "t.first", RemovesFirst: true, New: func() apply.Action { return &goneAsset{all: a} }})
	steps := []string{thing("t.asset", "a"), thing("t.asset", "b first"), thing("t.asset", "c"), thing("t.asset", "d first"), thing("t.asset", "e")}
	a.at("v1", pruning(steps...), nil)
	a.want(a.at("v2", pruning(puts("other")), nil), "other changed, prune asset d first changed, prune asset b first changed, "+
		"prune asset e changed, prune asset c changed, prune asset a changed")
}

// several are assets of which some are removed first.
type several struct {
	asset `yaml:",inline"`
}

func (a *several) Manages() []apply.Resource {
	what := a.asset.Manages()
	if strings.HasSuffix(a.Name, "first") {
		what[0].Absent = "t.first"
	}
	return what
}

// TestHeldUpIsWhatWouldGo: above the limit, the things that would be removed are held; what stays anyway is not. Up to
// ten things go at once where nothing else is said.
func TestHeldUpIsWhatWouldGo(t *testing.T) {
	many := func(n int) (out []string) {
		for i := range n {
			out = append(out, thing("t.asset", fmt.Sprintf("x%02d", i)))
		}
		return append(out, "{name: f, action: t.file, parameters: {name: /f, value: x}}")
	}
	for _, c := range []struct {
		things, changed, held int
		all                   bool
	}{{10, 11, 0, false}, {11, 1, 11, false}, {11, 12, 0, true}} {
		a := remover(t)
		a.at("v1", pruning(many(c.things)...), nil)
		r := a.at("v2", pruning(puts("other")), func(o *apply.Options) { o.PruneAll = c.all })
		held := 0
		for _, l := range r.Leftovers {
			if l.Held != strings.HasPrefix(l.ID, "asset") {
				t.Errorf("%+v", l)
			}
			if l.Held {
				held++
			}
		}
		if r.Changed() != c.changed || held != c.held || len(r.Leftovers) != c.held+1 {
			t.Errorf("%+v: %d changed, %d held of %d", c, r.Changed(), held, len(r.Leftovers))
		}
	}
}
