package render

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// reacting is a repository with these reactions, and jobs clean and fix.
func reacting(reactions string, more ...string) map[string]string {
	files := map[string]string{
		"reactions/a.yaml": reactions,
		"jobs/clean.yaml":  "steps:\n- {name: a, action: x, parameters: {z: '{{ event.name }} on {{ server.name }}'}}\n",
		"jobs/fix.yaml":    "steps:\n- {name: b, action: x}\n",
	}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// oneReaction is the only reaction of a repository.
func oneReaction(t *testing.T, files map[string]string) *Reaction {
	t.Helper()
	list, err := repo(files).Reactions(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("%d reactions, %v", len(list), err)
	}
	return list[0]
}

func TestEventGlobs(t *testing.T) {
	for glob, names := range map[string]string{
		"a":                         "a !A !a/b !ab",
		"a/b":                       "a/b !a !a/b/c",
		"a/*":                       "a/b a/b.c !a !a/b/c !b/b",
		"*":                         "a !a/b",
		"**":                        "a a/b a/b/c",
		"a/**":                      "a/b a/b/c !a !b/a",
		"a/*/c":                     "a/b/c !a/c !a/b/d !a/b/c/d",
		"a/*/**":                    "a/b/c a/b/c/d !a/b",
		"a/b?":                      "a/bc !a/b",
		"a/[bc]":                    "a/b a/c !a/d",
		"pullet/step/failed":        "pullet/step/failed edenconfmgmt/failure/step !pullet/run/failed",
		"edenconfmgmt/failure/step": "pullet/step/failed edenconfmgmt/failure/step !edenconfmgmt/failure",
		"pullet/step/*":             "pullet/step/failed edenconfmgmt/failure/step !pullet/run/failed",
		"edenconfmgmt/**":           "pullet/step/failed edenconfmgmt/failure/step !pullet/run/failed",
		"prometheus/alert/A b":      "prometheus/alert/A_b! !prometheus/alert/A",
	} {
		g, err := ParseEventGlob(glob)
		if err != nil {
			t.Errorf("%s: %v", glob, err)
			continue
		}
		for name := range strings.FieldsSeq(strings.TrimSuffix(names, "!")) {
			name, not := strings.CutPrefix(name, "!")
			want := !not && !strings.HasSuffix(name, "!")
			if got := (&Reaction{events: g}).Matches(name); got != want {
				t.Errorf("%s matches %s: %v, want %v", glob, name, got, want)
			}
		}
		if !strings.ContainsAny(glob, "?[") && !(&Reaction{events: g}).Matches(g.example()) {
			t.Errorf("%s does not match its example %s", glob, g.example())
		}
	}
	for _, bad := range []string{"", "/", "a/", "/a", "a//b", "a/[", "**/a", "a/**/b", "a**", "a/b**", "ä", "a b ", "-a", "a/*/", strings.Repeat("a", 201)} {
		if _, err := ParseEventGlob(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestLimiters(t *testing.T) {
	for text, want := range map[string]Limiter{
		"":   {MinOccurrences: 1, Window: time.Hour},
		"{}": {MinOccurrences: 1, Window: time.Hour},
		"{minOccurences: 2, reReactDealy: 5m, waitForMore: {timeout: 2m, resetTimeoutOnMore: true}}": {2, time.Hour, 5 * time.Minute, 2 * time.Minute, true, 20 * time.Minute},
		"{minOccurrences: 3, reReactDelay: 1d, window: 2h}":                                          {MinOccurrences: 3, Window: 2 * time.Hour, ReReactDelay: 24 * time.Hour},
		"{reReactDelay: 0s, waitForMore: {timeout: 2m, max: 2m}}":                                    {1, time.Hour, 0, 2 * time.Minute, false, 2 * time.Minute},
	} {
		r := oneReaction(t, reacting("reactions: {e: {reaction: {jobs: {'*': [{name: clean}]}}, triggerLimiter: "+text+"}}\n"))
		if r.Limiter != want {
			t.Errorf("%s: %+v, want %+v", text, r.Limiter, want)
		}
	}
}

// TestReactionHosts: the keys of jobs choose hosts, and targets narrows them.
func TestReactionHosts(t *testing.T) {
	nodes := map[string]map[string]string{
		"web1": {"role": "web"}, "web2": {"role": "web", "env": "prod"}, "db1": {"role": "db", "env": "prod"}, "db2": {"role": "db"},
	}
	own := "jobs: {'role=web': [{name: clean}], 'db1': [{name: fix}]}\n"
	for _, c := range []struct{ reaction, about, want string }{
		{"jobs: {'*': [{name: clean}]}", "web1", "db1 db2 web1 web2"},
		{"jobs: {'*': [{name: clean}]}, targets: all", "web1", "db1 db2 web1 web2"},
		{"jobs: {'*': [{name: clean}]}, targets: event", "web1 gone", "web1"},
		{"jobs: {'*': [{name: clean}]}, targets: event", "", ""},
		{"jobs: {'*': [{name: clean}]}, targets: env=prod", "web1", "db1 web2"},
		{"jobs: {'role=web': [{name: clean}], 'db2': [{name: fix}]}", "", "db2 web1 web2"},
		{"jobs: {'role=web': [{name: clean}], '*': []}", "", "web1 web2"},
		{"jobs: {'role=web': [{name: clean}]}, targets: event", "db1 web2", "web2"},
		{"jobs: [{name: clean}]", "", "db1 db2 web1 web2"},
		{"jobs: [{name: own}]", "", "db1 web1 web2"},
		{"jobs: [{name: own}], targets: '!env'", "", "web1"},
	} {
		r := oneReaction(t, reacting("reactions: {e: {reaction: {"+c.reaction+"}}}\n", "jobs/own.yaml", own))
		if got := strings.Join(r.Hosts(nodes, strings.Fields(c.about)), " "); got != c.want {
			t.Errorf("%s, about %s: %s, want %s", c.reaction, c.about, got, c.want)
		}
		if r.PerHost() != strings.Contains(c.reaction, "targets: event") {
			t.Errorf("%s: per host %v", c.reaction, r.PerHost())
		}
	}
	r := oneReaction(t, reacting("reactions: {e: {reaction: {jobs: [{name: own}], on: change}}}\n", "jobs/own.yaml", "metadata: {name: x}\nspec: {"+strings.TrimSuffix(own, "\n")+"}\n"))
	if got := strings.Join(r.Jobs(), " "); got != "clean fix" || !r.OnChange || r.Pos != (Position{"reactions/a.yaml", 1, 13}) {
		t.Errorf("%s %v %s", got, r.OnChange, r.Pos)
	}
}

// TestReactionMistakes: nonsense is refused when the files are read, with its place and what to do.
func TestReactionMistakes(t *testing.T) {
	jobs := "jobs: {'*': [{name: clean}]}"
	const host = "belongs to one host, and this is judged once for the fleet (put it at the job: jobs: {'*': [{name: JOB, conditions: {when: {condition: EXPRESSION}}}]})"
	for _, c := range []struct{ of, want string }{
		{"e: {reaction: {jobs: {'*': [{name: claen}]}}}", `reactions/a.yaml:1:41: job "claen": there is no jobs/claen.yaml (did you mean "clean"?)`},
		{"e: {reaction: {jobs: [{name: jobs/clean.yaml}]}}", `job "jobs/clean.yaml": there is no jobs/jobs/clean.yaml.yaml (write clean: the folder and .yaml are understood)`},
		{"e: {reaction: {jobs: {}}}", `reactions/a.yaml:1:34: jobs: nothing starts: no job is named (name one: jobs: {'*': [{name: JOB}]})`},
		{"e: {reaction: {jobs: []}}", `reactions/a.yaml:1:34: jobs: nothing starts`},
		{"e: {reaction: {jobs: {'*': []}}}", `reactions/a.yaml:1:34: jobs: nothing starts`},
		{"e: {reaction: {jobs: }}", `jobs: nothing starts`},
		{"e: {reaction: {jobs: clean}}", `reactions/a.yaml:1:34: jobs: expected a map of targets, or a list of job files such as [{name: web}], found "clean"`},
		{"e: {reaction: {jobs: {'*': [{name: clean, conditions: {whn: {}}}]}}}", `conditions: unknown field "whn" (did you mean "when"?)`},
		{"e: {reaction: }", `reactions/a.yaml:1:13: reaction "e" is empty: write reaction: {jobs: {'*': [{name: JOB}]}}`},
		{"e: ", `reactions/a.yaml:1:13: reaction "e" is empty: write reaction: {jobs: {'*': [{name: JOB}]}}`},
		{"e: {reaction: {" + jobs + ", targets: 'a b'}}", `reactions/a.yaml:1:67: targets: target "a b": "a b" is no host name: terms are joined by commas, such as os=debian,web* (write all, event, or a target such as role=web)`},
		{"e: {reaction: {" + jobs + ", on: [change, boot]}}", `reactions/a.yaml:1:62: on: expected change, found "boot"`},
		{"e: {reaction: {" + jobs + ", conditions: {success: {condition: 'true'}}}}", `success: is about what a step did: a job or a step has it`},
		{"e: {reaction: {" + jobs + ", conditions: {continue: {condition: 'true'}}}}", `continue: is about what a step did: a job or a step has it`},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: 'true', retry: {limit: 3}}}}}", `retry: a reaction is judged once, when its events are there: triggerLimiter.waitForMore waits for more of them, and the conditions of a job have retry`},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: 1 +}}}}", `expression: unexpected token EOF`},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"server.os == 'x'\"}}}}", "reactions/a.yaml:1:90: expression: server " + host},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"vars.x\"}}}}", "expression: vars " + host},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"macros['x']()\"}}}}", "expression: macro " + host},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"steps['x'].Changed\"}}}}", "expression: steps " + host},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"item == 1\"}}}}", "expression: item " + host},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"hasLabel('x')\"}}}}", "expression: hasLabel " + host},
		{"e: {reaction: {" + jobs + ", conditions: {when: {condition: \"event.ocurences > 1\"}}}}", `expression: an event has no "ocurences" (did you mean "occurences"?)`},
		{"a//b: {reaction: {" + jobs + "}}", `"a//b" is no name of an event: write a path such as backup/failed, or a glob such as backup/*`},
		{"'a/[': {reaction: {" + jobs + "}}", `"a/[" is no glob over names of events: "[": syntax error in pattern`},
		{"a/**/b: {reaction: {" + jobs + "}}", `"a/**/b" is no glob over names of events: ** is the last word and matches all that follows, such as backup/**`},
		{"a/*/: {reaction: {" + jobs + "}}", `"a/*/" is no glob over names of events: "" is no word of a name`},
		{"e: {reaction: {jobs: {'*': [{name: own}]}}}", `job "own" has targets of its own in jobs/own.yaml, and cannot stand below one (name it in the reaction's list: jobs: [{name: own}])`},
		{"e: {reaction: {jobs: [{name: nested}]}}", `jobs/nested.yaml:1:14: job "own" has targets of its own in jobs/own.yaml`},
		{"e: {reaction: {jobs: [{name: templated}]}}", `jobs/templated.yaml:2:14: a file of jobs with targets of its own is no template: it says for the fleet who gets what (templates belong in the files of steps that it names)`},
		{"e: {reaction: {jobs: [{name: missing}]}}", `jobs/missing.yaml:1:14: job "gone": there is no jobs/gone.yaml`},
		{"e: {reaction: {" + jobs + "}}, e: {reaction: {" + jobs + "}}", `key "e" stands here twice`},
	} {
		wantReactionMistake(t, c.of, c.want)
	}
	for limiter, want := range map[string]string{
		"{minOccurences: 0}":                        `minOccurences: expected 1 or more`,
		"{minOccurrences: -1}":                      `minOccurrences: expected 1 or more`,
		"{minOccurrences: many}":                    `minOccurrences: expected a number, found "many"`,
		"{minOccurrences: 1, minOccurences: 1}":     `minOccurences and minOccurrences say the same thing: keep minOccurrences`,
		"{reReactDelay: 1s, reReactDealy: 1s}":      `reReactDealy and reReactDelay say the same thing: keep reReactDelay`,
		"{reReactDelay: -5m}":                       `"-5m" is not a duration`,
		"{window: 0s}":                              `window: expected more than 0s: no event would count`,
		"{waitForMore: {resetTimeoutOnMore: true}}": `waitForMore: "timeout" is missing`,
		"{waitForMore: {timeout: 0s}}":              `waitForMore: timeout: expected more than 0s, such as 2m`,
		"{waitForMore: {timeout: 2m, max: 1m}}":     `waitForMore: max: 1m0s is shorter than the timeout of 2m0s`,
		"{waitForMore: {timeout: 2m, max: 0s}}":     `waitForMore: max: 0s is shorter than the timeout of 2m0s`,
		"{waitForMore: {timeout: 2h}}":              `waitForMore: timeout: in 2h0m0s the events are forgotten that it waits with: window is 1h0m0s; make it longer`,
		"{window: 1m, waitForMore: {timeout: 2m}}":  `in 2m0s the events are forgotten that it waits with: window is 1m0s; make it longer`,
		"{maxOccurences: 2}":                        `triggerLimiter: unknown field "maxOccurences" (did you mean "minOccurences"?)`,
	} {
		wantReactionMistake(t, "e: {reaction: {"+jobs+"}, triggerLimiter: "+limiter+"}", want)
	}
}

func wantReactionMistake(t *testing.T, of, want string) {
	t.Helper()
	r := repo(reacting("reactions: {"+of+"}\n",
		"jobs/own.yaml", "jobs: {'*': [{name: clean}]}\n", "jobs/nested.yaml", "jobs: {'*': [{name: own}]}\n", "jobs/missing.yaml", "jobs: {'*': [{name: gone}]}\n",
		"jobs/templated.yaml", "# for {{ x }}\njobs: {'role={{ vars.role }}': [{name: clean}]}\n"))
	list, err := r.Reactions(t.Context())
	var mistakes ErrorList
	if !errors.As(err, &mistakes) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s\n got %v\nwant %s", of, err, want)
	}
	if len(list) != 0 && !strings.Contains(want, "twice") {
		t.Errorf("%s: it is among the reactions", of)
	}
	if _, err := r.Compile(web1); err == nil || !strings.Contains(err.Error(), want) { // of the version, as all
		t.Errorf("%s: compiled with %v", of, err)
	}
}

// TestReactionTwice: one event, one reaction of its name: which of two limits would count?
func TestReactionTwice(t *testing.T) {
	one := "reactions: {e: {reaction: {jobs: [{name: clean}]}}}\n"
	list, err := repo(reacting(one, "reactions/b/c.yaml", one)).Reactions(t.Context())
	if want := `reactions/b/c.yaml:1:13: reaction "e" stands in reactions/a.yaml:1:13, too: give both jobs to one`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if len(list) != 1 {
		t.Errorf("%d reactions", len(list))
	}
}

// TestReactionsAreKept: a repository reads them once, unless that was ended early.
func TestReactionsAreKept(t *testing.T) {
	r := repo(reacting("reactions: {e: {reaction: {jobs: [{name: clean}]}}}\n"))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	if _, err := r.Reactions(ctx); !errors.Is(err, stop) {
		t.Error(err)
	}
	first, err := r.Reactions(t.Context())
	again, bad := r.Reactions(ctx)
	if err != nil || bad != nil || len(first) != 1 || first[0] != again[0] {
		t.Errorf("%v %v %v %v", first, err, again, bad)
	}
}

// TestHolds: a reaction's condition sees the event and the fleet, and ends.
func TestHolds(t *testing.T) {
	in := Input{
		View:    View{Nodes: map[string]Node{"web1": {Name: "web1"}, "db1": {Name: "db1"}}, Facts: map[string]Facts{"web1": {"os": "debian"}}, Services: map[string][]Service{"db": make([]Service, 2)}},
		Event:   map[string]any{"name": "e", "occurrences": 12, "data": map[string]any{"level": 3.0, "labels": map[string]any{"a": "x"}}},
		Version: "v1", Release: "r1", Agent: "a1",
	}
	for condition, want := range map[string]bool{
		"event.occurences > 10": true, "event.Occurences > 12": false, "event.Name == 'e' and event.name == 'e'": true, "event.Data.level == 3": true,
		"event.data.labels.a == 'x'": true, "event.data.labels['a'] == 'x'": true, "(event.data.nope ?? 1) == 1": true, "(event.data.nope.more ?? 1) == 1": true,
		"event.data?.nope == nil": true, "'nope' in event.data and event.data.nope == 1": false, "'level' in event.data": true,
		"servervars['web1'].os == 'debian'": true, "len(services('db')) == 2": true, "len(pullet.servers('role=web')) == 1": true,
		"pullet.version == 'v1' and pullet.release == 'r1' and pullet.agent == 'a1'": true,
	} {
		got, err := holds1(t, condition, in)
		if got != want || err != nil {
			t.Errorf("%s: %v %v", condition, got, err)
		}
	}
	for condition, want := range map[string]string{
		"event.data.levle > 1":                     `reactions/a.yaml:1:94: expression: event.data.levle: there is no "levle" (did you mean "level"?)`,
		"event.data.labels.z == 1":                 `event.data.labels.z: there is no "z" (did you mean "a"?)`,
		"event.data.level.x == 1":                  `event.data.level.x: what stands before "x" is no map`,
		"event.node == 'x'":                        `event.node: there is no "node"`,
		"servervars['nope'].os > 1":                `expression: `,
		"all(1..100000, {all(1..100000, {true})})": `the expression makes more than 500000 values`,
	} {
		if got, err := holds1(t, condition, in); got || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want %s", condition, got, err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	cancel(stop)
	in.Context = ctx
	if got, err := holds1(t, "all(1..1000, {# > 0})", in); got || !errors.Is(err, stop) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := oneReaction(t, reacting("reactions: {e: {reaction: {jobs: [{name: clean}]}}}\n")).Holds(Input{}); !got || err != nil {
		t.Errorf("without a condition: %v %v", got, err)
	}
}

func holds1(t *testing.T, condition string, in Input) (bool, error) {
	t.Helper()
	files := reacting("reactions: {e: {reaction: {jobs: [{name: clean}], conditions: {when: {condition: \""+condition+"\"}}}}}\n",
		"nodes/a.yaml", "nodes: {web1: {labels: {role: web}}}\n")
	return oneReaction(t, files).Holds(in)
}

// TestReactionCatalog: a run of a reaction has the reaction's jobs, the event, and the rest of what a node has.
func TestReactionCatalog(t *testing.T) {
	files := reacting("reactions: {e: {reaction: {jobs: {'*': [{name: clean, conditions: {when: {condition: \"event.data.level > 2\"}}}], 'role=db': [{name: fix}]}}}}\n",
		"base/jobs.yaml", "jobs: {'*': [{name: site}]}\nvalidations: {'*': [{name: site}]}\n", "jobs/site.yaml", "steps: [{name: s, action: x}]\n",
		"base/services.yaml", "services: {'*': [{name: web, port: 80}]}\n", "base/vars.yaml", "files: {'*': [{name: v}]}\n", "vars/v.yaml", "v: 7\n",
		"base/events.yaml", "events: {triggers: {'*': [{name: up}]}}\n", "events/up.yaml", "up: {expression: 'true'}\n",
		"jobs/clean.yaml", "steps:\n- {name: a, action: x, parameters: {z: '{{ event.Name }} {{ event.occurences }} {{ event.data.level }} {{ event.Data.text }} {{ server.name }} {{ vars.v }}'}}\n")
	r := repo(files)
	in := web1
	in.Event = map[string]any{"name": "e", "occurrences": 2, "data": map[string]any{"level": 3, "text": "a\n- {name: evil, action: x}"}}
	in.Reaction = &Reacting{Reaction: "e", Hosts: []string{"web1", "db1"}}
	cat, err := r.Compile(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(cat.Jobs) != 1 || cat.Jobs[0].Name != "clean" || cat.Jobs[0].Validation || len(cat.Jobs[0].Steps) != 1 || len(cat.Offers()) != 0 || len(cat.Triggers) != 0 || cat.Untargeted() {
		t.Fatalf("%+v, offers %v, triggers %v", cat.Jobs, cat.Offers(), cat.Triggers)
	}
	job := cat.Jobs[0]
	if got, want := job.Steps[0].Params.Text("z"), "e 2 3 a\n- {name: evil, action: x} web1 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if yes, err := cat.Eval(job.Conditions.When.Expression, Judged{}); !yes || err != nil {
		t.Errorf("%v %v", yes, err)
	}
	for name, want := range map[string]bool{"web1": true, "db1": true, "web2": false} {
		if got := job.Has(name, nil); got != want {
			t.Errorf("%s has it: %v", name, got)
		}
	}
	for name, want := range map[string]string{"db1": "clean fix", "web2": ""} {
		other := in
		other.Node = Node{Name: name, Labels: map[string]string{"role": "db"}}
		cat, err := r.Compile(other)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, j := range cat.Jobs {
			names = append(names, j.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	usual, err := r.Compile(web1) // the same repository goes on as it was
	if err != nil || len(usual.Jobs) != 1 || usual.Jobs[0].Name != "site" || !usual.Jobs[0].Has("web2", nil) || len(usual.Offers()) != 1 || len(usual.Triggers) != 1 {
		t.Errorf("%+v %v", usual, err)
	}
}

// TestReactionCatalogMistakes: what the version does not have, and what the event does not say.
func TestReactionCatalogMistakes(t *testing.T) {
	step := func(rest string) string { return "steps:\n- {name: a, action: x, " + rest + "}\n" }
	for _, c := range []struct{ reaction, job, want string }{
		{"e", step("parameters: {z: '{{ event.data.disc }}'}"), `jobs/clean.yaml:2:44: event.data.disc: there is no "disc" (did you mean "disk"?)`},
		{"e", step("parameters: {z: '{{ index event.data \"nope\" }}'}"), `nope`},
		{"e", step("parameters: {z: '{{ event.hosts }}'}"), `event.hosts: there is no "hosts" (known: data, name, occurences, occurrences)`},
		{"e", step("conditions: {when: {condition: 'event.dta.x > 1'}}"), `expression: an event has no "dta" (did you mean "data"?)`},
		{"e", "steps:\n- {name: a, action: '{{ event.data.disk }}'}\n", `jobs/clean.yaml:2:21: which action runs cannot come from an event`},
		{"e", "steps:\n- {name: a, spec: {action: 'cmd.{{ event.name }}'}}\n", `which action runs cannot come from an event`},
		{"e", step("conditions: {when: {condition: \"'{{ event.data.evil }}' == 'x'\"}}"), `an expression cannot hold a text that comes from`},
		{"gone", step("sensitive: true"), `reactions: the version has no reaction "gone": it was removed or has another name now`},
		{"ee", step("sensitive: true"), `the version has no reaction "ee": it was removed or has another name now (did you mean "e"?)`},
	} {
		in := web1
		in.Event, in.Reaction = map[string]any{"name": "e", "occurrences": 1, "data": map[string]any{"disk": "sda", "evil": "' == '' or '' == '"}}, &Reacting{c.reaction, []string{"web1"}}
		_, err := repo(reacting("reactions: {e: {reaction: {jobs: [{name: clean}]}}}\n", "jobs/clean.yaml", c.job)).Compile(in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s\n got %v\nwant %s", c.reaction, c.job, err, c.want)
		}
	}
	files := reacting("reactions: {}\n", "base/jobs.yaml", "jobs: {'*': [{name: clean}]}\n", "jobs/clean.yaml",
		"steps:\n- {name: a, action: x, parameters: {z: '{{ event.name }}'}, conditions: {when: {condition: 'event.occurences > 1'}}}\n")
	_, err := repo(files).Compile(web1)
	if err == nil || strings.Count(err.Error(), "event is known only in jobs that a reaction starts (reactions/**.yaml)") != 2 {
		t.Error(err)
	}
}

// TestMadeUpEvent: it says what the repository asks for, and mistakes about what it says are none.
func TestMadeUpEvent(t *testing.T) {
	files := reacting("reactions: {'disk/*': {reaction: {jobs: [{name: clean}]}, triggerLimiter: {minOccurrences: 3}}}\n", "jobs/clean.yaml", `steps:
- {name: a, action: x, parameters: {z: '{{ event.data.a.b }}{{ event.Data.c }}{{ index event.data "my key" }}'}}
- {name: b, action: x, runOptions: {timeout: '{{ event.data.patience }}'}}
- {name: c, action: x, parameters: {z: '{{ if gt event.data.n 3 }}1{{ end }}'}}
- {name: d, action: x, parameters: {z: '{{ with event.data.labels }}{{ .severity }}{{ end }}'}}
- {name: e, action: x, parameters: {z: '{{ $d := event.data }}{{ $d.q }}'}}
- {name: f, action: x, parameters: {z: '{{ event.nmae }}{{ vars.nope }}'}}
- {name: g, action: x, conditions: {when: {condition: "event.data.level > 3 and event.data['other'] == 1"}}}
{{ range $i, $pod := event.data.pods }}
- {name: 'h{{ $i }}', action: x, parameters: {z: '{{ $pod }}'}}
{{ end }}
`)
	r := oneReaction(t, files)
	in := web1
	in.Event, in.Reaction = r.MadeUpEvent("web1"), &Reacting{r.Name, []string{"web1"}}
	data, _ := in.Event["data"].(map[string]any)
	if got, want := strings.Join(slices.Sorted(maps.Keys(data)), ","), "a,c,labels,level,my key,n,other,patience,pods"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if in.Event["name"] != "disk/made-up" || in.Event["occurrences"] != 3 || in.Event["node"] != "web1" {
		t.Errorf("%v", in.Event)
	}
	_, err := repo(files).Compile(in)
	list, _ := err.(ErrorList)
	var told []string
	for _, e := range list {
		if !OfMadeUp(e) {
			told = append(told, e.Message)
		}
	}
	if got, want := strings.Join(told, "; "), `event.nmae: there is no "nmae"; vars.nope: there is no "nope"`; got != want {
		t.Errorf("told %s\nwant %s\nall %v", got, want, err)
	}
}

// FuzzReactions reads any text of a file of reactions: it ends, with reactions that can be asked or with mistakes that
// have a place.
func FuzzReactions(f *testing.F) {
	for _, seed := range []string{
		"reactions: {e: {reaction: {jobs: {'*': [{name: clean}]}}}}\n", "reactions: {'a/*': {reaction: {jobs: [{name: clean}], targets: event, on: change}}}\n",
		"reactions: {e: {reaction: {jobs: [{name: own}], conditions: {when: {condition: 'event.data.x ?? 1 > 2'}}}, triggerLimiter: {minOccurences: 2, waitForMore: {timeout: 1m}}}}\n",
		"reactions: {e: {reaction: {jobs: &a [*a]}}}\n", "reactions: {**: }", "reactions: [", "spec: {reactions: {}}\nmetadata: {name: x}\n", "reactions: {e: {<<: {reaction: {jobs: []}}}}\n", "\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		list, err := repo(reacting(text, "jobs/own.yaml", text)).Reactions(t.Context())
		mistakes, ok := err.(ErrorList)
		if err != nil && (!ok || len(mistakes) == 0 || mistakes[0].Pos.File == "") {
			t.Errorf("a mistake without a place: %v", err)
		}
		for _, r := range list {
			l := r.Limiter
			if l.MinOccurrences < 1 || l.Window <= 0 || l.ReReactDelay < 0 || l.Timeout < 0 || l.Max < l.Timeout || l.Timeout > l.Window || len(r.Jobs()) == 0 {
				t.Errorf("%+v %v", l, r.Jobs())
			}
			r.Hosts(map[string]map[string]string{"web1": {"role": "web"}}, []string{"web1"})
			_, _ = r.Holds(Input{Event: r.MadeUpEvent("web1")}) // its errors are its own
		}
	})
}
