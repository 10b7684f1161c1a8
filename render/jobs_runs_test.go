package render

import (
	"strings"
	"testing"
)

// TestRunsOfAJob: what a step says goes before what base/jobs.yaml says of its job, and that before what the job's file
// says.
func TestRunsOfAJob(t *testing.T) {
	steps := "steps:\n- {name: own, action: cmd.run, parameters: {cmd: x}, runOptions: {runs: once}}\n- {name: plain, action: cmd.run, parameters: {cmd: x}}\n"
	cat := compile(t, map[string]string{
		"base/jobs.yaml": "jobs: {'*': [{name: a, runs: onUpdate}, {name: b}, {name: c, runs: always}]}",
		"jobs/a.yaml":    "include: [d]\nrunOptions: {runs: always}\n" + steps, "jobs/b.yaml": "runOptions: {runs: onUpdate}\n" + steps,
		"jobs/c.yaml": "runOptions: {runs: onUpdate}\n" + steps, "jobs/d.yaml": steps,
	})
	var got []string
	for _, j := range cat.Jobs {
		for _, s := range j.Steps {
			word := s.Options.Runs
			if s.Options.Explicit {
				word += "!" // a command runs at every pull
			}
			got = append(got, s.ID()+"="+word)
		}
	}
	want := "d/own=once d/plain=onUpdate a/own=once a/plain=onUpdate b/own=once b/plain=onUpdate c/own=once c/plain=always!"
	if strings.Join(got, " ") != want {
		t.Errorf("%s\nwant %s", strings.Join(got, " "), want)
	}
	_, err := repo(map[string]string{"base/jobs.yaml": "jobs: {}\nvalidations: {'*': [{name: a, runs: onUpdate}]}", "jobs/a.yaml": steps}).Compile(Input{Node: Node{Name: "n1"}})
	if err == nil || !strings.Contains(err.Error(), `validation "a": runs: onUpdate would leave it out, and a validation runs at every pull`) {
		t.Error(err)
	}
}
