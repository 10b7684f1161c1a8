package render

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// TestTriggers: a node has the triggers of its targets, of base/events.yaml and base/config.yaml, rendered for it.
func TestTriggers(t *testing.T) {
	cat := compile(t, map[string]string{
		"base/events.yaml": "events: {triggers: {'*': [{name: updates}, {name: slow}], 'role=db': [{name: other}], 'role=web': [{name: updates}]}}\n",
		"base/config.yaml": "events:\n  triggers:\n    'role={{ not rendered }}': []\n    'web*':\n      - name: full\n",
		"pullet.yaml":      "config: {dataStore: {count: 1}}\n", "nodes/a.yaml": "nodes: {web1: {labels: {role: web}}}\n",
		"events/updates.yaml":  "# the document's own\nupdates:\n  expression: macros['pkg.uptodate']() != true\n  name: node_updates_available\n",
		"events/disk/all.yaml": "full: {expression: \"server.name == '{{ \"web1\" }}'\", interval: 10m, for: 5m, data: {host: '{{ server.fqdn }}', n: 1, labels: {a: b}}}\nslow:\n  expression: 'true'\n  data: [{a: 1}, {b: x}]\nother: {expression: 'false'}\n",
	})
	var got []string
	for _, tr := range cat.Triggers {
		got = append(got, fmt.Sprint(tr.Name, " ", tr.Event, " ", tr.Interval, " ", tr.For, " ", tr.Data.Value(), " ", tr.Pos))
	}
	want := []string{
		"full full 10m0s 5m0s map[host:web1.example.org labels:map[a:b] n:1] events/disk/all.yaml:1:1",
		"slow slow 0s 0s map[a:1 b:x] events/disk/all.yaml:2:1",
		"updates node_updates_available 0s 0s map[] events/updates.yaml:2:1",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if yes, err := cat.Eval(cat.Triggers[0].Expression, Judged{}); !yes || err != nil {
		t.Errorf("%v %v", yes, err)
	}
	ran := 0
	run := func(m *Macro) (string, error) { ran++; return "false", nil }
	if yes, err := cat.Eval(cat.Triggers[2].Expression, Judged{Run: run}); !yes || err != nil || ran != 1 {
		t.Errorf("%v %v, macro ran %d times", yes, err, ran)
	}
}

// TestTriggerMistakes: nonsense is refused where it stands.
func TestTriggerMistakes(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"updaets: {expression: 'true'}", `base/events.yaml:1:27: there is no trigger "updates" in a file below events/ (did you mean "updaets"?)`},
		{"", `there is no trigger "updates" in a file below events/`},
		{"- updates", `events/a.yaml:1:1: expected a map of triggers, found a list`},
		{"updates: ", `events/a.yaml:1:1: trigger "updates" is empty: write expression: EXPRESSION`},
		{"updates: {name: x}", `events/a.yaml:1:10: "expression" is missing`},
		{"updates: {expresion: 'true'}", `unknown field "expresion" (did you mean "expression"?)`},
		{"updates: {expression: 1 +}", `expression: unexpected token EOF`},
		{"updates: {expression: 'true', interval: 0s}", `events/a.yaml:1:41: interval: expected more than 0s, such as 10m`},
		{"updates: {expression: 'true', for: -5m}", `"-5m" is not a duration`},
		{"updates: {expression: 'true', name: a//b}", `events/a.yaml:1:37: "a//b" is no name of an event: write a path such as updates/available`},
		{"updates: {expression: 'true', data: x}", `parameters: expected a map or a list of maps with one key, found "x"`},
		{"updates: {expression: 'true', data: {x: '{{ event.name }}'}}", `event is known only in jobs that a reaction starts (reactions/**.yaml)`},
		{"updates: {expression: \"event.name == 'x'\"}", `events/a.yaml:1:24: expression: event: a trigger raises an event, and answers none: reactions/**.yaml answer it`},
		{"updates: {expression: \"steps['x'].Changed\"}", `expression: steps: a trigger is judged between runs, when no step has run`},
		{"updates: {expression: \"result.Changed\"}", `expression: result: a trigger is judged between runs, when no step has run`},
		{"updates: {expression: \"item == 1\"}", `expression: item: item is known only in a step with forEach`},
		{"updates: {expression: \"macros['a']() == 1\"}", `macros/m.yaml:1:1: macro "a" calls itself: a -> b -> a`},
		{"updates: {expression: \"macros['broken']() == 1\"}", `macros/m.yaml:3:42: macro "broken": vars.nope: there is no "nope"`},
		{"updates: {expression: 'true'}\n'{{ server.fqdn }}': {expression: 'true'}", `the name of a trigger cannot come from a host's facts or from another host`},
	} {
		files := map[string]string{
			"base/events.yaml": "events: {triggers: {'*': [{name: updates}]}}\n", "events/a.yaml": c.file + "\n",
			"base/macros.yaml": "macros: {'*': [{name: m}]}\n", "macros/m.yaml": "x: {template.expression: [{content: x}]}\n\nbroken: {template.expression: [{content: '{{ vars.nope }}'}]}\n",
		}
		if strings.Contains(c.want, "calls itself") {
			files["macros/m.yaml"] = "a: {template.expression: [{content: '{{ macro \"b\" }}'}]}\nb: {template.expression: [{content: '{{ macro \"a\" }}'}]}\n"
		}
		if _, err := repo(files).Compile(web1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant %s", c.file, err, c.want)
		}
	}
	two := map[string]string{
		"base/events.yaml": "events: {triggers: {'*': [{name: a}]}}\n", "events/a.yaml": "a: {expression: 'true'}\n", "events/b/c.yaml": "a: {expression: 'true'}\n",
	}
	if _, err := repo(two).Compile(web1); err == nil || !strings.Contains(err.Error(), `events/b/c.yaml:1:1: trigger "a" stands in events/a.yaml:1:1, too`) {
		t.Error(err)
	}
	delete(two, "base/events.yaml")
	if cat := compile(t, two); len(cat.Triggers) != 0 { // nobody has one: the files are not read
		t.Errorf("%v", cat.Triggers)
	}
}

// TestStopwatch: it ends after the time that it ran, not after that which passed.
func TestStopwatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, watch, cancel := timed(t.Context(), time.Minute)
		defer cancel()
		time.Sleep(20 * time.Second)
		watch.stop()
		time.Sleep(time.Hour)
		if over(ctx) != nil {
			t.Error("it ran while it stood still")
		}
		watch.resume()
		resumed := time.Now()
		<-ctx.Done()
		if err, ran := over(ctx), time.Since(resumed); err != errExpressionTime || ran != 40*time.Second {
			t.Errorf("%v after another %s", err, ran)
		}
	})
}

// TestSecretsInEvents: what an event says is shown to everybody, whatever its keys are called.
func TestSecretsInEvents(t *testing.T) {
	vars, secrets, err := HostVars(fstest.MapFS{"s.yaml": {Data: []byte("sensitive: true\ntoken: very-secret\n")}}, "vars.d")
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{"{a: '{{ vars.token }}'}", "{parameters: '{{ vars.token }}'}", "{a: {defaults: ['{{ vars.token | b64enc }}']}}"} {
		in := web1
		in.HostVars, in.Secrets = vars, secrets
		_, err := repo(map[string]string{
			"base/events.yaml": "events: {triggers: {'*': [{name: a}]}}\n", "events/a.yaml": "a: {expression: 'true', data: " + data + "}\n",
		}).Compile(in)
		if err == nil || !strings.Contains(err.Error(), "a secret cannot stand here, where it would be shown") || strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%s: %v", data, err)
		}
	}
}
