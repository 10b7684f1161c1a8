package apply_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
)

// store is where packages are installed, with a log of the transactions.
type store struct {
	mu        sync.Mutex
	installed map[string]bool
	log       []string
}

// pack is a package: several are installed in one transaction, in which a broken one fails alone.
type pack struct {
	Name  string `yaml:"name,required"`
	Group string `yaml:"group"`
	store *store
}

func (a *pack) Join() string { return a.Group }

func (a *pack) Check(context.Context, *apply.Host) (apply.Change, error) {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	if a.store.installed[a.Name] {
		return apply.Change{State: "installed"}, nil
	}
	return apply.Change{Summary: "install"}, nil
}

func (a *pack) install(names ...string) error {
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	slices.Sort(names)
	a.store.log = append(a.store.log, strings.Join(names, "+"))
	var err error
	for _, name := range names {
		if strings.HasPrefix(name, "broken") {
			err = errors.New(name + " is broken")
			continue
		}
		a.store.installed[name] = true
	}
	return err
}

func (a *pack) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return apply.Output{State: "installed"}, a.install(a.Name)
}

func (a *pack) ApplyTogether(_ context.Context, _ *apply.Host, all []apply.Action) error {
	var names []string
	for _, one := range all {
		names = append(names, one.(*pack).Name)
	}
	return a.install(names...)
}

// TestJoin: steps that can be made in one go are, where the order is left free; each has its own end.
func TestJoin(t *testing.T) {
	for _, c := range []struct{ name, ordering, steps, log, outcomes string }{
		{"one transaction", "genius", "a b c", "a+b+c", "a changed, b changed, c changed"},
		{"two of them", "genius", "a b", "a+b", "a changed, b changed"},
		{"in the order of the file", "ansible", "a b", "a, b", "a changed, b changed"},
		{"a broken one fails alone", "genius", "a broken c", "a+broken+c, broken", "a changed, broken failed, c changed"},
		{"what is there takes no part", "genius", "there a b", "a+b", "a changed, b changed, there ok"},
		{"one alone", "genius", "there a", "a", "a changed, there ok"},
		{"one that is skipped takes no part", "genius", "skipped a b", "a+b", "a changed, b changed, skipped skipped"},
		{"one that waits is not waited for", "genius", "waits a b", "a+b, waits", "a changed, b changed, waits changed"},
		{"more than run at once", "genius", "a b c d e f g h i j k l", "a+b+c+d+e+f+g+h+i+j+k+l", ""},
		{"what requires another comes later", "genius", "a after b c", "a+b+c, after", "a changed, after changed, b changed, c changed"},
		{"of another kind", "genius", "a b other other2", "", "a changed, b changed, other changed, other2 changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s := newLab(t), &store{installed: map[string]bool{"there": true}}
			l.more = []apply.Spec{{Name: "t.pack", New: func() apply.Action { return &pack{store: s} }}}
			r := l.run(jobs{{"a", "runOptions: {ordering: " + c.ordering + "}\n" + list(packs(c.steps)...)}})
			got := strings.Split(outcomes(r), ", ")
			slices.Sort(got)
			if joined := strings.Join(got, ", "); c.outcomes != "" && joined != c.outcomes {
				t.Errorf("got  %s\nwant %s\nwhy %s", joined, c.outcomes, r.Why())
			}
			if log := strings.Join(s.log, ", "); c.log != "" && log != c.log {
				t.Errorf("transactions %q, want %q", log, c.log)
			}
		})
	}
}

// TestJoinLog: the log says that steps could not be made together, and nothing where they were.
func TestJoinLog(t *testing.T) {
	for names, want := range map[string]bool{"a b": false, "a broken": true} {
		l, s := newLab(t), &store{installed: map[string]bool{}}
		l.more = []apply.Spec{{Name: "t.pack", New: func() apply.Action { return &pack{store: s} }}}
		var text bytes.Buffer
		log := logrus.New()
		log.SetOutput(&text)
		o := l.options()
		o.Log = logrus.NewEntry(log)
		if _, err := l.program(jobs{{"a", "runOptions: {ordering: genius}\n" + list(packs(names)...)}}).Run(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "steps could not be made together"); got != want {
			t.Errorf("%s: the log is %q", names, text.String())
		}
	}
}

// packs are steps of packages with these names.
func packs(names string) []string {
	more := map[string]string{
		"skipped": ", conditions: {when: {condition: 'false'}}",
		"waits":   `, conditions: {when: {condition: "step('b').Result == 'ok'", retry: {interval: 1ms, limit: 10000}}}`,
		"after":   ", require: [a]",
	}
	var out []string
	for _, name := range strings.Fields(names) {
		group := "packages"
		if strings.HasPrefix(name, "other") {
			group = "others"
		}
		out = append(out, "{name: "+name+", action: t.pack, parameters: {name: "+name+", group: "+group+"}"+more[name]+"}")
	}
	return out
}

// slow is a package whose transaction takes longer than the time that some of its steps have.
type slow struct {
	Name  string `yaml:"name,required"`
	done  bool   // it is shared: only one step at a time may look
	alone func()
}

func (a *slow) Join() string { return "packages" }

func (a *slow) Check(context.Context, *apply.Host) (apply.Change, error) {
	if a.done {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "install"}, nil
}

func (a *slow) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	a.alone()
	return apply.Output{}, nil
}

func (a *slow) ApplyTogether(ctx context.Context, _ *apply.Host, all []apply.Action) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute): // the steps' time is over
	}
	for _, one := range all {
		one.(*slow).done = true
	}
	return nil
}

// TestJoinTimeout: the time of one step is no limit for what is made for the others too, and no step goes on before
// that has ended.
func TestJoinTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { joinTimeout(t) })
}

func joinTimeout(t *testing.T) {
	l := newLab(t)
	var alone atomic.Int32
	l.more = []apply.Spec{{Name: "t.slow", New: func() apply.Action { return &slow{alone: func() { alone.Add(1) }} }}}
	steps := []string{thing("t.slow", "a")}
	for _, name := range []string{"b", "c", "d"} {
		steps = append(steps, thing("t.slow", name, "runOptions: {timeout: 10s}"))
	}
	r := l.run(jobs{{"a", "runOptions: {ordering: genius}\n" + list(steps...)}})
	if len(r.Steps) != 4 || r.Counts[apply.Changed] != 4 || alone.Load() > 0 {
		t.Errorf("%s, %d alone: %s", outcomes(r), alone.Load(), r.Why())
	}
}

// marks makes a file for which others wait, once one of them has asked for it.
type marks struct{ dir string }

func (a *marks) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "mark"}, nil
}

func (a *marks) Apply(ctx context.Context, _ *apply.Host, _ apply.Change) (apply.Output, error) {
	patience.Wait(ctx, time.Minute, func() bool {
		_, err := os.Stat(filepath.Join(a.dir, "asked"))
		return err == nil
	})
	return apply.Output{}, os.WriteFile(filepath.Join(a.dir, "ready"), nil, 0o600)
}

// TestWaitsMakeRoom: what waits for a condition never holds up the step that makes it true, nor what comes behind.
func TestWaitsMakeRoom(t *testing.T) {
	ready := `conditions: {when: {condition: "macro('ready')", retry: {interval: 5ms, limit: 0}}}`
	mark := "{name: mark, action: t.mark%s}"
	for name, js := range map[string]jobs{
		"the condition of a job with more steps than run at once": {
			{"a , " + ready, "runOptions: {ordering: justdoit}\n" + list(packs("a1 a2 a3 a4 a5 a6 a7 a8 a9")...)},
			{"b", "runOptions: {ordering: justdoit}\n" + list(fmt.Sprintf(mark, ""))}},
		"the condition of a job whose steps are made together with others": {
			{"a , " + ready, "runOptions: {ordering: genius}\n" + list(packs("a1 a2")...)},
			{"b", "runOptions: {ordering: genius}\n" + list(append(packs("b1 b2"), fmt.Sprintf(mark, ", require: [b1]"))...)}},
		"the condition of a step before which another one is to run": {
			{"a", list(strings.Replace(packs("target")[0], "}}", "}, "+ready+"}", 1), packs("behind")[0])},
			{"b", "runOptions: {ordering: justdoit}\n" + list("{name: drain, action: t.pack, parameters: {name: drain}, prereq: [a/target]}", fmt.Sprintf(mark, ""))}},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := newLab(t), &store{installed: map[string]bool{}}
			l.root = t.TempDir()
			l.more = []apply.Spec{{Name: "t.pack", New: func() apply.Action { return &pack{store: s} }}, {Name: "t.mark", New: func() apply.Action { return &marks{l.root} }}}
			l.macros = "ready: {t.ask: [{cmd: 'touch asked; test -e ready && echo true || echo false'}]}\n"
			ctx, cancel := context.WithTimeout(context.Background(), patience.Stretch(10*time.Second))
			defer cancel()
			r := l.runContext(ctx, js)
			steps := 0
			for _, j := range js {
				steps += strings.Count(j.text, "{name: ") - strings.Count(j.text, "parameters: {name: ")
			}
			if len(r.Steps) != steps || r.Counts[apply.Changed] != steps {
				t.Errorf("%d steps of %d, stopped %q: %s %s", len(r.Steps), steps, r.Stopped, outcomes(r), r.Why())
			}
		})
	}
}
