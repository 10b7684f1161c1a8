package apply

import (
	"context"
	"path"
	"sync"

	"github.com/pullet/pullet/apply/hostfile"
)

// atMostGrouped bounds the steps of one group: each has a few files open.
const atMostGrouped = 256

// Preparer is implemented by actions that can put a new file beside its place first: the run makes the files of many
// steps durable at once before each gets its name.
type Preparer interface {
	Action
	// Prepares is the path that the action is about, if these parameters allow it: CheckAt looks at that path alone and
	// runs nothing. Else it is "".
	Prepares() string
	// CheckAt is Check at the entry of that path, and how the change is prepared that it found. A nil Prepare with a
	// change says that the change cannot be prepared: the step is checked and applied alone, behind the group, and the
	// change may say no more than that there is one.
	CheckAt(h *Host, at *hostfile.Entry) (Change, Prepare, error)
}

// Prepare does what Apply does, but for what others can see. The entry that was looked at is still open.
type Prepare func(ctx context.Context) (*Prepared, error)

// Prepared is a change that nobody sees yet.
type Prepared struct {
	New   *hostfile.Candidate // the file that it is going to be, durable before Place; nil: only owner or mode change
	Place func() error        // makes the change, which need not be durable when Place returns
	Drop  func()              // lets go of the new file, after Place or instead of it
}

// group is steps whose new files become durable together: a disk makes hundreds durable in the time of one. Steps may
// belong to it that come after each other only because their file says so. They wait in it with what they prepared.
// When no more come, the files of all are made durable, and each step goes on in its turn.
type group struct {
	// The schedule's own:
	probing    map[*boundStep]bool // steps that may belong to it and do not know yet
	turns      []*turn             // those that wait in it, or for it
	full       bool                // a step outside the group waits for it: no other step joins
	unfinished map[*boundStep]bool // those that have not ended

	gate onceOnly // whether the steps may change the host: they do it within the moments that one step may take

	mu    sync.Mutex
	shut  bool
	err   error // why the files are not durable
	files []*hostfile.Candidate
	at    map[hostfile.Place]bool
	paths map[string]bool
}

func newGroup() *group {
	return &group{
		probing:    map[*boundStep]bool{},
		unfinished: map[*boundStep]bool{},
		at:         map[hostfile.Place]bool{},
		paths:      map[string]bool{},
	}
}

// add takes what a step prepared into the group. It is false when no more are taken.
func (g *group) add(at *hostfile.Entry, p *Prepared) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	if p.New != nil {
		g.files = append(g.files, p.New)
	}
	g.at[at.Place()], g.paths[at.Path()] = true, true
	return true
}

// close takes no more steps.
func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// empty reports that no step prepared anything.
func (g *group) empty() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.paths) == 0
}

// meets reports that a step of the group is about to change an entry, or what was a directory on the way to it.
func (g *group) meets(at hostfile.Place, name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.at[at] {
		return true
	}
	for dir := path.Dir(path.Clean(name)); dir != "/"; dir = path.Dir(dir) {
		if g.paths[dir] {
			return true
		}
	}
	return false
}

// mayGroup reports a step that may belong to a group: nothing but the host's files depends on what comes of it before
// the run settles.
func (x *execution) mayGroup(s *boundStep) bool {
	if s.prepares == "" || x.plan {
		return false
	}
	if s.job.Conditions.When == nil {
		return true
	}
	select {
	case <-x.answers[s.job].done:
		return true
	default: // the condition may look at the host
		return false
	}
}

// groupable is the path that a step is about whose options allow it to be one of a group; "" where they do not.
func (s *boundStep) groupable() string {
	o, c := s.Options, s.Conditions
	act, ok := s.act.(Preparer)
	waits := s.Waits() || s.late || c.When != nil || c.Success != nil || c.Continue != nil || o.Retry != nil
	_, reacts := s.act.(Reactor)
	if !ok || reacts || waits || s.tells() || o.FailHard || s.job.Validation || s.doneKey("", "") != "" ||
		len(s.needs["prereq"]) > 0 {
		return ""
	}
	return act.Prepares()
}

// seen is what a step of a group found at its path.
type seen struct {
	at *hostfile.Entry // open where there is something to prepare
	// it cannot be one of the group: another of its steps is about to change the path, or the change cannot be prepared
	alone   bool
	gone    bool // nothing is there
	change  Change
	prepare Prepare
}

// mates are the steps that a step is made with.
type mates struct {
	s     *running
	batch *batch // those that are made together with this one; nil: none, or it came or left
	group *group // those whose files become durable together with its own; nil: none
	seen  *seen  // what it found as one of them, until it is changed; nil: nothing
}

// inspect compares the step with the host. One that cannot be in its group after all waits until the others have their
// turn, and looks again.
func (m *mates) inspect(ctx context.Context) (Change, error) {
	if m.group == nil {
		return m.s.step.compare(ctx, m.s.x.options.Host)
	}
	found, err := m.group.check(ctx, m.s)
	switch {
	case err != nil:
		return Change{}, err
	case found.alone:
		m.s.schedule.leave(m.s.place)
		m.group = nil
		return m.s.step.compare(ctx, m.s.x.options.Host)
	}
	m.seen = found
	return found.change, nil
}

// letGo closes what the step looked at and did not change.
func (m *mates) letGo() {
	if m.seen != nil {
		m.seen.at.Close()
		m.seen = nil
	}
}

// grouped prepares a change as one of the step's group. When the files of all are durable, the step goes on with what
// remains.
func (m *mates) grouped(ctx context.Context, change Change) {
	at, prepare := m.seen.at, m.seen.prepare
	m.seen = nil // from here on it belongs to who prepares, and may hang
	closed := sync.OnceFunc(func() { at.Close() })
	p, err := inline(ctx, m.s, "change", func() (*Prepared, error) {
		p, err := prepare(m.s.live(ctx))
		if err != nil {
			closed()
		}
		return p, err
	}, func(p *Prepared) {
		if p != nil {
			p.Drop()
		}
		closed()
	}, func(hung error) { m.s.abandon(ctx, hung) })
	if err != nil {
		m.s.cameOf(ctx, change, Output{}, err)
		return
	}
	one := &member{m.s, ctx, change, at, p, sync.OnceFunc(func() { p.Drop(); closed() })}
	if g := m.group; g.add(at, p) {
		m.s.remaining = func() {
			one.place(g.err)
			m.s.ended()
		}
		return
	}
	g := newGroup() // it came too late: it is one of its own
	g.add(at, p)
	one.place(m.s.x.harden(m.s.run, g))
}

// member is a step of a group with the change that it prepared.
type member struct {
	s      *running
	ctx    context.Context // of the change
	change Change
	at     *hostfile.Entry
	new    *Prepared
	drop   func() // lets go of both
}

// place makes the change. The error is why the files of the group are not durable.
func (m *member) place(others error) {
	_, err := inline(m.ctx, m.s, "change", func() (struct{}, error) {
		defer m.drop()
		return struct{}{}, m.put(others)
	}, func(struct{}) { m.drop() }, func(hung error) { m.s.abandon(m.ctx, hung) })
	m.s.cameOf(m.ctx, m.change, Output{}, err)
}

// put puts in place what is durable, unless it could not be made so with the files of the others: whose fault that is
// shows when each is tried alone.
func (m *member) put(others error) error {
	if others != nil && m.new.New != nil {
		if err := m.new.New.Sync(); err != nil {
			return err
		}
	}
	if err := m.new.Place(); err != nil {
		return err
	}
	return m.changed()
}
