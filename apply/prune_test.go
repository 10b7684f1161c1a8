package apply_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pullet/pullet/apply"
)

// assets are things on the lab's host that can be removed.
type assets struct {
	*lab
	with   map[string]string // what goes when a thing is removed
	looked int               // how often it was asked whether a thing is gone
}

func newAssets(t *testing.T) *assets {
	a := &assets{lab: newLab(t), with: map[string]string{}}
	a.more = []apply.Spec{
		{Name: "t.asset", New: func() apply.Action { return &asset{put: put{lab: a.lab}} }},
		{Name: "t.gone", New: func() apply.Action { return &goneAsset{all: a} }},
		{Name: "t.daemon", New: func() apply.Action { return &daemon{put{lab: a.lab}} }},
		{Name: "t.part", New: func() apply.Action { return &inFile{asset{put{lab: a.lab}}} }},
		{Name: "t.file", New: func() apply.Action { return &rootFile{lab: a.lab} }},
	}
	return a
}

// asset is a value that can be removed.
type asset struct {
	put `yaml:",inline"`
}

func (a *asset) Manages() []apply.Resource {
	return []apply.Resource{{ID: "asset " + a.Name, Absent: "t.gone", Params: map[string]any{"name": a.Name}}}
}

// goneAsset removes an asset, and what goes with it.
type goneAsset struct {
	Name string `yaml:"name,required"`
	all  *assets
}

func (a *goneAsset) Check(context.Context, *apply.Host) (apply.Change, error) {
	a.all.looked++
	if _, there := a.all.values[a.Name]; !there {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "remove " + a.Name}, nil
}

func (a *goneAsset) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	delete(a.all.values, a.Name)
	delete(a.all.values, a.all.with[a.Name])
	return a.all.apply("no " + a.Name)
}

// daemon is a value that reacts.
type daemon struct {
	put `yaml:",inline"`
}

func (a *daemon) Reaction() string { return "restart" }

func (a *daemon) React(context.Context, *apply.Host) (apply.Output, error) {
	return a.lab.apply(a.Name + "!")
}

// inFile is an asset that stands in a file.
type inFile struct {
	asset `yaml:",inline"`
}

func (a *inFile) Manages() []apply.Resource {
	what := a.asset.Manages()
	what[0].Path, what[0].Part = "/f", true
	return what
}

// rootFile is a file below the lab's root.
type rootFile struct {
	Name  string `yaml:"name,required"`
	Value string `yaml:"value"`
	lab   *lab
}

func (a *rootFile) path() string { return filepath.Join(a.lab.root, a.Name) }

func (a *rootFile) Check(context.Context, *apply.Host) (apply.Change, error) {
	if have, err := os.ReadFile(a.path()); err == nil && string(have) == a.Value {
		return apply.Change{}, nil
	}
	return apply.Change{Summary: "write"}, nil
}

func (a *rootFile) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	return apply.Output{}, os.WriteFile(a.path(), []byte(a.Value), 0o600)
}

func (a *rootFile) Manages() []apply.Resource {
	return []apply.Resource{{ID: "file " + a.Name, Path: a.Name}}
}

// pull is the next version of the assets' host.
func (a *assets) pull(js jobs, say func(*apply.Options)) *apply.Report {
	a.t.Helper()
	a.version = fmt.Sprint("v", a.runs)
	o := a.options()
	o.Keep = filepath.Join(a.dir, "kept")
	if say != nil {
		say(&o)
	}
	r, err := a.program(js).Run(context.Background(), o)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// TestPruned: what no job declares any longer is removed where the job that brought it says so, or the operator does;
// else the report names it.
func TestPruned(t *testing.T) {
	const prune = "prune: true\n"
	two := list(thing("t.asset", "x"), thing("t.asset", "y"))
	none := list(puts("other"))
	removed := jobs{{"b", none}}
	const gone = "prune asset y changed, prune asset x changed"
	for name, c := range map[string]struct {
		before string // is on the host
		first  string
		then   jobs
		say    func(*apply.Options)
		want   string
		left   string
	}{
		"the job says so":          {"", prune + two, jobs{{"a", prune + none}}, nil, "other changed, " + gone, ""},
		"the job does not":         {"", two, jobs{{"a", none}}, nil, "other changed", "asset y: job a does not say prune: true; asset x: job a does not say prune: true; "},
		"a removed job said so":    {"", prune + two, removed, nil, "other changed, " + gone, ""},
		"a removed job did not":    {"", two, removed, nil, "other changed", "asset y: job a, which was removed, did not say prune: true; asset x: job a, which was removed, did not say prune: true; "},
		"the operator says so":     {"", two, removed, func(o *apply.Options) { o.PruneRemoved = true }, "other changed, " + gone, ""},
		"not of a job that stays":  {"", two, jobs{{"a", none}}, func(o *apply.Options) { o.PruneRemoved = true }, "other changed", "asset y: job a does not say prune: true; asset x: job a does not say prune: true; "},
		"one was there before":     {"x", prune + two, jobs{{"a", prune + none}}, nil, "other changed, prune asset y changed", "asset x: it was on the host before job a managed it; "},
		"as many as the limit":     {"", prune + two, jobs{{"a", prune + none}}, func(o *apply.Options) { o.PruneLimit = 2 }, "other changed, " + gone, ""},
		"all, above the limit":     {"", prune + two, jobs{{"a", prune + none}}, func(o *apply.Options) { o.PruneLimit, o.PruneAll = 1, true }, "other changed, " + gone, ""},
		"one more than the limit":  {"", prune + two, jobs{{"a", prune + none}}, func(o *apply.Options) { o.PruneLimit = 1 }, "other changed", heldUp("y") + heldUp("x")},
		"a run that did not do it": {"", prune + two, jobs{{"a", prune + list(puts("fails"))}}, nil, "fails failed", "asset y: this run did not succeed; asset x: this run did not succeed; "},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			a.fails["fails"] = "broken"
			if c.before != "" {
				a.values[c.before] = "another"
			}
			a.pull(jobs{{"a", c.first}}, nil)
			r := a.pull(c.then, c.say)
			a.want(r, c.want)
			left := ""
			for _, l := range r.Leftovers {
				left += l.ID + ": " + l.Why + "; "
			}
			if left != c.left {
				t.Errorf("left %s\nwant %s", left, c.left)
			}
		})
	}
}

func heldUp(name string) string {
	return "asset " + name + ": 2 things at once are more than the limit of 1: look at them with pullet plan --prune-all, and remove them with pullet pull --prune-all; "
}

// TestGoesWithAnother: a thing that stays and goes with one that is removed is no leftover. Where nothing is removed,
// what stays is looked at once.
func TestGoesWithAnother(t *testing.T) {
	a := newAssets(t)
	a.values["unit"], a.with["package"] = "another", "unit"
	a.pull(jobs{{"a", "prune: true\n" + list(thing("t.asset", "package"), thing("t.asset", "unit"))}}, nil)
	a.looked = 0
	r := a.pull(jobs{{"a", "prune: true\n" + list(thing("t.asset", "package"))}}, nil)
	if len(r.Leftovers) != 1 || a.looked != 1 {
		t.Errorf("%+v, looked at %d times", r.Leftovers, a.looked)
	}
	r = a.pull(jobs{{"a", "prune: true\n" + list(puts("other"))}}, nil)
	a.want(r, "other changed, prune asset package changed")
	if len(r.Leftovers) != 0 {
		t.Errorf("%+v", r.Leftovers)
	}
}

// TestLeftAndGone: what nobody removes is reported as long as it is there: a file as long as it stands, a part of it as
// long as it is in the file.
func TestLeftAndGone(t *testing.T) {
	a := newAssets(t)
	a.root = t.TempDir()
	a.pull(one("{name: f, action: t.file, parameters: {name: /f, value: x}}", thing("t.part", "line"), thing("t.asset", "x")), nil)
	left := func(want string) {
		t.Helper()
		got := ""
		for _, l := range a.pull(one(puts("other")), nil).Leftovers {
			got += l.ID + ", "
		}
		if got != want {
			t.Errorf("left %s, want %s", got, want)
		}
	}
	left("asset x, asset line, file /f, ")
	delete(a.values, "line")
	left("asset x, file /f, ")
	if err := os.Remove(filepath.Join(a.root, "f")); err != nil {
		t.Fatal(err)
	}
	left("asset x, ")
	delete(a.values, "x")
	left("")
}

// TestReactionsToWhatIsPutBack: when a failed upgrade is undone, who watches the files reacts: also one whose own
// reaction failed, or did not come to it.
func TestReactionsToWhatIsPutBack(t *testing.T) {
	a := newAssets(t)
	a.root = t.TempDir()
	version := func(value string) jobs {
		return jobs{{"a", "onFailure: restore\n" + list(
			"{name: f, action: t.file, parameters: {name: /f, value: "+value+"}}",
			thing("t.daemon", "well", "watch: [f]"), thing("t.daemon", "fails", "watch: [f]"), thing("t.daemon", "unmet", "watch: [f]", "require: [fails]"),
			thing("t.daemon", "skipped", "watch: [f]", when("false")))}}
	}
	a.pull(version("one"), nil)
	a.ran = nil
	a.fails["fails!"] = "it does not start"
	a.onApply = func(string) { // what was broken is well again with the old file
		if have, err := os.ReadFile(filepath.Join(a.root, "f")); err != nil || string(have) == "one" {
			delete(a.fails, "fails!")
		}
	}
	r := a.pull(version("two"), nil)
	a.want(r, "f changed, well changed, fails failed, unmet unmet, skipped skipped, restore /f changed, well (restore) changed, fails (restore) changed, unmet (restore) changed")
	a.wantRan("well!", "fails!", "well!", "fails!", "unmet!")
}
