package apply_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pullet/pullet/apply"
)

// remains are what a killed run leaves: its state directory, what it did to the host, and which commands have an end on
// record.
type remains struct {
	at       string
	dir      string
	values   map[string]string
	runs     map[string]int
	recorded map[string]bool
}

// killer takes the remains of a run at every moment at which it could be killed.
type killer struct {
	*lab
	base     string         // for the copies
	count    map[string]int // how often each step was applied
	recorded map[string]bool
	taken    []remains
}

func newKiller(l *lab, base string) *killer {
	return &killer{lab: l, base: base, count: map[string]int{}, recorded: map[string]bool{}}
}

// run walks through a program once, and takes the remains before each step starts, while it is at work, and after its
// end is written.
func (k *killer) run(p *apply.Program) *apply.Report {
	k.t.Helper()
	o := k.options()
	o.Gates = holds{ask: func(context.Context) error { k.take("before a start", 0); return nil }}
	k.onApply = func(name string) {
		k.take("at the beginning of "+name, 0)
		k.takeTorn("in the middle of writing the start of ", name)
		k.count[name]++
		k.take("at the end of "+name, 0)
	}
	o.Watch = func(s *apply.StepReport) {
		if k.count[s.Step] > 0 {
			k.takeTorn("in the middle of writing the end of ", s.Step)
		}
		k.recorded[s.Step] = s.Outcome != apply.Failed && k.count[s.Step] > 0
		k.take("after "+s.Step, 0)
	}
	r, err := p.Run(context.Background(), o)
	if err != nil {
		k.t.Fatalf("run: %v", err)
	}
	return r
}

// takeTorn takes a journal whose last line was not written to its end. Validations have no lines in it.
func (k *killer) takeTorn(at, step string) {
	if step != "v" {
		k.take(at+step, 3)
	}
}

// take copies everything as it is now. A cut shortens the journal's last line, as a power failure may.
func (k *killer) take(at string, cut int64) {
	dir := filepath.Join(k.base, fmt.Sprint(len(k.taken)))
	if err := os.CopyFS(dir, os.DirFS(k.dir)); err != nil {
		k.t.Fatal(err)
	}
	if cut > 0 {
		path := filepath.Join(dir, "journal.jsonl")
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if err = errors.Join(err, os.Truncate(path, info.Size()-cut)); err != nil {
			k.t.Fatal(err)
		}
	}
	k.taken = append(k.taken, remains{at, dir, maps.Clone(k.values), maps.Clone(k.count), maps.Clone(k.recorded)})
}

// restart runs the program to its end on what is left, and returns how often each command ran in all.
func (r remains) restart(t tb, js jobs) (*apply.Report, *lab, map[string]int) {
	t.Helper()
	l := newLabIn(t, r.dir)
	l.values = maps.Clone(r.values)
	runs := maps.Clone(r.runs)
	l.onApply = func(name string) { runs[name]++ }
	return l.run(js), l, runs
}

// TestKilledAnywhere: from every point at which a run can be killed, the next one brings the host to the same end, and
// does not repeat what has a successful end on record.
func TestKilledAnywhere(t *testing.T) {
	js := jobs{{"one", list(puts("a"), cmds("b"), puts("c", "require: b"))}, {"two", list(cmds("d", "runOptions: {runs: always}"), thing("t.wait", "e"))}, {"check", list(puts("v"))}}
	k := newKiller(newLab(t), t.TempDir())
	k.want(k.run(k.program(js)), "a changed, b changed, c changed, d changed, e ok, v ok")
	if len(k.taken) < 25 {
		t.Fatalf("%d points, want more than 25", len(k.taken))
	}
	for _, r := range k.taken {
		report, l, runs := r.restart(t, js)
		if report.Failed() || report.Pending() || !maps.Equal(l.values, k.values) {
			t.Errorf("killed %s: %s %s, values %v", r.at, outcomes(report), report.Why(), l.values)
		}
		for name := range r.recorded {
			if again := runs[name] - r.runs[name]; r.recorded[name] && again > 0 && name != "v" && report.Resumed {
				t.Errorf("killed %s: %s has an end on record and ran again", r.at, name)
			}
		}
	}
}

// program is a random set of steps.
type program struct {
	jobs     jobs
	requires map[string][]string
	once     map[string]bool // idempotent: false
	command  map[string]bool
	always   map[string]bool
	skipped  map[string]bool
}

// drawProgram makes steps that require only what was drawn before them, and shuffles them over two jobs.
func drawProgram(t *rapid.T) program {
	p := program{requires: map[string][]string{}, once: map[string]bool{}, command: map[string]bool{}, always: map[string]bool{}, skipped: map[string]bool{}}
	var names, lines []string
	for i := range rapid.IntRange(1, 5).Draw(t, "steps") {
		name := fmt.Sprintf("s%d", i)
		var more []string
		if len(names) > 0 {
			p.requires[name] = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID[string]).Draw(t, "requires")
			more = append(more, "require: ["+strings.Join(p.requires[name], ", ")+"]")
		}
		if p.skipped[name] = rapid.IntRange(0, 5).Draw(t, "skipped") == 0; p.skipped[name] {
			more = append(more, when("false"))
		}
		kind := rapid.SampledFrom([]string{"put", "cmd", "once", "always"}).Draw(t, "kind")
		p.command[name], p.once[name], p.always[name] = kind != "put", kind == "once", kind == "always"
		if option := map[string]string{"once": "idempotent: false", "always": "runs: always"}[kind]; option != "" {
			more = append(more, "runOptions: {"+option+"}")
		}
		action := "t.put"
		if p.command[name] {
			action = "t.cmd"
		}
		names, lines = append(names, name), append(lines, thing(action, name, more...))
	}
	lines = rapid.Permutation(lines).Draw(t, "order")
	cut := rapid.IntRange(0, len(lines)).Draw(t, "cut")
	for name, part := range map[string][]string{"a": lines[:cut], "b": lines[cut:]} {
		if len(part) > 0 {
			p.jobs = append(p.jobs, struct{ name, text string }{name, list(part...)})
		}
	}
	slices.SortFunc(p.jobs, func(x, y struct{ name, text string }) int { return strings.Compare(x.name, y.name) })
	return p
}

// blocked are the steps that cannot run when some failed.
func (p program) blocked(failed map[string]bool) map[string]bool {
	out := map[string]bool{}
	for range len(p.requires) + 1 {
		for name, needs := range p.requires {
			for _, n := range needs {
				out[name] = out[name] || failed[n] || out[n]
			}
		}
	}
	return out
}

// TestRandomKills: the same over random programs. A command that must not be repeated is not, whatever is on record;
// its result is then unknown, stays so, and blocks what requires it; everything else comes to its end.
func TestRandomKills(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "run")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		p := drawProgram(t)
		if err := os.Mkdir(dir+"/state", 0o700); err != nil {
			t.Fatal(err)
		}
		k := newKiller(newLabIn(t, dir+"/state"), dir)
		k.run(k.program(p.jobs))
		for _, r := range k.taken {
			p.checkRestart(t, r)
		}
	})
}

// checkRestart holds what a restart made of the remains against what is promised.
func (p program) checkRestart(t *rapid.T, r remains) {
	report, l, runs := r.restart(t, p.jobs)
	unknown := map[string]bool{}
	for _, s := range report.Steps {
		unknown[s.Step] = s.Outcome == apply.Failed && p.once[s.Step] && r.runs[s.Step] <= 1 && !r.recorded[s.Step]
	}
	blocked := p.blocked(unknown)
	for _, s := range report.Steps {
		name := s.Step
		done := s.Outcome == apply.OK || s.Outcome == apply.Changed || s.Outcome == apply.Skipped && p.skipped[name]
		if !done && !unknown[name] && !(blocked[name] && s.Outcome == apply.Unmet) {
			t.Errorf("killed %s: %s is %s: %s", r.at, name, s.Outcome, s.Reason)
		}
		if done && !p.skipped[name] && !p.command[name] && l.values[name] != "" {
			t.Errorf("killed %s: %s has the value %q", r.at, name, l.values[name])
		}
		if p.once[name] && runs[name] > 1 {
			t.Errorf("killed %s: %s ran %d times and must not be repeated", r.at, name, runs[name])
		}
		if r.recorded[name] && p.command[name] && !p.always[name] && runs[name] > r.runs[name] {
			t.Errorf("killed %s: %s has an end on record and ran again", r.at, name)
		}
	}
	again := l.run(p.jobs)
	for _, s := range again.Steps {
		if unknown[s.Step] != (s.Outcome == apply.Failed) {
			t.Errorf("killed %s: %s was unknown: %v, and is %s at the next pull", r.at, s.Step, unknown[s.Step], s.Outcome)
		}
	}
}

// TestUnknown: a command that must not be repeated and was cut off stays unknown until it, or the version, is another
// one.
func TestUnknown(t *testing.T) {
	js := one(cmds("a", "runOptions: {idempotent: false}"), puts("b", "require: a"), puts("c"))
	k := newKiller(newLab(t), t.TempDir())
	k.run(k.program(js))
	at := slices.IndexFunc(k.taken, func(r remains) bool { return r.at == "at the end of a" })
	l := newLabIn(t, k.taken[at].dir)
	for range 3 {
		r := l.run(js)
		l.want(r, "a failed, b unmet, c "+string(step(t, r, "c").Outcome))
		if why := r.Why(); !strings.Contains(why, "its result is unknown") || !strings.Contains(why, "look at the host") {
			t.Errorf("why: %q", why)
		}
	}
	l.wantRan("c")
	l.version = "v2"
	l.want(l.run(js), "a changed, b changed, c ok")
}

// TestUnknownAndStopped: the reason is told also by the run that goes on after one that was held right behind it.
func TestUnknownAndStopped(t *testing.T) {
	js := one(cmds("a", "runOptions: {idempotent: false}"), puts("c"))
	k := newKiller(newLab(t), t.TempDir())
	k.run(k.program(js))
	at := slices.IndexFunc(k.taken, func(r remains) bool { return r.at == "at the end of a" })
	l := newLabIn(t, k.taken[at].dir)
	l.held = errors.New("held")
	l.want(l.run(js), "a failed, c pending")
	l.held = nil
	r := l.run(js)
	l.want(r, "a failed, c changed")
	if why := r.Why(); !strings.Contains(why, "its result is unknown") {
		t.Errorf("why: %q", why)
	}
}

// TestHeldRunGoesOn: a run that was held goes on where it was; for another version it begins anew.
func TestHeldRunGoesOn(t *testing.T) {
	for _, c := range []struct{ version, want, ran string }{
		{"v1", "a changed, b changed, c changed", "b c"}, {"v2", "a changed, b changed, c changed", "a b c"},
	} {
		l := newLab(t)
		js := one(cmds("a"), cmds("b"), cmds("c"))
		l.onApply = func(name string) { l.held = errors.New("held after " + name) }
		r := l.run(js)
		l.want(r, "a changed, b pending")
		l.wantRan("a")
		l.held, l.onApply, l.version = nil, nil, c.version
		again := l.run(js)
		l.want(again, c.want)
		l.wantRan(strings.Fields(c.ran)...)
		if again.Resumed != (c.version == "v1") {
			t.Errorf("%s: resumed %v", c.version, again.Resumed)
		}
		l.want(l.run(js), "a ok, b ok, c ok")
	}
}

// TestResumedResults: what a step returned before the run was cut off can be read after it.
func TestResumedResults(t *testing.T) {
	l := newLab(t)
	js := one(cmds("a"), puts("b", when("steps['a'].StdOut == 'out of a' && steps['a'].Changed")))
	l.onApply = func(string) { l.held = errors.New("held") }
	l.want(l.run(js), "a changed, b pending")
	l.held, l.onApply = nil, nil
	l.want(l.run(js), "a changed, b changed")
}
