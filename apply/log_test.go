package apply

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/pullet/pullet/render"
)

// TestLog: the log has all that the report has, also when the report was read again from disk.
func TestLog(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &Report{
		Run: "r1", Node: "web1", Version: "abc", Release: "v1", Started: at, Ended: at.Add(-24 * time.Hour), Seconds: 1.5,
		Errors: []string{"jobs/new.yaml:1:1: unknown field\n  1 | stps:"},
		Steps: []*StepReport{
			{Job: "site", Step: "index", Action: "file.managed", Pos: render.Position{File: "jobs/site.yaml", Line: 2, Col: 5}, Outcome: Changed, Summary: "content", Diff: "-a\n+b\n"},
			{
				Job: "site", Step: "check", Item: "two", Action: "cmd.run", Outcome: Failed, Reason: "exit code 7", Seconds: 0.25,
				Result: render.StepResult{ExitCode: 7, StdOut: "one\ntwo\n", StdErr: "no\n"},
			},
		},
		Leftovers: []Leftover{{ID: "file /x", Job: "old", Why: "prune is not set"}},
		Stopped:   "told to stop", NotUndone: []string{"site/check"},
	}
	want := `run     r1
node    web1
version v1 (abc)
started 2026-01-02T03:04:05Z
ended   2026-01-01T03:04:05Z
took    1.500s
  error:
    jobs/new.yaml:1:1: unknown field
      1 | stps:

changed  site/index (file.managed), jobs/site.yaml:2:5, 0.000s
  summary:
    content
  diff:
    -a
    +b

failed   site/check two (cmd.run), , 0.250s
  exit code 7
  reason:
    exit code 7
  stdout:
    one
    two
  stderr:
    no

what site/check changed cannot be undone and stays

left: file /x of job old, which no job declares any longer: prune is not set

stopped: told to stop
`
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	for _, one := range []*Report{r, &back} {
		if got := one.Log(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
