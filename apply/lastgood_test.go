package apply_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/journal"
)

// restored is a job that puts its file back when it fails, with more steps behind the file.
func restored(value string, more ...string) string {
	f := "{name: f, action: t.file, parameters: {name: /f, value: " + value + "}}"
	return "onFailure: restore\n" + list(append([]string{f}, more...)...)
}

// wantFile compares the file of the job with its content.
func (a *assets) wantFile(want string) {
	a.t.Helper()
	if have, err := os.ReadFile(filepath.Join(a.root, "f")); err != nil || string(have) != want {
		a.t.Errorf("the file says %q, %v, want %q", have, err, want)
	}
}

// TestRestoreNeedsTheHost: a node that may not change anything now leaves its files. The next run puts them back.
func TestRestoreNeedsTheHost(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.root = t.TempDir()
	a.pull(jobs{{"a", restored("one")}}, nil)
	a.fails["fails"] = "broken"
	a.onApply = func(string) { a.held = errors.New("the slot is gone") }
	broken := jobs{{"a", restored("two", puts("fails"))}}
	r := a.pull(broken, nil)
	a.want(r, "f changed, fails failed")
	if r.Stopped != "the slot is gone" || r.Restored {
		t.Errorf("stopped %q, restored %v", r.Stopped, r.Restored)
	}
	a.wantFile("two")
	a.held, a.onApply = nil, nil
	r = a.pull(broken, nil)
	a.want(r, "f ok, fails failed, restore /f changed")
	if r.Stopped != "" || !r.Restored {
		t.Errorf("stopped %q, restored %v", r.Stopped, r.Restored)
	}
	a.wantFile("one")
}

// TestKeptUntilARunSucceeds: files are put back as they were after the last run that succeeded, not before the last
// run.
func TestKeptUntilARunSucceeds(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.root = t.TempDir()
	a.fails["fails"] = "broken"
	a.pull(jobs{{"a", restored("one")}}, nil)
	a.want(a.pull(jobs{{"a", restored("two")}, {"b", list(puts("fails"))}}, nil), "f changed, fails failed")
	a.wantFile("two") // another job failed
	a.want(a.pull(jobs{{"a", restored("two", puts("fails"))}}, nil), "f ok, fails failed, restore /f changed")
	a.wantFile("one")
	a.want(a.pull(jobs{{"a", restored("two")}}, nil), "f changed")
	a.want(a.pull(jobs{{"a", restored("three", puts("fails"))}}, nil), "f changed, fails failed, restore /f changed")
	a.wantFile("two")
}

// TestRestoredIsNoDrift: what was put back is not what the step says: the next try changes it for the commit, and
// nobody is said to have changed the host.
func TestRestoredIsNoDrift(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.root = t.TempDir()
	a.pull(jobs{{"a", restored("one")}}, nil)
	a.fails["fails"] = "broken"
	two := jobs{{"a", restored("two", puts("fails"))}}
	a.want(a.pull(two, nil), "f changed, fails failed, restore /f changed")
	delete(a.fails, "fails")
	r := a.pull(two, nil)
	a.want(r, "f changed, fails changed")
	if r.Steps[0].Drift {
		t.Errorf("%+v", r.Steps[0])
	}
}

// TestRestoredDoesNotGoOn: a step that did not get through its gate and whose file was put back is due again.
func TestRestoredDoesNotGoOn(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	a.root = t.TempDir()
	a.pull(jobs{{"a", restored("one")}}, nil)
	gates := gatebook{says: map[string]error{"End": errors.New("etcd is away")}, holds: holds{ask: func(context.Context) error { return nil }}}
	js := jobs{{"a", strings.Replace(restored("two"), "value: two}", "value: two}, runOptions: {serialize: {count: 1}}", 1)}}
	a.want(a.pull(js, func(o *apply.Options) { o.Gates = &gates }), "f failed, restore /f changed")
	a.wantFile("one")
	j, err := journal.Open(a.dir)
	if err != nil {
		t.Fatal(err)
	}
	if run, _ := j.Unfinished(); run != "" {
		t.Errorf("run %s goes on", run)
	}
}
