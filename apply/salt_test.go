package apply_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// part is an action whose behaviour its parameter says: ok, change, fail; it notes when it runs and when it reacts.
type part struct {
	Name string `yaml:"name"`
	Does string `yaml:"does"`
	Note string `yaml:"note"`
	log  *notes
}

// notes are what things did, in order.
type notes struct {
	sync.Mutex
	said []string
	done map[string]bool
	at   int // things that run now
	most int
	hold func(name string)
}

func (n *notes) say(what string) {
	n.Lock()
	defer n.Unlock()
	n.said = append(n.said, what)
}

func (a *part) Check(context.Context, *apply.Host) (apply.Change, error) {
	a.log.Lock()
	defer a.log.Unlock()
	if a.Does == "ok" || a.log.done[a.Name+a.Note] {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: a.Does}, nil
}

func (a *part) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	a.log.Lock()
	a.log.at++
	a.log.most = max(a.log.most, a.log.at)
	hold := a.log.hold
	a.log.Unlock()
	if hold != nil {
		hold(a.Name)
	}
	a.log.say(a.Name + a.Note)
	a.log.Lock()
	defer a.log.Unlock()
	a.log.at--
	if a.Does == "fail" {
		return apply.Output{}, errors.New("as told")
	}
	a.log.done[a.Name+a.Note] = true
	return apply.Output{StdOut: "out of " + a.Name}, nil
}

func (a *part) Reaction() string { return "s" }

func (a *part) React(context.Context, *apply.Host) (apply.Output, error) {
	a.log.say(a.Name + "!")
	return apply.Output{}, nil
}

// parts runs one job file and returns the outcomes by step, and what was done in order.
func parts(t *testing.T, log *notes, text string) (outcomes map[string]apply.Outcome, did string) {
	t.Helper()
	program, err := bindParts(log, text)
	if err != nil {
		t.Fatal(err)
	}
	report, err := runParts(t, program)
	if err != nil {
		t.Fatal(err)
	}
	outcomes = map[string]apply.Outcome{}
	for _, s := range report.Steps {
		outcomes[s.Step] = s.Outcome
	}
	return outcomes, strings.Join(log.said, " ")
}

// runParts runs a program on a host with an empty journal.
func runParts(t *testing.T, program *apply.Program) (*apply.Report, error) {
	t.Helper()
	empty, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return program.Run(context.Background(), apply.Options{Run: "r", Host: &apply.Host{Root: "/"}, Journal: empty})
}

func bindParts(log *notes, text string) (*apply.Program, error) {
	log.done = map[string]bool{}
	repo := render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}]\n")}, "jobs/a.yaml": {Data: []byte(text)},
	}})
	cat, err := repo.Compile(render.Input{Node: render.Node{Name: "n"}})
	if err != nil {
		return nil, err
	}
	act := func() apply.Action { return &part{log: log, Does: "change"} }
	raw := func(render.Params) []string { return []string{"raw"} }
	made := apply.Named("made", "name", "note")
	return apply.Bind(cat, []apply.Spec{
		{Name: "t.t", New: act}, {Name: "u.u", New: act},
		{Name: "t.raw", Provides: raw, New: act}, {Name: "t.made", Provides: made, Needs: raw, New: act},
		{Name: "t.used", Needs: made, New: act},
	})
}

// TestSaltTable is Salt's table, one row a case: what the target does, the requisite, and what becomes of the step s
// that has it. "s" ran, "s!" reacted, "" did nothing.
func TestSaltTable(t *testing.T) {
	ran, not := "s", ""
	for _, c := range []struct {
		requisite, targets, does string
		outcome                  apply.Outcome
		did                      string
	}{
		{"require: [a]", "a=ok", "change", apply.Changed, ran},
		{"require: [a]", "a=change", "change", apply.Changed, ran},
		{"require: [a]", "a=fail", "change", apply.Unmet, not},
		{"require: [a]", "a=skip", "change", apply.Changed, ran},
		{"require: [a]", "a=unmet", "change", apply.Unmet, not},
		{"require: [a, b]", "a=ok b=fail", "change", apply.Unmet, not},
		{"require_any: [a, b]", "a=fail b=ok", "change", apply.Changed, ran},
		{"require_any: [a, b]", "a=fail b=fail", "change", apply.Unmet, not},
		{"watch: [a]", "a=ok", "ok", apply.OK, not},
		{"watch: [a]", "a=change", "ok", apply.Changed, "s!"},
		{"watch: [a]", "a=change", "change", apply.Changed, ran}, // it changed itself: no reaction
		{"watch: [a]", "a=fail", "ok", apply.Unmet, not},
		{"watch_any: [a, b]", "a=fail b=change", "ok", apply.Changed, "s!"},
		{"watch_any: [a, b]", "a=fail b=fail", "ok", apply.Unmet, not},
		{"onchanges: [a]", "a=ok", "change", apply.Skipped, not},
		{"onchanges: [a]", "a=change", "change", apply.Changed, ran},
		{"onchanges: [a]", "a=fail", "change", apply.Skipped, not},
		{"onchanges: [a]", "a=skip", "change", apply.Skipped, not},
		{"onchanges: [a, b]", "a=ok b=change", "change", apply.Changed, ran},
		{"onchanges_any: [a, b]", "a=ok b=change", "change", apply.Changed, ran},
		{"onfail: [a]", "a=fail", "change", apply.Changed, ran},
		{"onfail: [a]", "a=ok", "change", apply.Skipped, not},
		{"onfail: [a]", "a=skip", "change", apply.Skipped, not},
		{"onfail: [a, b]", "a=ok b=fail", "change", apply.Changed, ran},
		{"onfail_any: [a, b]", "a=ok b=fail", "change", apply.Changed, ran},
		{"onfail_all: [a, b]", "a=ok b=fail", "change", apply.Skipped, not},
		{"onfail_all: [a, b]", "a=fail b=fail", "change", apply.Changed, ran},
		{"listen: [a]", "a=change", "ok", apply.OK, "s!"},
		{"listen: [a]", "a=ok", "ok", apply.OK, not},
		{"listen: [a]", "a=fail", "ok", apply.OK, not},
		{"listen: [a, b]", "a=change b=change", "ok", apply.OK, "s!"}, // once
		{"listen: [a]", "a=change", "fail", apply.Failed, ran},
		{"prereq: [a]", "a=change", "change", apply.Changed, ran},
		{"prereq: [a]", "a=ok", "change", apply.Skipped, not},
		{"prereq: [a]", "a=skip", "change", apply.Skipped, not},
		{"use: [a]", "a=change", "change", apply.Changed, "s-of-a"},
	} {
		t.Run(c.requisite+" "+c.targets+" "+c.does, func(t *testing.T) {
			text := "steps:\n"
			for target := range strings.FieldsSeq(c.targets) {
				name, does, _ := strings.Cut(target, "=")
				text += targetStep(name, does)
			}
			text += fmt.Sprintf("- {name: s, action: t.t, parameters: {name: s, does: %s}, %s}\n", c.does, c.requisite)
			outcomes, did := parts(t, &notes{}, text)
			mine := strings.Join(slices.DeleteFunc(strings.Fields(did), func(w string) bool { return w[0] != 's' }), " ")
			if outcomes["s"] != c.outcome || mine != c.did {
				t.Errorf("outcome %s, did %q of %q; want %s, %q", outcomes["s"], mine, did, c.outcome, c.did)
			}
		})
	}
}

// targetStep is a step that ends as told.
func targetStep(name, does string) string {
	switch does {
	case "skip":
		return "- {name: " + name + ", action: t.t, parameters: {name: " + name + "}, conditions: {when: {condition: 'false'}}}\n"
	case "unmet":
		return "- {name: x, action: t.t, parameters: {name: x, does: fail}}\n- {name: " + name + ", action: t.t, parameters: {name: " + name + "}, require: [x]}\n"
	}
	return "- {name: " + name + ", action: t.t, parameters: {name: " + name + ", does: " + does + ", note: '-of-a'}}\n"
}

// TestRequisitesIn: every X_in is X declared from the other end.
func TestRequisitesIn(t *testing.T) {
	for kind, want := range map[string]string{
		"require_in": "s after a", "watch_in": "s after a", "onchanges_in": "s after a", "onfail_in": "skipped", "prereq_in": "s before a", "listen_in": "s after a",
	} {
		t.Run(kind, func(t *testing.T) {
			text := fmt.Sprintf("steps:\n- {name: s, action: t.t, parameters: {name: s}}\n- {name: a, action: t.t, parameters: {name: a}, %s: [s]}\n", kind)
			outcomes, did := parts(t, &notes{}, text)
			got := map[string]string{"a s": "s after a", "s a": "s before a", "a": "skipped"}[did]
			if kind == "listen_in" { // no order: s changed itself, and reacts once more at the end
				got = map[string]string{"s a s!": "s after a"}[did]
			}
			if got != want {
				t.Errorf("did %q, outcomes %v; want %s", did, outcomes, want)
			}
		})
	}
}

// TestPrereqTarget: the target of a prereq runs only when the step before it succeeded.
func TestPrereqTarget(t *testing.T) {
	outcomes, did := parts(t, &notes{}, "steps:\n- {name: a, action: t.t, parameters: {name: a}}\n- {name: s, action: t.t, parameters: {name: s, does: fail}, prereq: [a]}\n")
	if did != "s" || outcomes["a"] != apply.Unmet {
		t.Errorf("did %q, outcomes %v", did, outcomes)
	}
}

// TestOrderings: ansible runs one after another, justdoit at once, genius by what a step obviously needs; requisites
// always hold.
func TestOrderings(t *testing.T) {
	text := func(mode string) string {
		return "runOptions: {ordering: " + mode + `}
steps:
- {name: u, action: t.used, parameters: {name: web, note: -used}}
- {name: v, action: t.used, parameters: {name: db, note: -used}}
- {name: m, action: t.made, parameters: {name: web, note: -made}}
- {name: n, action: t.made, parameters: {name: x, note: db}}
- {name: r, action: t.raw, parameters: {name: raw}}
- {name: last, action: t.t, parameters: {name: last}, require: [u, v]}
`
	}
	for mode, want := range map[string]string{"ansible": "web-used db-used web-made xdb raw last", "genius": ""} {
		t.Run(mode, func(t *testing.T) {
			log := &notes{}
			outcomes, did := parts(t, log, text(mode))
			if mode == "ansible" && (did != want || log.most != 1) {
				t.Errorf("did %q, %d at once", did, log.most)
			}
			for _, pair := range [][2]string{{"raw", "web-made"}, {"raw", "xdb"}, {"web-made", "web-used"}, {"xdb", "db-used"}, {"db-used", "last"}} {
				if mode == "genius" && strings.Index(did, pair[0]) > strings.Index(did, pair[1]) {
					t.Errorf("did %q: %s comes before %s", did, pair[0], pair[1])
				}
			}
			if len(outcomes) != 6 {
				t.Errorf("outcomes %v", outcomes)
			}
		})
	}
	t.Run("justdoit", func(t *testing.T) {
		log := &notes{}
		var together sync.WaitGroup
		together.Add(5) // the five that need nothing must be there at the same time, or this never ends
		log.hold = func(name string) {
			if name != "last" {
				together.Done()
				together.Wait()
			}
		}
		_, did := parts(t, log, text("justdoit"))
		last := strings.Index(did, "last") // after what it requires; the others may end when they like
		if last < strings.Index(did, "/d/e/f") || last < strings.Index(did, "web-svc") {
			t.Errorf("did %q", did)
		}
	})
}

// TestWaitHoldsOnlyItsJob: a step that waits for a condition holds the rest of its job, and other jobs go on: what it
// waits for may be there.
func TestWaitHoldsOnlyItsJob(t *testing.T) {
	log := &notes{done: map[string]bool{}}
	repo := render.Open(render.Layer{Name: "main", FS: fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs:\n  '*': [{name: a}, {name: b}]\n")},
		"jobs/a.yaml": {Data: []byte("steps:\n- {name: waits, action: t.t, parameters: {name: waits}, conditions: {when: {condition: \"step('b/' + 'made').Changed\", retry: {interval: 1ms}}}}\n" +
			"- {name: after, action: t.t, parameters: {name: after}}\n")},
		"jobs/b.yaml": {Data: []byte("steps:\n- {name: first, action: t.t, parameters: {name: first}}\n- {name: made, action: t.t, parameters: {name: made}}\n")},
	}})
	cat, err := repo.Compile(render.Input{Node: render.Node{Name: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	program, err := apply.Bind(cat, []apply.Spec{{Name: "t.t", New: func() apply.Action { return &part{log: log, Does: "change"} }}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := runParts(t, program)
	if did := strings.Join(log.said, " "); err != nil || did != "first made waits after" || report.Changed() != 4 {
		t.Errorf("did %q, %v, %v", did, report.Counts, err)
	}
}

// TestWaitingParameters: what a step returns reaches the parameters of another, of its own job and of another one; a
// plan says that it does not know yet.
func TestWaitingParameters(t *testing.T) {
	log := &notes{}
	text := "steps:\n- {name: token, action: t.t, sensitive: true, parameters: {name: token}}\n" +
		"- {name: join, action: t.t, parameters: {name: 'join with {{ (step \"token\").StdOut }}'}}\n"
	program, err := bindParts(log, text)
	if err != nil {
		t.Fatal(err)
	}
	empty, err := journal.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := apply.Options{Run: "r", Host: &apply.Host{Root: "/"}, Journal: empty}
	plan := program.Plan(context.Background(), o)
	if s := plan.Steps[1]; s.Outcome != apply.Changed || s.Summary != "depends on what a/token returns" {
		t.Errorf("plan: %+v", s)
	}
	if _, err := program.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if did := strings.Join(log.said, ", "); did != "token, join with out of token" {
		t.Errorf("did %q", did)
	}
}

// TestForEachRequisite: a requisite on a step with forEach means all of its instances.
func TestForEachRequisite(t *testing.T) {
	outcomes, did := parts(t, &notes{}, "steps:\n- {name: s, action: t.t, parameters: {name: s}, require: [each]}\n"+
		"- {name: each, action: t.t, forEach: [ok, change, fail], parameters: {name: 'i{{ item }}', does: '{{ item }}'}}\n")
	if outcomes["s"] != apply.Unmet || did != "ichange ifail" {
		t.Errorf("did %q, outcomes %v", did, slices.Sorted(maps.Keys(outcomes)))
	}
}

// TestJobConditionAtOnce: many steps of a job at once ask its condition, which waits: one answer serves all, and
// nothing is stuck.
func TestJobConditionAtOnce(t *testing.T) {
	log := &notes{}
	log.done = map[string]bool{}
	files := fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs:\n  '*':\n    - {name: a, conditions: {when: {condition: \"step('b/' + 'made').Changed\", retry: {interval: 1ms}}}}\n    - {name: b}\n")},
		"jobs/a.yaml":    {Data: []byte("runOptions: {ordering: justdoit}\nsteps: [{name: many, forEach: '1..40', action: t.t, parameters: {name: 'm{{ item }}'}}]\n")},
		"jobs/b.yaml":    {Data: []byte("steps:\n- {name: first, action: t.t, parameters: {name: first}}\n- {name: made, action: t.t, parameters: {name: made}}\n")},
	}
	cat, err := render.Open(render.Layer{Name: "main", FS: files}).Compile(render.Input{Node: render.Node{Name: "n"}})
	if err != nil {
		t.Fatal(err)
	}
	program, err := apply.Bind(cat, []apply.Spec{{Name: "t.t", New: func() apply.Action { return &part{log: log, Does: "change"} }}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := runParts(t, program)
	if err != nil || report.Changed() != 42 || log.most > 8 {
		t.Errorf("%v, %d at once, %v", report.Counts, log.most, err)
	}
}
