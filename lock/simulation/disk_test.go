package simulation

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// machine is where a disk is.
type machine struct {
	id     string
	dir    uint64 // the inode of the state directory
	boots  int
	booted time.Time
}

// going is a command that a step runs. It may outlive pullet.
type going struct {
	step     event
	until    time.Time
	survives bool
}

// runs notes the command of a step, and ended that it is over.
func (h *host) runs(e event, takes time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.command = &going{e, time.Now().Add(takes), h.luck.IntN(2) == 0}
}

func (h *host) ended() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.command = nil
}

// orphans leaves the command of a process that is killed to itself, or ends it.
func (h *host) orphans() {
	if c := h.command; c != nil && (h.gone || len(h.wrecks) > 0 || !c.survives) {
		h.cutOff()
	}
}

// cutOff ends the command that runs. It holds mu of the host.
func (h *host) cutOff() {
	if c := h.command; c != nil && time.Now().Before(c.until) {
		c.step.what = "cut off"
		h.fleet.record(c.step)
	}
	h.command = nil
}

// orphaned is until when a command runs whose pullet was killed.
func (h *host) orphaned() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.command == nil {
		return time.Time{}
	}
	return h.command.until
}

// wreck lets something happen to the disk while the host is down: nothing that runs there outlives it.
func (h *host) wreck(do func(h *host)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrecks = append(h.wrecks, do)
	h.cutOff()
	if h.proc != nil {
		h.proc.die()
	}
}

// wrecked does it, where no process is in the way. It holds mu of the host.
func (h *host) wrecked() {
	for _, do := range h.wrecks {
		do(h)
		h.machine.boots, h.machine.booted = h.machine.boots+1, time.Now()
	}
	h.wrecks = nil
}

// What happens to disks.

func boots(*host) {}

func reinstalled(h *host) {
	h.state = h.fleet.directory("reinstalled")
	h.machine.dir += 1000
}

func journalLost(h *host) {
	for _, name := range []string{"journal.jsonl", "done.json"} {
		h.fleet.must(os.RemoveAll(filepath.Join(h.state, name)))
	}
}

func reverted(h *host) {
	if h.backup.dir != "" {
		h.state = h.fleet.copied(h.backup.dir)
	}
}

func moved(h *host) {
	h.machine.id, h.machine.dir = h.machine.id+"'", h.machine.dir+1000
}

// backup is a copy of a disk.
type backup struct {
	wanted bool // at the next arrow
	dir    string
}

// backsUp has the disk copied at the next arrow: in the middle of whatever runs then.
func (h *host) backsUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.backup.wanted = true
}

// copies makes the copy. It holds mu of the host.
func (h *host) copies() {
	if h.backup.wanted {
		h.backup = backup{dir: h.fleet.copied(h.state)}
	}
}

// clone is another machine with a copy of a host's disk, under the same name. Nil: nothing was copied.
func (h *host) clone(how int) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.backup.dir == "" {
		return nil
	}
	other := newHost(h.fleet, h.name, h.role, 60+h.class)
	other.state, other.machine = h.fleet.copied(h.backup.dir), h.machine
	other.machine.booted = time.Now()
	switch how {
	case 0:
		other.machine.id += " copy"
		fallthrough
	case 1:
		other.machine.dir += 2000
	}
	return other
}

// directory is a new directory of the fleet.
func (f *fleet) directory(name string) string {
	dir, err := os.MkdirTemp(f.disks, name+".")
	f.must(err)
	return dir
}

// copied is a copy of a directory. A file that came into its place meanwhile, under another name, is copied there.
func (f *fleet) copied(dir string) string {
	for {
		out := f.directory("copy")
		err := os.CopyFS(out, os.DirFS(dir))
		if !errors.Is(err, fs.ErrNotExist) {
			f.must(err)
			return out
		}
	}
}

// must notes a fault of the simulation itself.
func (f *fleet) must(err error) {
	if err != nil {
		panic(err)
	}
}

// fit is that a host is well from a time on, or not.
type fit struct {
	at   time.Time
	well bool
}

// feels notes how the host is. It holds mu of the host.
func (h *host) feels(well bool) { h.fitness = append(h.fitness, fit{time.Now(), well}) }

// well reports that a host ran pullet, and reached etcd, from one time to another.
func (h *host) well(from, to time.Time) bool {
	well := false
	for _, f := range h.fitness {
		if !f.at.After(from) {
			well = f.well
		} else if f.at.Before(to) && !f.well {
			return false
		}
	}
	return well
}

// accidents draw what happens to disks, and to that of etcd.
func (f *fleet) accidents(o *operator) []act {
	var out []act
	rng := rand.New(rand.NewPCG(f.seed, 400))
	upTo := func(d time.Duration) time.Duration {
		return time.Duration(1+rng.Int64N(int64(d/time.Microsecond))) * time.Microsecond
	}
	for range rng.IntN(5) {
		h, at, later := f.hosts[rng.IntN(len(f.hosts))], upTo(storm-10*time.Minute), upTo(8*time.Minute)
		add := func(name string, at time.Duration, do func()) { out = append(out, act{at, name, h.name, do}) }
		switch rng.IntN(8) {
		case 0:
			add("reinstall", at, func() { h.wreck(reinstalled) })
		case 1:
			add("lose the journal", at, func() { h.wreck(journalLost) })
		case 2, 3:
			add("copy the disk", at, h.backsUp)
			add("revert the disk", at+later, func() { h.wreck(reverted) })
		case 4:
			add("copy the disk", at, h.backsUp)
			how, lasts := rng.IntN(3), upTo(10*time.Minute)
			var other *host
			add("clone", at+later, func() { other = f.joins(h.clone(how)) })
			add("clone ends", at+later+lasts, func() { f.leaves(other) })
		case 5:
			add("move", at, func() { h.wreck(moved) })
		case 6:
			add("boot", at, func() { h.wreck(boots) })
		case 7:
			var then int64
			add("back up etcd", at, func() { then = f.c.Revision() })
			add("restore etcd", at+later/2, func() { f.c.Restore(then) })
			add("accept etcd", at+later/2+upTo(8*time.Minute), func() { o.try(o.accept) })
		}
	}
	return out
}

// joins lets a clone in.
func (f *fleet) joins(h *host) *host {
	if h != nil {
		f.clones = append(f.clones, h)
		f.running.Go(func() { h.run(f.ctx) })
	}
	return h
}

func (f *fleet) leaves(h *host) {
	if h != nil {
		h.leave(0)
		h.kill()
	}
}
