package lint_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/lint"
)

// lintedEvents is what Lint finds in a repository of web1 and db1 with reactions, a line for each finding.
func lintedEvents(t *testing.T, files map[string]string) string {
	t.Helper()
	all := map[string]string{"nodes/all.yaml": "nodes:\n  web1: {labels: {role: web}}\n  db1: {labels: {role: db}}\n", "base/jobs.yaml": "jobs: {'*': []}\n"}
	maps.Copy(all, files)
	tree := fstest.MapFS{}
	for name, text := range all {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	r := render.Open(render.Layer{Name: "main", FS: tree})
	reactions, err := r.Reactions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found, nodes := lint.New(r), map[string]map[string]string{"web1": {"role": "web"}, "db1": {"role": "db"}}
	for _, name := range []string{"web1", "db1"} {
		in := render.Input{Node: render.Node{Name: name}, Facts: render.Facts{"os": "debian", "fqdn": name}}
		cat, err := r.Compile(in)
		if err != nil {
			t.Fatal(err)
		}
		found.Add(cat)
		for _, reaction := range reactions {
			hosts := reaction.Hosts(nodes, []string{name})
			if !slices.Contains(hosts, name) {
				continue
			}
			in.Event, in.Reaction = reaction.MadeUpEvent(name), &render.Reacting{Reaction: reaction.Name, Hosts: hosts}
			cat, err := r.Compile(in)
			if err != nil {
				t.Fatal(err)
			}
			found.AddReaction(reaction, cat)
		}
	}
	var out []string
	for _, e := range found.Findings(true) {
		out = append(out, e.Error())
	}
	return strings.Join(out, "\n")
}

// TestEventOfOneHost: where the event of one host starts a job on several, that has to be said.
func TestEventOfOneHost(t *testing.T) {
	const hint = " warning: the event of one host starts this on 2 hosts: db1, web1 (targets: event is the host of the event; targets: all says that every one is meant)"
	for reaction, want := range map[string]string{
		"pullet/step/failed: {reaction: {jobs: {'*': [{name: a}]}}}":                               "reactions/a.yaml:1:13:" + hint,
		"pullet/step/*: {reaction: {jobs: [{name: a}]}}":                                           "reactions/a.yaml:1:13:" + hint,
		"pullet/run/failed: {reaction: {jobs: {'role=web': [{name: a}], 'role=db': [{name: a}]}}}": "reactions/a.yaml:1:13:" + hint,
		"edenconfmgmt/failure/step: {reaction: {jobs: [{name: a}]}}":                               "reactions/a.yaml:1:13:" + hint,
		"full: {reaction: {jobs: {'*': [{name: a}]}}}":                                             "reactions/a.yaml:1:13:" + hint, // a trigger's
		"**: {reaction: {jobs: {'*': [{name: a}]}}}":                                               "reactions/a.yaml:1:13:" + hint,
		"full: {reaction: {jobs: {'*': [{name: a}]}, targets: event}}":                             "",
		"full: {reaction: {jobs: {'*': [{name: a}]}, targets: all}}":                               "",
		"full: {reaction: {jobs: {'*': [{name: a}]}, targets: role=web}}":                          "",
		"full: {reaction: {jobs: {'role=web': [{name: a}]}}}":                                      "",
		"prometheus/alert/x: {reaction: {jobs: {'*': [{name: a}]}}}":                               "reactions/a.yaml:1:13:" + hint,
		"ci/built: {reaction: {jobs: {'*': [{name: a}]}}}":                                         "", // of no host that is known
	} {
		got := lintedEvents(t, map[string]string{
			"reactions/a.yaml": "reactions: {'" + strings.Replace(reaction, ":", "':", 1) + "}\n", "jobs/a.yaml": "steps: [{name: a, action: test.succeed}]\n",
			"base/events.yaml": "events: {triggers: {'*': [{name: f}]}}\n", "events/f.yaml": "f: {expression: 'true', name: full}\n",
		})
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", reaction, got, want)
		}
	}
}

// TestEventLoops: reactions whose jobs raise events that lead back are drawn.
func TestEventLoops(t *testing.T) {
	emit := func(name string) string {
		return "steps: [{name: tell, action: event.emit, parameters: {name: '" + name + "'}}]\n"
	}
	reaction := func(name, job string) string {
		return "  " + name + ": {reaction: {jobs: [{name: " + job + "}], targets: all}}\n"
	}
	const hint = " (a reaction is not started by an event that a run of itself led to)"
	for name, c := range map[string]struct {
		reactions, a, b, want string
	}{
		"itself": {reaction("x", "a"), emit("x"), emit("z"), "jobs/a.yaml:1:61: warning: reactions start each other: x (reactions/r.yaml:2:3) -> x" + hint},
		"by the event's name": {reaction("x", "a"), emit("{{ event.name }}"), emit("z"),
			"jobs/a.yaml:1:61: warning: reactions start each other: x (reactions/r.yaml:2:3) -> x" + hint},
		"each other": {reaction("x", "a") + reaction("y/*", "b"), emit("y/q"), emit("x"),
			"jobs/b.yaml:1:61: warning: reactions start each other: x (reactions/r.yaml:2:3) -> y/* (reactions/r.yaml:3:3) -> x" + hint},
		"into a loop":             {reaction("w", "a") + reaction("x", "b"), emit("x"), emit("x"), "jobs/b.yaml:1:61: warning: reactions start each other: x (reactions/r.yaml:3:3) -> x" + hint},
		"a chain":                 {reaction("x", "a") + reaction("y", "b"), emit("y"), emit("z"), ""},
		"a name that is computed": {reaction("x", "a") + reaction("made-up", "b"), emit("{{ event.data.next }}"), emit("z"), ""},
		"a glob's own name":       {reaction("'x/*'", "a") + reaction("made-up", "b"), emit("{{ event.name }}"), emit("z"), ""},
	} {
		got := lintedEvents(t, map[string]string{"reactions/r.yaml": "reactions:\n" + c.reactions, "jobs/a.yaml": c.a, "jobs/b.yaml": c.b, "base/jobs.yaml": "jobs: {'*': []} # b\n"})
		got = strings.TrimPrefix(strings.ReplaceAll("\n"+got, "\njobs/b.yaml: warning: nothing refers to this file (remove it, or name it in base/jobs.yaml)", ""), "\n")
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// TestJobsOfReactions: a job that reactions alone name is used, also where no host runs it, or by a file with targets
// of its own; and so is what triggers and reactions mention.
func TestJobsOfReactions(t *testing.T) {
	got := lintedEvents(t, map[string]string{
		"reactions/a.yaml": "reactions:\n  x: {reaction: {jobs: {'role=cache': [{name: never}], 'role=web': [{name: some}]}}}\n  y: {reaction: {jobs: [{name: own}], targets: event}}\n",
		"jobs/never.yaml":  "steps: []\n", "jobs/some.yaml": "steps: []\n", "jobs/own.yaml": "jobs: {'*': [{name: of/own}]}\n", "jobs/of/own.yaml": "steps: []\n", "jobs/lost.yaml": "steps: []\n",
		"base/events.yaml": "events: {triggers: {'role=db': [{name: t}]}}\n", "events/t.yaml": "t: {expression: 'vars.most > 3', data: {about: '{{ vars.what }}'}}\n",
		"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "most: 1\nwhat: disks\nunused: 1\n",
	})
	want := strings.Join([]string{
		"jobs/lost.yaml: warning: nothing refers to this file (remove it, or name it in base/jobs.yaml)",
		`reactions/a.yaml:2:25: warning: no node of the inventory matches the target "role=cache" (nobody gets what stands below it)`,
		`vars/v.yaml:3:1: warning: nothing in the repository mentions the variable "unused" (remove it, or use it)`,
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	unread := lintedEvents(t, map[string]string{"events/t.yaml": "t: {expression: 'true'}\n"})
	if want := "events/t.yaml: warning: nothing refers to this file (remove it, or name its triggers in base/events.yaml)"; unread != want {
		t.Errorf("%s, want %s", unread, want)
	}
}
