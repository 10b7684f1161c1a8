package reference_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"text/template/parse"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/internal/reference"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

// allTopics are read once: they come from the sources of all that can be written.
var allTopics = sync.OnceValues(reference.Topics)

func topics(t *testing.T) []reference.Topic {
	t.Helper()
	all, err := allTopics()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func find(t *testing.T, name string) reference.Topic {
	t.Helper()
	found, err := reference.Find(topics(t), name)
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// each calls visit for every topic and those below it.
func each(list []reference.Topic, visit func(reference.Topic)) {
	for _, t := range list {
		visit(t)
		each(t.Fields, visit)
	}
}

// TestEveryTopicSaysSomething: a field without a comment is one that nobody can look up.
func TestEveryTopicSaysSomething(t *testing.T) {
	each(topics(t), func(one reference.Topic) {
		if one.Text == "" {
			t.Errorf("%s says nothing: give its declaration a comment", one.Name)
		}
		if strings.Contains(one.Text, "\nExample:") || strings.Contains(one.Text, "; default ") {
			t.Errorf("%s: %q, default %q", one.Name, one.Text, one.Default)
		}
	})
}

// TestEveryFactAndFunctionIsThere holds the lists that are read from sources against those that run.
func TestEveryFactAndFunctionIsThere(t *testing.T) {
	for _, f := range facts.All() {
		find(t, "server."+f.Name)
	}
	for _, name := range append(render.Functions(), "server", "servervars", "vars", "pullet", "macro", "step", "steps", "item", "hasLabel", "macros") {
		find(t, name)
	}
	own := 0
	each(topics(t), func(one reference.Topic) {
		if one.Group != "template function of Go" {
			own += strings.Count(one.Group, "template function") - strings.Count(one.Group, "sprig")
			return
		}
		if _, err := parse.Parse("t", "{{ "+one.Name+" }}", "", "", map[string]any{one.Name: ""}); err != nil {
			t.Errorf("%s: %v", one.Name, err)
		}
	})
	if own < 4 {
		t.Errorf("%d functions of our own, want toYaml, fromYaml, required, length and index", own)
	}
}

// TestTopics holds topics of each kind against what they must say.
func TestTopics(t *testing.T) {
	for name, want := range map[string]reference.Topic{
		"file.managed.mode":                     {Type: "text", Text: "octal: 0644"},
		"file.managed.name":                     {Type: "text", Required: true, Text: "absolute path"},
		"file.managed.backup":                   {Type: "true or false", Default: "false", Text: "keep the file that is replaced, in the state directory"},
		"job.steps.conditions.when.retry.limit": {Type: "number", Default: "0", Text: "attempts in all; 0: until the run's deadline"},
		"job.steps.runOptions.timeout":          {Type: "duration", Text: "of the step; 0: the action's own default"},
		"pullet.rollout.rollingRules.roles":     {Type: "map of limits", Text: "by role, or group"},
		"config.agent.splay":                    {Type: "duration", Default: "30s", Text: "at most so much is added to an interval, by chance"},
		"config.agent.allowRun": {Type: "true or false, or list of operators", Default: "false", Text: "allowRun says whose commands of pullet run this host runs. " +
			"true: of whoever may write the fleet's record; a list: of\noperators by the names in their certificates, where operators stands for each of them"},
		"config.paths.state":      {Type: "text", Default: "/var/lib/pullet", Text: "what pullet keeps for itself: for root only"},
		"config.repositories.ref": {Type: "text", Default: "main", Text: "ref is the branch to follow"},
		"base-vars.files.paths":   {Type: "text, or list of texts", Text: "below vars/: all that exist are merged, earlier ones win; none: the name is the path"},
		"server.os":               {Type: "text", Text: "distribution, as in ID of os-release: debian, fedora"},
		"reaction.reactions.triggerLimiter.waitForMore.max": {Type: "duration", Default: "10 times timeout", Text: "never longer than this"},
		"reaction.reactions.reaction.jobs.name":             {Type: "text", Required: true, Text: "web for jobs/web.yaml"},
		"trigger.interval":                                  {Type: "duration", Default: "the agent's interval", Text: "pullet agent judges it so often"},
		"macros.params":                                     {Type: "text, or list of texts", Text: "names of the arguments, which the text reads as {{ .name }}"},
		"job.steps.runOptions.runs":                         {Type: "word", Default: "always", Values: []string{"always", "onUpdate", "once"}},
	} {
		got := find(t, name)
		got.Name, got.Group, got.Fields = "", "", nil
		if len(want.Values) > 0 {
			got.Text = "" // it is long
		} else {
			got.Values = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, want)
		}
	}
}

// TestUnknownTopics: what is misspelt is named.
func TestUnknownTopics(t *testing.T) {
	for name, want := range map[string]string{
		"file.manged":                    `did you mean "file.managed"?`,
		"file.managed.mod":               `did you mean "file.managed.mode"?`,
		"job.steps.conditions.when.rety": `did you mean "jobs.steps.conditions.when.retry"?`,
		"onLost":                         `(did you mean "jobs.runOptions.onLost", "pullet.rollout.onLost", "jobs.steps.runOptions.onLost"?)`,
		"rollout.onLost":                 `there is nothing named "rollout.onLost" (did you mean "pullet.rollout.onLost"?)`,
		"mode":                           `, ...?)`,
		"xyzzy-and-more":                 `there is nothing named "xyzzy-and-more"; pullet explain lists what there is`,
	} {
		if _, err := reference.Find(topics(t), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestExamples renders and binds the example of every action, and holds it against the schema.
func TestExamples(t *testing.T) {
	c := newChecker(t)
	for _, spec := range action.All() {
		example := find(t, spec.Name).Example
		if example == "" {
			t.Errorf("%s has no example: write one into the comment of its type", spec.Name)
			continue
		}
		files := fstest.MapFS{"base/jobs.yaml": {Data: []byte("jobs: {'*': [{name: a}]}")}, "jobs/a.yaml": {Data: []byte(example)}}
		cat, err := render.Open(render.Layer{Name: "main", FS: files}).Compile(render.Input{Node: render.Node{Name: "n1"}, Facts: facts.Sample("n1")})
		if err == nil {
			_, err = apply.Bind(cat, action.All())
		}
		if err != nil {
			t.Errorf("%s: %v", spec.Name, err)
			continue
		}
		if !slices.ContainsFunc(cat.Jobs[0].Steps, func(s *render.Step) bool { return s.Action == spec.Name }) {
			t.Errorf("%s: the example shows another action", spec.Name)
		}
		if err := c.check("jobs", example); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
		for line := range strings.Lines(example) { // explain indents it by two, on a terminal of 80
			words := strings.Fields(line)
			digest := slices.ContainsFunc(words, func(word string) bool { return len(word) > 60 })
			if len(strings.TrimRight(line, "\n")) > 78 && !digest {
				t.Errorf("%s: a terminal breaks this line of its example: %s", spec.Name, line)
			}
		}
	}
}

// TestExamplesOfFiles compiles the examples of reactions and triggers, and holds them against the schemas.
func TestExamplesOfFiles(t *testing.T) {
	c := newChecker(t)
	files := fstest.MapFS{
		"base/jobs.yaml": {Data: []byte("jobs: {}")}, "base/events.yaml": {Data: []byte("events: {triggers: {'*': [{name: node_updates_available}]}}")},
		"jobs/prometheus/alert-runbooks/my-cool-alert.yaml": {Data: []byte("steps: []")}, "jobs/orchestrated/reboot_server.yaml": {Data: []byte("steps: []")},
	}
	for _, kind := range []string{"events", "reactions"} {
		example := find(t, kind).Example
		files[kind+"/a.yaml"] = &fstest.MapFile{Data: []byte(example)}
		if err := c.check(kind, example); err != nil || example == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
	r := render.Open(render.Layer{Name: "main", FS: files})
	cat, err := r.Compile(render.Input{Node: render.Node{Name: "n1"}, Facts: facts.Sample("n1")})
	if err != nil || len(cat.Triggers) != 1 {
		t.Error(err)
	}
	if list, err := r.Reactions(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%d reactions, %v", len(list), err)
	}
}

// TestTopicsAreJSON: programs read them.
func TestTopicsAreJSON(t *testing.T) {
	if _, err := json.Marshal(topics(t)); err != nil {
		t.Error(err)
	}
}
