package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// canaries is the group of the nodes that go first, front one of several roles.
const (
	canaries = render.CanaryGroup
	front    = "front"
)

// release is what one version of the repository says: the rules of its rollout, and the steps.
type release struct {
	id      string
	limits  map[string]int // of groups; a negative number is a percentage
	total   int
	canary  bool
	first   string            // how the names of its canaries end
	front   []string          // roles that are one group
	moved   map[string]string // nodes that have another role than before
	soak    time.Duration
	onLost  string
	failing int // failures that a group survives
	faulty  int // host faults that it survives
	within  time.Duration
	depends map[string][]string
	steps   []*task

	tree fstest.MapFS // its files
}

// task is a step of a release.
type task struct {
	name       string
	roles      []string // that have it
	takes      time.Duration
	fails      float64 // how likely
	faults     float64 // how likely by a fault of the host
	sync       bool
	serialize  int // nodes at a time; 0 is any
	late       bool
	target     int           // nodes that take it for all; 0 is each for itself
	maxAge     time.Duration // of its result; 0 is any
	repeatable bool
	once       bool  // in the fleet's life
	reads      *task // whose result it needs
	apart      bool  // no other step requires it: where it fails, the run goes on, and may wait
}

func (s *task) of(role string) bool { return slices.Contains(s.roles, role) }

// role is a node's under a release.
func (r *release) role(node, role string) string { return cmp.Or(r.moved[node], role) }

// has reports that a node takes a step.
func (r *release) has(s *task, node, role string) bool { return s.of(r.role(node, role)) }

// group is where a node takes its turns under a release.
func (r *release) group(node, role string) string {
	if r.canary && strings.HasSuffix(node, r.first) {
		return canaries
	}
	return r.home(node, role)
}

// home is the group of a node's role: a canary counts there, too.
func (r *release) home(node, role string) string {
	return r.mapped(state.GroupOf(r.role(node, role)))
}

// mapped is the group of a role.
func (r *release) mapped(role string) string {
	if slices.Contains(r.front, role) {
		return front
	}
	return role
}

// before are the groups that must be through before a group.
func (r *release) before(group string) []string {
	if group == canaries {
		return nil
	}
	var out []string
	for role, first := range r.depends {
		for _, other := range first {
			if other = r.mapped(other); r.mapped(role) == group && other != group && !slices.Contains(out, other) {
				out = append(out, other)
			}
		}
	}
	slices.Sort(out)
	if r.canary {
		out = append(out, canaries)
	}
	return out
}

// waitsForCanaries: newer commits wait for canaries that can ever be through.
func (r *release) waitsForCanaries() bool { return r.canary && r.limit(canaries, 1) > 0 }

func (r *release) stage(group string) int {
	stage := 0
	for _, g := range r.before(group) {
		stage = max(stage, r.stage(g)+1)
	}
	return stage
}

// limit is how many of a group may change at a time.
func (r *release) limit(group string, roster int) int {
	n, set := r.limits[group]
	switch {
	case !set:
		return 1
	case n < 0:
		return max(1, roster*-n/100)
	}
	return n
}

// staged names a step with those who come to it in one stage.
func (r *release) staged(s *task, node, role string) lock.Step {
	stage := r.stage(r.group(node, role))
	return lock.Step{ID: s.name, Stage: fmt.Sprint(stage), Members: func(other string, m state.Member) (bool, string) {
		group := r.group(other, m.Role)
		switch {
		case !r.has(s, other, m.Role) || r.stage(group) != stage:
			return false, ""
		case r.limit(group, 1) == 0:
			return false, "frozen"
		}
		return true, ""
	}}
}

// fixed is a release whose steps do not fail and whose roles are not frozen.
func (r *release) fixed(id string) *release {
	out := &release{
		id: id, limits: map[string]int{}, total: r.total, canary: r.canary, first: r.first, front: r.front, moved: r.moved, soak: r.soak, onLost: r.onLost,
		failing: r.failing, faulty: r.faulty, within: r.within, depends: r.depends,
	}
	for g, n := range r.limits {
		if n != 0 {
			out.limits[g] = n
		}
	}
	for _, s := range r.steps {
		if s.target == 0 && s.reads == nil {
			one := *s
			one.fails, one.faults = 0, 0
			out.steps = append(out.steps, &one)
		}
	}
	return out
}

// fleet is a fleet with its repository, as a seed draws it.
type fleet struct {
	seed  uint64
	rng   *rand.Rand
	began time.Time
	c     *etcdmodel.Cluster
	roles []string
	hosts []*host
	disks string // where the hosts' directories are

	ctx     context.Context // of the hosts
	running sync.WaitGroup  // they run
	clones  []*host         // copies of hosts, under their names
	weather []fit           // whether etcd is well

	mu       sync.Mutex // guards what follows
	releases []*release // the head of the repository is the last
	coming   []*release // that will be committed
	calm     bool       // nothing fails any more
	log      []event
	broken   []string // promises, as agents find out
}

// event is something that a node did to itself.
type event struct {
	at      time.Time
	host    *host // nil: it happens to the node, or to all
	node    string
	rollout string
	version string
	group   string
	step    *task
	what    string // start, ok, failed, skipped, cut off, read
	value   string // that was read
	fence   int64
	gated   bool // under a turn
	stage   int
}

func (f *fleet) record(e event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.at = time.Now()
	f.log = append(f.log, e)
}

// breaks notes a promise that was broken.
func (f *fleet) breaks(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.broken) < 5 {
		f.broken = append(f.broken, fmt.Sprintf("%s: ", f.clock())+fmt.Sprintf(format, args...))
	}
}

func (f *fleet) clock() time.Duration { return time.Since(f.began) }

func (f *fleet) isCalm() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calm
}

// head is the newest release, and find one by its version.
func (f *fleet) head() *release {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.releases[len(f.releases)-1]
}

func (f *fleet) push(r *release) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.releases = append(f.releases, r)
}

func (f *fleet) find(id string) *release {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.releases {
		if r.id == id {
			return r
		}
	}
	return nil
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{disks: disks(t), seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), began: time.Now()}
	f.c = etcdmodel.New(rand.New(rand.NewPCG(seed, 2)))
	f.roles = []string{"app", "db", "web"}[:1+f.rng.IntN(3)]
	for _, role := range f.roles {
		for n := range 1 + f.rng.IntN(5) {
			f.hosts = append(f.hosts, newHost(f, fmt.Sprint(role, n), role, len(f.hosts)))
		}
	}
	for n := range 2 + f.rng.IntN(3) {
		f.coming = append(f.coming, f.draw(commit(n+1)))
	}
	f.pushNext()
	return f
}

// pushNext commits what was drawn to be committed.
func (f *fleet) pushNext() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.releases, f.coming = append(f.releases, f.coming[0]), f.coming[1:]
}

// draw makes a release.
func (f *fleet) draw(id string) *release {
	rng := f.rng
	r := &release{
		id: id, limits: map[string]int{}, depends: map[string][]string{},
		onLost: []string{lock.Hold, lock.Release, lock.Fail}[rng.IntN(3)], failing: rng.IntN(3) * rng.IntN(2),
	}
	for _, role := range append(slices.Clone(f.roles), canaries) {
		switch rng.IntN(6) {
		case 0, 1, 2:
			r.limits[role] = 1 + rng.IntN(3)
		case 3:
			r.limits[role] = -(10 + rng.IntN(80))
		case 4:
			r.limits[role] = rng.IntN(2) // sometimes frozen
		}
	}
	for i, role := range f.roles {
		if i > 0 && rng.IntN(2) == 0 {
			r.depends[role] = []string{f.roles[rng.IntN(i)]}
		}
	}
	if rng.IntN(3) == 0 {
		r.total = 1 + rng.IntN(3)
	}
	if rng.IntN(3) == 0 {
		r.canary, r.soak = true, time.Duration(rng.IntN(3))*2*time.Minute
	}
	if rng.IntN(3) == 0 {
		r.within = time.Duration(3+rng.IntN(15)) * time.Minute
	}
	f.drawGroups(r)
	f.drawSteps(r)
	return r
}

// drawGroups makes groups differ from version to version: who the canaries are, roles that are one group, nodes that
// change their role.
func (f *fleet) drawGroups(r *release) {
	rng := rand.New(rand.NewPCG(f.seed, 300+uint64(len(f.coming)))) // of its own: what else a seed draws stays
	r.first, r.moved = "0", map[string]string{}
	if rng.IntN(2) == 0 {
		r.first = fmt.Sprint(rng.IntN(3))
	}
	if at := rng.IntN(6); at+1 < len(f.roles) { // neighbours: others might come to wait for each other
		r.front, r.limits[front] = f.roles[at:at+2], 1+rng.IntN(3)
	}
	if h := f.hosts[rng.IntN(len(f.hosts))]; rng.IntN(3) == 0 {
		r.moved[h.name] = f.roles[rng.IntN(len(f.roles))]
	}
	for role, first := range r.depends { // what validate refuses
		if !f.has(r, role) || !f.has(r, first[0]) || r.mapped(role) == r.mapped(first[0]) {
			delete(r.depends, role)
		}
	}
}

// has reports that a node has a role under a release.
func (f *fleet) has(r *release, role string) bool {
	return slices.ContainsFunc(f.hosts, func(h *host) bool { return r.role(h.name, h.role) == role })
}

// drawSteps gives each role a few steps, and sometimes all of them one in common.
func (f *fleet) drawSteps(r *release) {
	rng := f.rng
	fails := 0.0
	if rng.IntN(2) == 0 {
		fails = 0.05
	}
	faults := 0.0
	if f.seed%3 == 0 { // not drawn: the other seeds stay what they were
		faults, r.faulty = 0.05, int(f.seed/3%3)
	}
	shared := &task{name: "all/sync", roles: f.roles, sync: true, repeatable: true, takes: 2 * time.Second}
	common := len(f.roles) > 1 && rng.IntN(3) == 0
	at := rng.IntN(3)
	for first, role := range f.roles {
		if f.seed%4 == 1 { // not drawn: the other seeds stay what they were
			r.steps = append(r.steps, &task{
				name: role + "-apart/step", roles: []string{role}, repeatable: true, apart: true, fails: 0.1, takes: 3 * time.Second,
			})
		}
		n := 2 + rng.IntN(4)
		for i := range n {
			s := &task{name: fmt.Sprint(role, "/step", i), roles: []string{role}, repeatable: true, fails: fails, faults: faults}
			s.takes = time.Duration(1+rng.IntN(40_000_000)) * time.Microsecond
			if (f.seed+uint64(i))%7 == 0 { // longer than a lease
				s.takes *= 6
			}
			switch rng.IntN(8) {
			case 0, 1:
				s.sync = true
			case 2:
				s.serialize = 1 + rng.IntN(2)
				s.late = rng.IntN(3) == 0
			case 3:
				s.target, s.repeatable = 1+rng.IntN(2), rng.IntN(2) == 0
				s.once = !s.repeatable && (f.seed+uint64(i))%3 == 0 // not drawn: what else a seed draws stays
				if s.repeatable && (f.seed+uint64(i))%2 == 0 {      // as above
					s.maxAge = 10 * time.Minute
				}
				reader := &task{name: s.name + "-reader", roles: s.roles, repeatable: true, reads: s, takes: time.Second, sync: rng.IntN(4) == 0}
				r.steps = append(r.steps, s, reader)
				continue
			}
			r.steps = append(r.steps, s)
			if common && first == 0 && i == at {
				r.steps = append(r.steps, shared)
			}
		}
	}
}

// disks is a directory for the hosts of a fleet: in memory, where the machine has that.
func disks(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "pullet-simulation")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
