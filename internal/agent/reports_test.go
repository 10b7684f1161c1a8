package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// host is a node with a repository and an etcd of its own.
type host struct {
	t    *testing.T
	home string
	Config
	log strings.Builder // of its agent
}

// newHost makes a host that runs a job.
func newHost(t *testing.T, job string) *host {
	h := &host{t: t, home: t.TempDir()}
	var err error
	if h.Config, err = DefaultBelow(filepath.Join(h.home, "root")); err != nil {
		t.Fatal(err)
	}
	h.Node.Node = render.Node{Name: "web1", Labels: map[string]string{"role": "web"}}
	h.Paths = Paths{State: filepath.Join(h.home, "state"), HostVars: filepath.Join(h.home, "vars.d")}
	h.Agent.Wait = 0
	h.Repositories = []puller.Source{{Name: "main", URL: filepath.Join(h.home, "repo")}}
	h.write("root/etc/keep", "")
	h.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}]}\nvalidations: {'*': [{name: check}]}\n")
	h.write("repo/jobs/check.yaml", "steps: [{name: works, action: cmd.run, parameters: {cmd: 'true'}}]\n")
	h.git("init", "-q", "-b", "main")
	h.commit(job)
	return h
}

func (h *host) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.home, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) git(args ...string) {
	h.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(h.home, "repo"), "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// commit changes the job.
func (h *host) commit(job string) {
	h.t.Helper()
	h.write("repo/jobs/site.yaml", job)
	h.git("add", "-A")
	h.git("commit", "-qm", "x")
}

// pull pulls once.
func (h *host) pull() *Outcome {
	h.t.Helper()
	out, err := h.tryPull(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *host) tryPull(ctx context.Context) (*Outcome, error) {
	h.t.Helper()
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := a.Pull(ctx, Options{Waiting: func(*lock.Wait) {}})
	return out, errors.Join(err, a.Close())
}

// entry is the log of the host's agent.
func (h *host) entry() *logrus.Entry {
	log := logrus.New()
	log.SetOutput(&h.log)
	log.SetLevel(logrus.TraceLevel)
	return logrus.NewEntry(log)
}

// statuses are what the fleet's record says of the host.
func (h *host) statuses() map[string]state.StatusLine {
	h.t.Helper()
	s, err := h.OpenStore(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	o, err := s.Views.Fleet(context.Background(), false)
	if err != nil {
		h.t.Fatal(err)
	}
	return o.Statuses[h.Node.Name]
}

// reports are the reports on the host's disk, the oldest first.
func (h *host) reports() []apply.Report {
	h.t.Helper()
	files, err := state.Reports(h.Paths.State)
	if err != nil {
		h.t.Fatal(err)
	}
	out := make([]apply.Report, len(files))
	for i, f := range files {
		if err := f.Load(&out[i]); err != nil {
			h.t.Fatal(err)
		}
	}
	return out
}

// warned checks that a pull warned once, and that the warning says something.
func (h *host) warned(o *Outcome, want string) {
	h.t.Helper()
	if len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0].Error(), want) {
		h.t.Errorf("warnings %q, want one with %q", o.Warnings, want)
	}
}

// job is a job whose first step writes a file, and whose second is a command.
func job(content, command string) string {
	return fmt.Sprintf("steps:\n- {name: motd, action: file.managed, parameters: {name: /etc/motd, content: %q}}\n"+
		"- {name: command, action: cmd.run, parameters: {cmd: %q}}\n", content, command)
}

// TestStates: a node is in one state of each category, from its first pull on; a run that failed leaves its digest and
// its full report.
func TestStates(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "echo much to say; echo no >&2; exit 7"))
	out := h.pull()
	got := h.statuses()
	for category, want := range map[string]string{state.Provisioned: state.Success, state.Configured: state.Failed, state.Rollout: state.Failed, state.Validated: state.Pending} {
		if got[category].State != want {
			t.Errorf("%s is %q, want %s", category, got[category].State, want)
		}
	}
	c := got[state.Configured]
	if d := c.Digest; c.Run != out.Run || d == nil || d.Counts["failed"] != 1 || d.Counts["changed"] != 1 || !strings.Contains(d.Failed, "site/command (jobs/site.yaml:3:3): ") || !strings.HasSuffix(d.Failed, ": exit code 7: no") || d.Seconds <= 0 {
		t.Errorf("%+v %+v", c, d)
	}
	var report apply.Report
	if err := state.LoadReport(h.Paths.State, out.Run, &report); err != nil || report.First(apply.Failed).Result.StdOut != "much to say\n" || report.First(apply.Failed).Result.StdErr != "no\n" {
		t.Errorf("%v %+v", err, report)
	}
	h.commit(job("one", "true"))
	h.pull()
	for category, s := range h.statuses() {
		if s.State != state.Success {
			t.Errorf("%s is %q: %s", category, s.State, s.Reason)
		}
	}
}

// TestProvisionedElsewhere: what another tool said of a node's provisioning stays, whatever the pulls come to.
func TestProvisionedElsewhere(t *testing.T) {
	t.Parallel()
	for _, said := range []string{state.Running, state.Failed, state.Pending, state.Success} {
		h := newHost(t, job("one", "true"))
		s, err := h.OpenStore(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(s.Statuses.Set(context.Background(), "web1", state.Provisioned, said, state.Status{Reason: "cloud-init"}), s.Close())
		if err != nil {
			t.Fatal(err)
		}
		h.pull()
		if got := h.statuses()[state.Provisioned]; got.State != said || got.Reason != "cloud-init" {
			t.Errorf("%s became %+v", said, got)
		}
	}
}

// TestRunning: the fleet sees that a run goes on, and what a node that failed is while it tries again.
func TestRunning(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	ready, released := filepath.Join(h.home, "ready"), filepath.Join(h.home, "released")
	wait := fmt.Sprintf("touch %s; until test -e %s; do sleep 0.01; done; exit $(cat %[2]s)", ready, released)
	for i, c := range []struct{ code, during, then string }{
		{"7", state.Running, state.Failed}, {"0", state.Failed, state.Success}, {"0", state.Running, state.Success},
	} {
		h.commit(job(fmt.Sprint(i), wait+fmt.Sprint(" # ", i)))
		done := make(chan error, 1)
		go func() { _, err := h.tryPull(context.Background()); done <- err }()
		patience.Until(t, "the command starts", func() bool {
			_, err := os.Stat(ready)
			return err == nil
		})
		if got := h.statuses()[state.Configured]; got.State != c.during || time.Since(got.Time) > time.Minute {
			t.Errorf("during the run: %+v, want %s", got, c.during)
		}
		h.write("code", c.code) // the command sees the file only when it has its content
		if err := os.Rename(filepath.Join(h.home, "code"), released); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := h.statuses()[state.Configured]; got.State != c.then {
			t.Errorf("after the run: %+v, want %s", got, c.then)
		}
		if err := errors.Join(os.Remove(ready), os.Remove(released)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPullThatCannotBeMade: the fleet hears of a pull that ended before or beside its run.
func TestPullThatCannotBeMade(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.pull()
	h.write("state/journal.jsonl/x", "") // a directory where the journal should be
	h.commit(job("two", "true"))
	if _, err := h.tryPull(context.Background()); err == nil {
		t.Fatal("the pull went through")
	}
	if got := h.statuses()[state.Configured]; got.State != state.Failed || !strings.Contains(got.Reason, "journal.jsonl: is a directory") {
		t.Errorf("%+v", got)
	}
	if err := os.RemoveAll(filepath.Join(h.Paths.State, "journal.jsonl")); err != nil {
		t.Fatal(err)
	}
	h.write("state/lastgood", "") // a file where a directory should be
	_, err := h.tryPull(context.Background())
	if err == nil {
		t.Fatal("the pull went through")
	}
	if got := h.statuses()[state.Configured]; got.State != state.Failed || got.Reason == "" || !strings.Contains(err.Error(), got.Reason) {
		t.Errorf("%+v, the error was %v", got, err)
	}
}

// TestRunThatCannotBeRecorded: what the run did is in its report, with why the pull failed nevertheless.
func TestRunThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	h := newHost(t, "")
	h.commit(job("one", "mkdir -p "+h.Paths.State+"/done.json/x"))
	out, err := h.tryPull(context.Background())
	all := h.reports()
	if err == nil || len(all) != 1 || all[0].Run != out.Run || all[0].Changed() != 2 || len(all[0].Errors) != 1 || !strings.Contains(all[0].Errors[0], "done.json cannot be written") {
		t.Fatalf("%v, reports %+v", err, all)
	}
	if got := h.statuses()[state.Configured]; got.State != state.Failed || got.Version != all[0].Version || !strings.Contains(got.Reason, "done.json cannot be written") {
		t.Errorf("%+v", got)
	}
}

// TestReportCannotBeWritten: the drift is corrected, and the pull says what is missing.
func TestReportCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.write("state/reports", "") // a file where the directory should be
	out := h.pull()
	h.warned(out, "the report of run "+out.Run+" is not kept: ")
	h.write("root/etc/motd", "by hand")
	out = h.pull()
	h.warned(out, "is not kept: ")
	if text, err := os.ReadFile(filepath.Join(h.home, "root/etc/motd")); err != nil || string(text) != "one" || out.ExitCode() != ExitOK {
		t.Errorf("%q %v, exit code %d", text, err, out.ExitCode())
	}
	if got := h.statuses()[state.Configured]; got.State != state.Success || !strings.Contains(got.Reason, "is not kept") {
		t.Errorf("%+v", got)
	}
}

// TestRepeatedFailures: a night of the same failure leaves its first and its last report, and those before it.
func TestRepeatedFailures(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "exit 7"))
	h.Agent.Reports.Keep = 4
	var runs []string
	for range 6 {
		runs = append(runs, h.pull().Run)
	}
	var got []string
	for _, r := range h.reports() {
		got = append(got, fmt.Sprint(r.Run, " ", r.Repeated))
	}
	if want := []string{runs[0] + " 0", runs[1] + " 0", runs[5] + " 4"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	h.commit(job("one", "exit 8"))
	h.pull()
	if all := h.reports(); len(all) != 4 || all[3].Repeated != 0 {
		t.Errorf("another failure is kept for itself: %d reports", len(all))
	}
}

// TestCommitThatDoesNotCompile: why a commit cannot be used is kept in full, also where nothing ran.
func TestCommitThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	h := newHost(t, "stps: []\n")
	h.pull()
	if all := h.reports(); len(all) != 1 || len(all[0].Errors) != 1 || !strings.Contains(all[0].Errors[0], "jobs/site.yaml:1:1: unknown field") || !strings.Contains(all[0].Errors[0], "\n") {
		t.Errorf("%+v", all)
	}
	h.commit(job("one", "true"))
	h.pull()
	h.commit("stps: []\n")
	out := h.pull() // what runs is checked, what is new is refused
	if all := h.reports(); len(all) != 3 || all[2].Run != out.Run || len(all[2].Errors) != 1 || len(all[2].Steps) == 0 {
		t.Errorf("%+v", all)
	}
}

// TestSensitiveReports: neither reports nor logs show what a sensitive step printed.
func TestSensitiveReports(t *testing.T) {
	t.Parallel()
	h := newHost(t, strings.ReplaceAll(job("open-sesame", "echo open-sesame; exit 1"), "}}\n", "}, sensitive: true}\n"))
	h.pull()
	all := h.reports()
	data, err := json.Marshal(all)
	if err != nil || len(all) != 1 || strings.Contains(string(data), "sesame") || strings.Contains(all[0].Log(), "sesame") {
		t.Errorf("%v %s", err, data)
	}
}
