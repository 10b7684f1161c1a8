package apply_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// at is a run of a version.
func (a *assets) at(version string, js jobs, say func(*apply.Options)) *apply.Report {
	a.t.Helper()
	a.version = version
	o := a.options()
	if say != nil {
		say(&o)
	}
	r, err := a.program(js).Run(context.Background(), o)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// killed is a run that is killed at a moment: when something is applied, or after the end of a step is on record. What
// was applied until then did what it should: done says what the action that was at work had reached. The report is that
// of the run as if it had not been killed.
func (a *assets) killed(version string, js jobs, moment string, done map[string]string) *apply.Report {
	a.t.Helper()
	dir, values, taken := filepath.Join(a.dir, "left"), map[string]string(nil), false
	take := func(what string) {
		if what != moment || taken {
			return
		}
		taken, values = true, maps.Clone(a.values)
		maps.Copy(values, done)
		if err := os.Mkdir(dir, 0o700); err != nil {
			a.t.Fatal(err)
		}
		for _, name := range []string{"journal.jsonl", "managed.json", "done.json"} {
			text, err := os.ReadFile(filepath.Join(a.dir, name))
			if os.IsNotExist(err) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
			}
			if err != nil {
				a.t.Fatal(err)
			}
		}
	}
	before := a.onApply
	a.onApply = take
	r := a.at(version, js, func(o *apply.Options) {
		o.Watch = func(s *apply.StepReport) { take("after " + s.Step) }
	})
	if !taken {
		a.t.Fatalf("the run has no moment %q: %q", moment, a.ran)
	}
	a.dir, a.values, a.onApply, a.ran = dir, values, before, nil
	return r
}

// valued is a step that puts a value.
func valued(name, value string, more ...string) string {
	return strings.Replace(puts(name, more...), "{name: "+name+"}", "{name: "+name+", value: '"+value+"'}", 1)
}

// TestKilledBeforeTheReaction: a step that watches another answers its change once, also where the run that made the
// change was killed and the next one is for another version, which finds nothing to change.
func TestKilledBeforeTheReaction(t *testing.T) {
	js := func(value string) jobs {
		return one(valued("conf", value), puts("more"), thing("t.daemon", "svc", "watch: [conf]"))
	}
	done := map[string]string{"conf": "2"}
	for name, c := range map[string]struct {
		moment, version string
		want            string
		ran             []string
	}{
		"at work, another version":             {"conf", "v3", "conf ok, more ok, svc changed", []string{"svc!"}},
		"its end is on record, another":        {"after conf", "v3", "conf ok, more ok, svc changed", []string{"svc!"}},
		"in the reaction, another version":     {"svc!", "v3", "conf ok, more ok, svc changed", []string{"svc!"}},
		"at work, the same version":            {"conf", "v2", "conf ok, more ok, svc changed", []string{"svc!"}},
		"its end is on record, the same":       {"after conf", "v2", "conf changed, more ok, svc changed", []string{"svc!"}},
		"in the reaction, the same version":    {"svc!", "v2", "conf changed, more ok, svc changed", []string{"svc!"}},
		"it reacted, and the run was not over": {"after svc", "v2", "conf changed, more ok, svc changed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			a.at("v1", js("1"), nil)
			a.killed("v2", js("2"), c.moment, done)
			r := a.at(c.version, js("2"), nil)
			a.want(r, c.want)
			a.wantRan(c.ran...)
			if again := a.at("v4", js("2"), nil); again.Changed() > 0 {
				t.Errorf("the next run: %s", outcomes(again))
			}
		})
	}
}

// TestKilledBesideWhatIsWatched: what did not change is no reason to react, however the run ended.
func TestKilledBesideWhatIsWatched(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		a := newAssets(t)
		a.values["conf"], a.values["svc"] = "", ""
		js := one(puts("conf"), puts("more"), thing("t.daemon", "svc", "watch: [conf]"))
		a.killed("v1", js, "more", nil)
		a.want(a.at(version, js, nil), "conf ok, more changed, svc ok")
		a.wantRan("more")
	}
}

// TestKilledWhileItPrunes: who watched a thing answers its removal once, also where the run that removed it was killed,
// and where the answer fails at first.
func TestKilledWhileItPrunes(t *testing.T) {
	svc := thing("t.daemon", "svc", "watch: [x]")
	before := jobs{{"a", "prune: true\n" + list(thing("t.asset", "x"), svc)}}
	then := jobs{{"a", "prune: true\n" + list(thing("t.daemon", "svc"))}}
	for _, moment := range []string{"no x", "after prune asset x", "svc!"} {
		for _, version := range []string{"v2", "v3"} {
			t.Run(moment+" "+version, func(t *testing.T) {
				a := newAssets(t)
				a.at("v1", before, nil)
				a.ran = nil
				a.killed("v2", then, moment, nil)
				a.fails["svc!"] = "not now"
				if r := a.at(version, then, nil); !r.Failed() {
					t.Errorf("the reaction fails: %s", outcomes(r))
				}
				a.wantRan("svc!")
				delete(a.fails, "svc!")
				r := a.at("v4", then, nil)
				a.want(r, "svc ok, svc (prune) changed")
				a.wantRan("svc!")
				if r := a.at("v5", then, nil); r.Changed() > 0 {
					t.Errorf("the next run: %s", outcomes(r))
				}
			})
		}
	}
}

// TestKilledWhileItMakes: what a killed run made is removed when the next version does not declare it, also where that
// is the version before. What was on the host before pullet managed it stays.
func TestKilledWhileItMakes(t *testing.T) {
	none, with := jobs{{"a", "prune: true\n" + list(puts("other"))}}, jobs{{"a", "prune: true\n" + list(puts("other"), thing("t.asset", "x"))}}
	for name, c := range map[string]struct {
		first, next string
		want        string
	}{
		"nothing before":         {"", "v3", "other changed, prune asset x changed"},
		"the version before":     {"v1", "v1", "other ok, prune asset x changed"},
		"a version after it":     {"v1", "v3", "other ok, prune asset x changed"},
		"the same, not declared": {"v1", "v2", "other ok, prune asset x changed"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			if c.first != "" {
				a.at(c.first, none, nil)
				a.killed("v2", with, "x", map[string]string{"x": ""})
			} else {
				a.killed("v2", jobs{{"a", "prune: true\n" + list(thing("t.asset", "x"))}}, "x", map[string]string{"x": ""})
			}
			r := a.at(c.next, none, nil)
			a.want(r, c.want)
			if len(r.Leftovers) > 0 {
				t.Errorf("left %+v", r.Leftovers)
			}
		})
	}
	t.Run("it was there before", func(t *testing.T) {
		a := newAssets(t)
		a.values["x"] = "another"
		a.at("v1", with, nil)
		delete(a.values, "x")
		a.killed("v2", with, "x", map[string]string{"x": ""})
		r := a.at("v3", none, nil)
		a.want(r, "other ok")
		if len(r.Leftovers) != 1 || r.Leftovers[0].Why != "it was on the host before job a managed it" {
			t.Errorf("left %+v", r.Leftovers)
		}
	})
}

// TestOwedAcrossFailures: a reaction that is due stays due over runs that fail, hold or skip it, and is answered once:
// also by a step that runs only on changes.
func TestOwedAcrossFailures(t *testing.T) {
	for name, c := range map[string]struct {
		step string // what reacts to conf
		does string
	}{
		"watch":     {thing("t.daemon", "svc", "watch: [conf]"), "svc!"},
		"watch_any": {thing("t.daemon", "svc", "watch_any: [conf]"), "svc!"},
		"listen":    {thing("t.daemon", "svc", "listen: [conf]"), "svc!"},
		"onchanges": {cmds("svc", "onchanges: [conf]"), "svc"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			a.values["svc"] = ""
			a.fails[c.does] = "not now"
			for i, value := range []string{"1", "1", "1"} {
				if r := a.at("v"+value, one(valued("conf", value), c.step), nil); !r.Failed() {
					t.Errorf("run %d: %s", i, outcomes(r))
				}
				a.ran = slices.DeleteFunc(a.ran, func(name string) bool { return name == "conf" })
				a.wantRan(c.does)
			}
			delete(a.fails, c.does)
			a.at("v1", one(valued("conf", "1"), c.step), nil)
			a.wantRan(c.does)
			for _, version := range []string{"v1", "v2"} {
				a.at(version, one(valued("conf", "1"), c.step), nil)
				a.wantRan()
			}
		})
	}
}
