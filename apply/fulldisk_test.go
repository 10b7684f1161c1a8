package apply_test

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pullet/pullet/apply"
)

// enough is the size from which on files do not grow while the disk is full.
const enough = 1 << 20

// fullDisk makes all writes behind the end of a lab's journal fail, from fill to free, as on a disk without room. Files
// are bounded in the whole process, which writes some of its own meanwhile: so the journal is extended to the bound.
func (l *lab) fullDisk(t *testing.T) (fill, free func()) {
	t.Helper()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	var size int64
	resize := func(to int64) {
		if err := os.Truncate(filepath.Join(l.dir, "journal.jsonl"), to); err != nil {
			t.Error(err)
		}
	}
	set := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Error(err)
		}
	}
	signal.Ignore(syscall.SIGXFSZ) // the write fails with EFBIG then
	t.Cleanup(func() { set(was); signal.Reset(syscall.SIGXFSZ) })
	fill = func() {
		info, err := os.Stat(filepath.Join(l.dir, "journal.jsonl"))
		if err != nil {
			t.Error(err)
			return
		}
		size = info.Size()
		resize(enough)
		set(syscall.Rlimit{Cur: enough, Max: was.Max})
	}
	return fill, func() { set(was); resize(size) }
}

// TestNoFailedRecordIsSilent: wherever in a run its record can no longer be written, the run says so, and starts
// nothing behind that. The next one, with room on the disk, brings the host to its end.
func TestNoFailedRecordIsSilent(t *testing.T) {
	const target = "runOptions: {target: {limit: 1}}"
	for name, c := range map[string]struct {
		steps  []string
		moment string // at which the disk is full: when something is applied, or after a step
		want   string
		ran    string
		again  string // what the next run applies
		lost   bool   // it says that the result of the second step is unknown
	}{
		"a start":           {[]string{cmds("a"), cmds("b"), cmds("c")}, "after a", "a changed, b failed", "a", "b c", false},
		"an end":            {[]string{cmds("a"), cmds("b"), cmds("c")}, "b", "a changed, b failed", "a b", "b c", false},
		"the last end":      {[]string{cmds("a"), cmds("b")}, "b", "a changed, b failed", "a b", "b", false},
		"an attempt":        {[]string{cmds("a"), cmds("t", target), cmds("c")}, "after a", "a changed, t failed, c failed", "a", "t c", false},
		"a file's start":    {[]string{cmds("a"), file("f"), cmds("c")}, "after a", "a changed, f failed", "a", "c", false},
		"an end for others": {[]string{cmds("a"), cmds("t", target)}, "t", "a changed, t failed", "a t", "", true},
		"the end of a command that must not run twice": {
			[]string{cmds("a"), cmds("b", "runOptions: {idempotent: false}")}, "b", "a changed, b failed", "a b", "", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			a.root = t.TempDir()
			a.files()
			fill, free := a.fullDisk(t)
			js := one(c.steps...)
			a.onApply = func(name string) {
				if name == c.moment {
					fill()
				}
			}
			o := a.options()
			o.Gates = &gatebook{holds: holds{ask: func(context.Context) error { return nil }}}
			o.Watch = func(s *apply.StepReport) {
				if "after "+s.Step == c.moment {
					fill()
				}
			}
			r, err := a.program(js).Run(context.Background(), o)
			free()
			if err != nil {
				t.Errorf("run: %v", err)
			}
			a.want(r, c.want)
			a.wantRan(strings.Fields(c.ran)...)
			if !strings.HasPrefix(r.Stopped, "journal: ") || !strings.HasSuffix(r.Stopped, "file too large") || r.Steps[1].Reason != r.Stopped {
				t.Errorf("stopped %q, why %q", r.Stopped, r.Why())
			}
			a.onApply = nil
			again := a.runWith(&gatebook{holds: holds{ask: func(context.Context) error { return nil }}}, js)
			if again.Failed() != c.lost || again.Pending() || strings.Contains(again.Why(), "its result is unknown") != c.lost {
				t.Errorf("again: %s %s", outcomes(again), again.Why())
			}
			a.wantRan(strings.Fields(c.again)...)
		})
	}
}

// TestRecordOutOfReach: a run whose records cannot be read or written at its beginning touches nothing.
func TestRecordOutOfReach(t *testing.T) {
	for name, c := range map[string]struct {
		before func(a *assets, o *apply.Options) // the run
		want   error
	}{
		"what is owed": {func(a *assets, o *apply.Options) {
			o.Journal.Managed().Owed = []string{"a/x"}
			mustDo(a, os.Mkdir(filepath.Join(a.dir, "managed.json"), 0o700))
		}, nil},
		"what files were": {func(a *assets, o *apply.Options) {
			o.Keep = filepath.Join(a.dir, "kept")
			mustDo(a, os.MkdirAll(filepath.Join(o.Keep, "index.jsonl"), 0o700))
		}, syscall.EISDIR},
		"which boot it was in": {func(a *assets, o *apply.Options) {
			mustDo(a, o.Journal.StartBoot("a/a", "before", "key", nil))
			o.Host.Boot = "now"
			mustDo(a, os.MkdirAll(filepath.Join(a.dir, "done.json"), 0o700))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			o := a.options()
			c.before(a, &o)
			r, err := a.program(one(cmds("a"))).Run(context.Background(), o)
			if r != nil || err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%+v %v", r, err)
			}
			a.wantRan()
		})
	}
}

// TestRecordOutOfReachAtTheEnd: a run that cannot write what it brought to the host, or that it is over, says so. The
// next one brings it on record.
func TestRecordOutOfReachAtTheEnd(t *testing.T) {
	for name, at := range map[string]string{"what is managed": "managed.json", "what is done for good": "done.json"} {
		t.Run(name, func(t *testing.T) {
			a := newAssets(t)
			o, path := a.options(), filepath.Join(a.dir, at)
			var broken, fixed error
			o.Watch = func(*apply.StepReport) {
				if err := os.Rename(path, path+".kept"); err != nil && !errors.Is(err, os.ErrNotExist) {
					broken = err
				}
				broken = errors.Join(broken, os.Mkdir(path, 0o700)) // no file can be renamed to it
			}
			r, err := a.program(one(thing("t.asset", "x", "runOptions: {runs: once}"))).Run(context.Background(), o)
			if err == nil || !strings.HasPrefix(err.Error(), "journal: ") || r == nil || r.Failed() {
				t.Errorf("%v", err)
			}
			if fixed = os.Remove(path); fixed == nil {
				if err := os.Rename(path+".kept", path); err != nil && !errors.Is(err, os.ErrNotExist) {
					fixed = err
				}
			}
			if err := errors.Join(broken, fixed); err != nil {
				t.Fatal(err)
			}
			a.want(a.run(one(thing("t.asset", "x", "runOptions: {runs: once}"))), "x changed")
			a.wantRan("x")
			a.version = "v2"
			a.want(a.run(pruning(puts("other"))), "other changed, prune asset x changed")
		})
	}
}

// TestOldFilesOutOfReachAtTheEnd: what files were before an upgrade is forgotten when it succeeded. Where that fails
// the run says so, and the next one forgets it: an upgrade after it must not be undone to files from before this one.
func TestOldFilesOutOfReachAtTheEnd(t *testing.T) {
	a := newAssets(t)
	a.root = t.TempDir()
	kept := filepath.Join(a.dir, "kept")
	index := filepath.Join(kept, "index.jsonl")
	version := func(value string, more ...string) jobs {
		write := "{name: f, action: t.file, parameters: {name: /f, value: " + value + "}}"
		return jobs{{"a", "onFailure: restore\n" + list(append([]string{write}, more...)...)}}
	}
	keeps := func(o *apply.Options) { o.Keep = kept }
	a.at("v1", version("one"), keeps)
	a.version = "v2"
	o := a.options()
	keeps(&o)
	var broken error
	o.Watch = func(*apply.StepReport) {
		broken = errors.Join(os.Rename(index, index+".kept"), os.MkdirAll(filepath.Join(index, "full"), 0o700))
	}
	r, err := a.program(version("two")).Run(context.Background(), o)
	if !errors.Is(err, syscall.ENOTEMPTY) || r.Failed() {
		t.Errorf("%v", err)
	}
	if err := errors.Join(broken, os.Remove(filepath.Join(index, "full")), os.Remove(index), os.MkdirAll(kept, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(index+".kept", index); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	a.want(a.at("v2", version("two"), keeps), "f changed")
	a.fails["x"] = "broken"
	a.want(a.at("v3", version("three", cmds("x")), keeps), "f changed, x failed, restore /f changed")
	if text, err := os.ReadFile(filepath.Join(a.root, "f")); err != nil || string(text) != "two" {
		t.Errorf("put back: %q %v", text, err)
	}
}
