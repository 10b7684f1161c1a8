package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pullet/pullet/apply"
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
