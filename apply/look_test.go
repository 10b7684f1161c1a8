package apply_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/patience"
)

// looks counts how often it is compared with the host, and makes an empty file.
type looks struct {
	Name string `yaml:"name,required"`
	log  *looked
}

// looked is what was done for files.
type looked struct {
	sync.Mutex
	counts     map[string]int
	open, most int // files that were prepared and have not their names yet
	prepare    func() error
	before     func(what, name string) // may hang; nil: nothing is done
}

// count counts what is about to be done for a file.
func (a *looks) count(what string) {
	a.log.count(what)
	if a.log.before != nil {
		a.log.before(what, a.Name)
	}
}

func (l *looked) count(what string) {
	l.Lock()
	defer l.Unlock()
	switch l.counts[what]++; what {
	case "prepare":
		l.open++
	case "place":
		l.open--
	}
	l.most = max(l.most, l.open)
}

// files are steps that make files below the lab's root.
func (l *lab) files() *looked {
	log := &looked{counts: map[string]int{}}
	l.more = []apply.Spec{{Name: "t.look", New: func() apply.Action { return &looks{log: log} }}}
	return log
}

// file is a step that makes a file of its name.
func file(name string, more ...string) string {
	return strings.Join(append([]string{"{name: " + name + ", action: t.look, parameters: {name: /" + name + "}"}, more...), ", ") + "}"
}

func (a *looks) Prepares() string { return a.Name }

func (a *looks) CheckAt(_ *apply.Host, at *hostfile.Entry) (apply.Change, apply.Prepare, error) {
	a.count("look")
	if at.Exists() {
		return apply.Change{}, nil, nil
	}
	return apply.Change{Summary: "create"}, func(context.Context) (*apply.Prepared, error) {
		a.count("prepare")
		if prepare := a.log.prepare; prepare != nil {
			if err := prepare(); err != nil {
				return nil, err
			}
		}
		if filepath.Base(a.Name) == "bad" {
			return nil, errors.New("no room")
		}
		c, err := at.Candidate() // the entry is open still
		if err != nil {
			return nil, err
		}
		return &apply.Prepared{New: c, Drop: c.Drop, Place: func() error { a.count("place"); return c.PlaceUnsynced() }}, nil
	}, nil
}

func (a *looks) Check(context.Context, *apply.Host) (apply.Change, error) {
	a.log.count("check")
	return apply.Change{}, nil
}

func (a *looks) Apply(context.Context, *apply.Host, apply.Change) (apply.Output, error) {
	a.log.count("apply")
	return apply.Output{}, nil
}

func (a *looks) Manages() []apply.Resource {
	return []apply.Resource{{ID: "file " + a.Name, Path: a.Name}}
}

// TestLookedAtOnce: a step of a group is compared with the host once, in one directory that stays open until its file
// has its name. One that cannot be prepared fails alone.
func TestLookedAtOnce(t *testing.T) {
	l := newLab(t)
	l.root = t.TempDir()
	log := l.files()
	counts, steps := log.counts, one(file("a"), file("bad"), file("b"))
	for _, c := range []struct {
		want          string
		look, prepare int
	}{{"bad failed, a changed, b changed", 3, 3}, {"a ok, bad failed, b ok", 6, 4}} {
		r, err := l.program(steps).Run(t.Context(), l.options())
		if err != nil {
			t.Fatal(err)
		}
		l.want(r, c.want)
		if counts["look"] != c.look || counts["prepare"] != c.prepare || counts["check"]+counts["apply"] > 0 {
			t.Errorf("%s: %v", c.want, counts)
		}
	}
}

// TestGroupIsBounded: so many files become durable together, and not one more.
func TestGroupIsBounded(t *testing.T) {
	l := newLab(t)
	l.root = t.TempDir()
	log := l.files()
	var steps []string
	for i := range 300 {
		steps = append(steps, file(fmt.Sprintf("f%d", i)))
	}
	if r := l.run(one(steps...)); r.Counts[apply.Changed] != len(steps) || log.most != 256 {
		t.Errorf("%v, %d files at once, want 256", r.Counts, log.most)
	}
}

// TestGroupTakesFewGoroutines: steps that wait in a group have no goroutine each, which thousands of files would pay
// for.
func TestGroupTakesFewGoroutines(t *testing.T) {
	l := newLab(t)
	l.root = t.TempDir()
	var steps []string
	for i := range 250 {
		steps = append(steps, file(fmt.Sprintf("f%d", i)))
	}
	var most atomic.Int64
	l.files().before = func(what, _ string) {
		most.Store(max(most.Load(), int64(runtime.NumGoroutine())))
	}
	before := int64(runtime.NumGoroutine())
	l.run(one(steps...))
	if n := most.Load() - before; n > 50 {
		t.Errorf("%d goroutines for %d files", n, len(steps))
	}
}

// TestBehindAGroup: what stands behind files in the order of the file starts when they have their names, or when there
// was nothing to change.
func TestBehindAGroup(t *testing.T) {
	l := newLab(t)
	l.root = t.TempDir()
	l.files()
	l.onApply = func(name string) {
		for _, file := range []string{"a", "b"} {
			if _, err := os.Stat(filepath.Join(l.root, file)); err != nil {
				t.Errorf("%s runs before the file has its name: %v", name, err)
			}
		}
	}
	steps := one(file("a"), file("b"), cmds("c", "runOptions: {runs: always}"))
	l.want(l.run(steps), "a changed, b changed, c changed")
	l.want(l.run(steps), "a ok, b ok, c changed")
}

// TestBesideAGroup: where the order is free, a step that cannot belong to a group does not wait for it.
func TestBesideAGroup(t *testing.T) {
	l, ran := newLab(t), make(chan struct{})
	l.root = t.TempDir()
	l.onApply = func(string) { close(ran) }
	l.files().prepare = func() error {
		select {
		case <-ran:
			return nil
		case <-time.After(patience.Stretch(20 * time.Second)):
			return errors.New("the other step has not run")
		}
	}
	r := l.run(jobs{{"a", "runOptions: {ordering: justdoit}\n" + list(file("a"), cmds("b"))}})
	if r.Counts[apply.Changed] != 2 {
		t.Errorf("%s: %s", outcomes(r), r.Why())
	}
}

// TestGroupGoesOnBesideHung: where a step of a group hangs, it fails when its time is over, and the others of the group
// and what comes behind them go on. Nothing works on the same until it returns, and then what it had open is closed.
func TestGroupGoesOnBesideHung(t *testing.T) {
	for where, want := range map[string]string{
		"look":    "h failed, a changed, b changed, c changed",
		"prepare": "h failed, a changed, b changed, c changed",
		"place":   "a changed, h failed, b changed, c changed",
	} {
		t.Run(where, func(t *testing.T) {
			l, abandoned := newLab(t), apply.Abandoned{Grace: time.Millisecond}
			l.root = t.TempDir()
			log, goOn := l.files(), make(chan struct{})
			var again atomic.Bool
			log.before = func(what, name string) {
				if name != "/h" {
					return
				}
				if again.Load() {
					t.Errorf("%s: it was called beside what hangs", what)
				}
				if what == where {
					<-goOn
				}
			}
			var told atomic.Int32 // how often the end of the step was told
			run := func() *apply.Report {
				o := l.options()
				o.Host.Abandoned = &abandoned
				o.Watch = func(r *apply.StepReport) {
					if r.Step == "h" {
						told.Add(1)
					}
				}
				r, err := l.program(one(file("a"), file("h", soon), file("b"), cmds("c", "runOptions: {runs: always}"))).Run(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			pull := func(want string) {
				t.Helper()
				r := run()
				l.want(r, want)
				if h := step(t, r, "h"); !hung.MatchString(h.Reason) || h.Fault != apply.HostFault {
					t.Errorf("%s: %s", h.Fault, h.Reason)
				}
			}
			pull(want)
			again.Store(true)
			pull("a ok, h failed, b ok, c changed")
			close(goOn)
			patience.Until(t, "everything is closed", func() bool {
				runtime.GC() // which alone closes a directory that the run was still to sync when it ended
				return openBelow(t, l.root) == 0
			})
			if _, err := os.Stat(filepath.Join(l.root, "h")); where != "place" && !os.IsNotExist(err) {
				t.Errorf("it was made when nobody waited for it any more: %v", err)
			}
			if n := told.Load(); n != 2 {
				t.Errorf("two runs told %d ends of the step", n)
			}
			again.Store(false)
			// It returned, and the step runs again: so is that.
			patience.Until(t, "the step is free", func() bool { return !hung.MatchString(step(t, run(), "h").Reason) })
		})
	}
}

// openBelow is how many descriptors this process has below a directory.
func openBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir) { // the directory that is read is closed by now
			n++
		}
	}
	return n
}
