package program

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// host is a state directory and an installed file, beside the program of this test.
type host struct {
	*testing.T
	*Installed
	state string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &host{t, at(filepath.Join(bin, "pullet"), filepath.Join(dir, "state"), ownExe), filepath.Join(dir, "state")}
	h.is("old")
	h.runs("old")
	return h
}

// is makes the installed file another one, as a package does: by a rename.
func (h *host) is(text string) {
	h.Helper()
	next := h.Path + ".dpkg-new"
	if err := errors.Join(os.WriteFile(next, []byte(text), 0o755), os.Rename(next, h.Path)); err != nil {
		h.Fatal(err)
	}
}

// runs has the process run a program of these contents, from a file that nobody replaces.
func (h *host) runs(text string) {
	h.Helper()
	h.self = filepath.Join(filepath.Dir(filepath.Dir(h.Path)), "running-"+text)
	if err := os.WriteFile(h.self, []byte(text), 0o755); err != nil {
		h.Fatal(err)
	}
	*h.Installed = *at(h.Path, h.state, h.self)
}

func (h *host) want(file, text string) {
	h.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		h.Errorf("%s holds %q (%v), want %q", filepath.Base(file), got, err, text)
	}
}

func (h *host) refused() *Refused {
	h.Helper()
	r, err := h.Refused()
	if err != nil {
		h.Fatal(err)
	}
	return r
}

// TestReplaced: the installed file is compared by what is in it; the same contents in another file are the same
// program.
func TestReplaced(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, c := range []struct {
		text string
		want bool
	}{{"old", false}, {"new", true}, {"new", true}, {"old", false}} {
		h.is(c.text)
		if got, err := h.Replaced(); got != c.want || err != nil {
			t.Errorf("replaced by %q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
	if err := os.Chmod(h.Path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Replaced(); !got || err != nil {
		t.Errorf("a program that cannot be started: %v, %v", got, err)
	}
	if err := os.Remove(h.Path); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Replaced(); !got || err != nil {
		t.Errorf("a program that is gone: %v, %v", got, err)
	}
}

// TestConfirm: the first program is kept at once; another one is when it made a pull, and ends what was refused
// before.
func TestConfirm(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	limits := Limits{time.Minute, time.Hour}
	if err := h.First("v1", limits); err != nil {
		t.Fatal(err)
	}
	h.want(filepath.Join(h.state, "program/pullet"), "old")
	h.is("bad")
	if err := h.Refuse(Refused{Version: "c1", Why: "because"}); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "old")
	h.want(filepath.Join(h.state, "program/refused"), "bad")
	if err := h.Confirm("v1", limits); err != nil || h.refused() == nil {
		t.Errorf("the program before made another pull: %v, and %v is refused", err, h.refused())
	}
	h.is("new")
	h.runs("new")
	if unproven, err := h.Unproven(); !unproven || err != nil {
		t.Errorf("before its pull the new program is unproven: %v, %v", unproven, err)
	}
	if err := errors.Join(h.First("v2", limits), h.Confirm("v2", limits)); err != nil {
		t.Fatal(err)
	}
	h.want(filepath.Join(h.state, "program/pullet"), "new")
	if h.refused() != nil {
		t.Errorf("behind the pull of a new program %v is refused", h.refused())
	}
	if p, err := h.Proven(); err != nil || p.Version != "v2" || p.Path != h.Path || p.Limits != limits {
		t.Errorf("proven is %+v (%v)", p, err)
	}
}

// TestRefusedBegins: a program that was refused and is tried again is not refused by itself.
func TestRefusedBegins(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.is("bad")
	if err := errors.Join(h.First("v1", Limits{}), h.Refuse(Refused{Version: "c1", Why: "because"}), h.Again()); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "bad")
	if known, err := h.Known(h.refused()); !known || err != nil {
		t.Errorf("the refused program is known: %v, %v", known, err)
	}
	h.runs("bad")
	if r := h.refused(); r != nil {
		t.Errorf("%+v is refused in its own process", r)
	}
}

// TestHalfWritten: a copy that a kill cut short is written over, and never stands for the whole one.
func TestHalfWritten(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	parts := []string{filepath.Join(h.state, "program/.pullet.part"), filepath.Join(filepath.Dir(h.Path), ".pullet.part")}
	for _, part := range parts {
		if err := errors.Join(os.MkdirAll(filepath.Dir(part), 0o755), os.WriteFile(part, []byte("hal"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	h.is("bad")
	if err := errors.Join(h.First("v1", Limits{}), h.Refuse(Refused{Why: "because"})); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "old")
	h.want(filepath.Join(h.state, "program/pullet"), "old")
	for _, part := range parts {
		if _, err := os.Stat(part); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", part, err)
		}
	}
}

// TestNoRoom: a program that would fill the disk is not kept, and not a byte of it is written.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := os.Truncate(h.self, 8<<40); err != nil { // a file of holes
		t.Fatal(err)
	}
	err := h.keep(h.self, provenProgram)
	if err == nil || !strings.HasSuffix(err.Error(), " MiB free; the copy needs 8388608 MiB, and another 8388608 MiB must stay free") {
		t.Errorf("a program larger than the disk: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(h.state, "program")); len(left) != 0 {
		t.Errorf("%v, %v: nothing should be written", left, err)
	}
}

// TestHostileProgram: a file that somebody else can write is no program to start or to compare.
func TestHostileProgram(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.is("new")
	if err := os.Chmod(filepath.Dir(h.Path), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Replaced(); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a directory that everybody can write: %v", err)
	}
	if err := h.install(h.self); err == nil || !strings.Contains(err.Error(), "cannot be put back") {
		t.Errorf("what everybody could put there is replaced: %v", err)
	}
}

// guarded is a guard that has counted what it asked.
type guarded struct {
	*Guard
	restarts int
	said     []string
}

func (h *host) guard(limits Limits, atWork func() bool) *guarded {
	h.Helper()
	if err := h.First("v1", limits); err != nil {
		h.Fatal(err)
	}
	g := &guarded{}
	g.Guard = &Guard{
		Installed: h.Installed, AtWork: atWork, Version: func() string { return "c1" },
		Away:    func(context.Context) error { return nil },
		Restart: func(context.Context) error { g.restarts++; return nil },
		Say:     func(format string, _ ...any) { g.said = append(g.said, format) },
	}
	return g
}

func never() bool { return false }

// TestGuard: nothing is done where nothing is new; a program that makes no pull in time is put back, and what runs it
// starts anew, once.
func TestGuard(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	g := h.guard(Limits{Within: time.Millisecond}, never)
	if err := g.Watch(t.Context()); err != nil || g.restarts != 0 || len(g.said) != 0 {
		t.Errorf("nothing is new: %v, %d restarts, it said %q", err, g.restarts, g.said)
	}
	h.is("new")
	if err := g.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "old")
	r := h.refused()
	if g.restarts != 1 || r == nil || !r.Lost || r.Restart || r.Version != "c1" || !strings.Contains(r.Why, "made no pull in 1ms") {
		t.Errorf("%d restarts, refused is %+v", g.restarts, r)
	}
	if err := g.Watch(t.Context()); err != nil || g.restarts != 1 {
		t.Errorf("it watches again: %v, %d restarts", err, g.restarts)
	}
}

// TestGuardKilled: whatever the guard did when it was killed, the next one ends it.
func TestGuardKilled(t *testing.T) {
	t.Parallel()
	for name, killed := range map[string]func(h *host) error{
		"before it put the program back": func(h *host) error { return os.WriteFile(h.Path, []byte("new"), 0o755) },
		"before it restarted":            func(*host) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			g := h.guard(Limits{Within: time.Millisecond}, never)
			h.is("new")
			err := h.Refuse(Refused{Version: "c1", Why: "because", Lost: true, Restart: true})
			if err := errors.Join(err, killed(h), g.Watch(t.Context())); err != nil {
				t.Fatal(err)
			}
			h.want(h.Path, "old")
			if r := h.refused(); g.restarts != 1 || r == nil || r.Restart {
				t.Errorf("%d restarts, refused is %+v", g.restarts, r)
			}
		})
	}
}

// TestGuardWaits: a first pull that goes on has longer, but not for ever; while nobody could make a pull no program is
// at fault.
func TestGuardWaits(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	asked := 0
	g := h.guard(Limits{Within: time.Nanosecond, AtMost: 10 * time.Minute}, func() bool { asked++; return asked < 2 })
	h.is("new")
	if err := g.Watch(t.Context()); err != nil || asked != 2 {
		t.Errorf("a pull that went on for one look: %v, it looked %d times", err, asked)
	}
	h.want(h.Path, "old")

	// Behind a time in which nobody could make a pull, the program has its whole time again.
	h.is("newer")
	ctx, cancel := context.WithCancel(t.Context())
	g = h.guard(Limits{}, never)
	if err := h.Confirm("v1", Limits{Within: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	g.Away = func(context.Context) error {
		if time.Since(g.since) < 50*time.Millisecond {
			t.Error("it is judged before its time")
		}
		if asked++; asked == 4 {
			cancel()
		}
		return errors.New("etcd is away")
	}
	if err := g.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "newer")
}

// TestGuardSeesThePull: the guard ends when the new program made a pull.
func TestGuardSeesThePull(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	g := h.guard(Limits{Within: time.Hour}, never)
	h.is("new")
	h2 := &host{t, &Installed{Path: h.Path}, h.state}
	h2.runs("new")
	ended := make(chan error, 1)
	go func() { ended <- g.Watch(t.Context()) }()
	if err := errors.Join(h2.Confirm("v2", Limits{}), <-ended); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "new")
}

// TestUnusable: what cannot be started is put back like a program that makes no pull: a file without its mode, one that
// is gone, a link to nothing; also where no copy of it can be kept.
func TestUnusable(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(path string) error{
		"not executable": func(path string) error { return os.Chmod(path, 0o600) },
		"gone":           os.Remove,
		"a link to nothing": func(path string) error {
			return errors.Join(os.Remove(path), os.Symlink("/nonexistent/pullet", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			g := h.guard(Limits{Within: time.Nanosecond}, never)
			full := os.MkdirAll(filepath.Join(h.state, "program/refused/x"), 0o700)
			if err := errors.Join(full, breaks(h.Path), g.Watch(t.Context())); err != nil {
				t.Fatal(err)
			}
			h.want(h.Path, "old")
			if info, err := os.Lstat(h.Path); err != nil || info.Mode() != 0o755 {
				t.Errorf("what was put back: %v, %v", info, err)
			}
			if r := h.refused(); r == nil || !strings.Contains(r.Why, "and cannot be tried again: ") {
				t.Errorf("what could not be kept: %+v", r)
			}
		})
	}
}

// TestGuardFull: while nothing can be written where the host keeps its record, no new program is judged.
func TestGuardFull(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	g := h.guard(Limits{Within: time.Nanosecond}, never)
	h.is("new")
	full := filepath.Join(h.state, "program/guard.try/x")
	if err := os.MkdirAll(full, 0o700); err != nil {
		t.Fatal(err)
	}
	if v, err := g.look(t.Context()); err != nil || v.lost != nil || !strings.HasPrefix(v.why, "nobody could make one now: ") {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := g.look(t.Context()); err != nil || v.lost == nil { // what was in the way is removed
		t.Errorf("%+v, %v", v, err)
	}
}

// TestNoCopy: a program that makes pulls is not put back because no copy of it can be kept. The one before stays the
// one that puts itself back when another one comes, until there is room.
func TestNoCopy(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	limits := Limits{Within: time.Nanosecond}
	g := h.guard(limits, never)
	full := filepath.Join(h.state, "program/.pullet.part/x") // no copy can be begun
	if err := os.MkdirAll(full, 0o700); err != nil {
		t.Fatal(err)
	}
	h.is("new")
	h.runs("new")
	for range 2 {
		if err := h.Confirm("v2", limits); !errors.As(err, new(*KeepError)) {
			t.Errorf("a copy was kept: %v", err)
		}
	}
	if unproven, err := h.Unproven(); unproven || err != nil {
		t.Errorf("the new program is unproven: %v, %v", unproven, err)
	}
	h.runs("old") // the guard
	if err := g.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "new")
	h.want(filepath.Join(h.state, "program/pullet"), "old")
	p, err := h.Proven()
	if err != nil {
		t.Fatal(err)
	}
	if waits, err := h.Waiting(p); waits || err != nil {
		t.Errorf("the new program waits: %v, %v", waits, err)
	}
	h.is("bad")
	if err := g.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want(h.Path, "old")
	h.is("new")
	h.runs("new")
	if err := errors.Join(os.RemoveAll(filepath.Dir(full)), h.Confirm("v2", limits)); err != nil {
		t.Fatal(err)
	}
	h.want(filepath.Join(h.state, "program/pullet"), "new")
}

// TestConfirmWritesOnce: pulls that come at nearly the same pace do not write the record again and again; another pace
// is written.
func TestConfirmWritesOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	record := filepath.Join(h.state, "program/proven.json")
	inode := func(limits Limits) uint64 {
		t.Helper()
		if err := h.Confirm("v1", limits); err != nil {
			t.Fatal(err)
		}
		f, err := identify(record)
		if err != nil {
			t.Fatal(err)
		}
		return f.Inode
	}
	first := inode(Limits{15*time.Minute + 45*time.Second, 2 * time.Hour})
	if again := inode(Limits{15*time.Minute + 51*time.Second, 2 * time.Hour}); again != first {
		t.Error("nearly the same pace is written")
	}
	for _, other := range []Limits{{time.Hour, 2 * time.Hour}, {time.Hour, 4 * time.Hour}} {
		inode(other)
		if p, err := h.Proven(); err != nil || p.Limits != other {
			t.Errorf("%+v, %v; want %+v", p, err, other)
		}
	}
}

// TestLostCopy: the copy of the proven program is made again when somebody removed it, and what it lacks is said.
func TestLostCopy(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := errors.Join(h.First("v1", Limits{}), h.Lacks()); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(h.state, "program/pullet")
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	if err := h.Lacks(); err == nil || !strings.Contains(err.Error(), "is gone: the next pull makes it") {
		t.Errorf("a copy that is gone: %v", err)
	}
	if err := errors.Join(h.Confirm("v1", Limits{}), h.Lacks()); err != nil {
		t.Fatal(err)
	}
	h.want(copied, "old")
}

// TestStays: a program that somebody starts from elsewhere is not the installed one while that is there.
func TestStays(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	elsewhere := at(h.Path+".new", h.state, h.self)
	for _, c := range []struct {
		now  func() error
		want bool
	}{
		{func() error { return nil }, true}, // nothing is known
		{func() error { return h.First("v1", Limits{}) }, false},
		{func() error { return os.Remove(h.Path) }, true},
	} {
		if err := c.now(); err != nil {
			t.Fatal(err)
		}
		if got, err := elsewhere.Stays(); got != c.want || err != nil {
			t.Errorf("elsewhere is where pullet is installed: %v, %v; want %v", got, err, c.want)
		}
		if got, err := h.Stays(); !got || err != nil {
			t.Errorf("the installed file is where pullet is installed: %v, %v", got, err)
		}
	}
}

// TestDamagedRecord: a record that does not say what it should is said, and no program is judged by it.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	g := h.guard(Limits{Within: time.Nanosecond}, never)
	h.is("new")
	if err := os.WriteFile(filepath.Join(h.state, "program/proven.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := g.Watch(t.Context()); err == nil || !strings.Contains(err.Error(), "proven.json is damaged") {
		t.Errorf("a damaged record: %v", err)
	}
	h.want(h.Path, "new")
}
