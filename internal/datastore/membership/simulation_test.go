package membership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSimulation plays a cluster under Next in virtual time, with faults of hosts, networks, disks and controllers, and
// with wants that change. A seed that fails is played again by its name: -run TestSimulation/SEED.
func TestSimulation(t *testing.T) {
	seeds := 1000
	if testing.Short() {
		seeds = 300
	}
	seen := map[Kind]int{}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSimulation(t, uint64(seed))
			s.storm()
			s.calm()
			for kind, n := range s.done {
				seen[kind] += n
			}
		})
	}
	for _, kind := range []Kind{Add, Promote, Remove, Lead} {
		if seen[kind] < seeds/5 && !t.Failed() {
			t.Errorf("only %d steps %s: the simulation shows little", seen[kind], kind)
		}
	}
}

type simulation struct {
	t      *testing.T
	seed   uint64
	random *rand.Rand
	*controller
	late []order // decided before, and not carried out
	done map[Kind]int
	log  []string
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	random := rand.New(rand.NewPCG(seed, 1))
	var machines []*machine
	for i := range 3 + random.IntN(6) {
		m := &machine{name: fmt.Sprintf("h%d", i+1), up: true, broken: i > 0 && random.IntN(8) == 0}
		if seed%2 == 0 {
			m.domain = fmt.Sprintf("rack%d", random.IntN(3))
		}
		machines = append(machines, m)
	}
	c := &controller{etcd: newEtcd(machines), failed: map[string]bool{}}
	c.count, c.eligible, c.moved = 1+2*random.IntN(3), machines, map[*machine]bool{}
	c.forget()
	return &simulation{t: t, seed: seed, random: random, controller: c, done: map[Kind]int{}}
}

func (s *simulation) one(in int) bool { return s.random.IntN(in) == 0 }

func (s *simulation) some() *machine { return s.machines[s.random.IntN(len(s.machines))] }

func (s *simulation) note(format string, a ...any) {
	s.log = append(s.log, s.now.String()+" "+fmt.Sprintf(format, a...))
}

// fail ends a simulation with what happened last.
func (s *simulation) fail(format string, a ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d: %s\n%s\n%s", s.seed, fmt.Sprintf(format, a...), s, strings.Join(s.log[max(0, len(s.log)-40):], "\n"))
}

func (s *simulation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "count %d, committed %d:", s.count, s.committed)
	for _, p := range s.peers {
		fmt.Fprintf(&b, " %s", p.at.name)
		for mark, is := range map[string]bool{" leads": p == s.leader, " learner": p.learner, " silent": !p.answers()} {
			if is {
				b.WriteString(mark)
			}
		}
		fmt.Fprintf(&b, " %d;", p.have)
	}
	return b.String()
}

// storm lets faults happen, and new wants, after some rounds for the cluster to form.
func (s *simulation) storm() {
	for range s.random.IntN(40) {
		s.round(false)
	}
	for range 60 + s.random.IntN(200) {
		if s.one(8) {
			s.fault()
		}
		if s.one(25) {
			s.changeWants()
		}
		s.recover()
		s.round(true)
	}
}

func (s *simulation) fault() {
	m, other := s.some(), s.some()
	switch s.random.IntN(6) {
	case 0, 1:
		m.up = false
	case 2:
		m.lags = true
	case 3, 4:
		s.cuts[[2]*machine{m, other}] = true
		if s.one(2) {
			s.cuts[[2]*machine{other, m}] = true
		}
	case 5:
		s.loseDisk(m)
	}
	s.note("fault: %s", s)
}

// recover ends faults, some soon and some after a member is dead.
func (s *simulation) recover() {
	for _, m := range s.machines {
		m.up = m.up || s.one(25)
		m.lags = m.lags && !s.one(10)
	}
	if s.one(20) {
		clear(s.cuts)
	}
}

// loseDisk loses a disk where enough others are left: what no datastore survives needs a backup, not a controller.
func (s *simulation) loseDisk(m *machine) {
	before := m.disk
	m.disk = 0
	voters := s.voters()
	intact := slices.DeleteFunc(slices.Clone(voters), func(p *peer) bool { return !p.intact() })
	if len(intact) < quorum(len(voters)) || !s.safe() || s.change != nil {
		m.disk = before
	}
}

// changeWants changes what is wanted.
func (s *simulation) changeWants() {
	switch s.random.IntN(4) {
	case 0:
		s.count = []int{1, 3, 3, 5, 5}[s.random.IntN(5)]
	case 1:
		s.eligible = slices.Clone(s.machines)
		s.random.Shuffle(len(s.eligible), func(i, j int) { s.eligible[i], s.eligible[j] = s.eligible[j], s.eligible[i] })
		s.eligible = s.eligible[:len(s.eligible)/2+s.random.IntN(len(s.eligible)/2+1)]
	case 2:
		m := s.some()
		s.moved[m] = !s.moved[m]
	case 3:
		clear(s.moved)
	}
	s.note("wants: %d of %d hosts, %d moved", s.count, len(s.eligible), len(s.moved))
}

// round is what happens between two looks of the controller. In a storm it may act late, and forget.
func (s *simulation) round(storm bool) order {
	s.now += round
	s.tick(s.random.IntN(3))
	s.check()
	if s.leader == nil {
		return order{}
	}
	if storm && s.one(50) {
		s.forget()
	}
	is := s.look()
	o := s.decide(is)
	s.fits(is, o.Step)
	s.late = append(s.late[max(0, len(s.late)-4):], o)
	how := ""
	if storm && s.one(6) {
		how = "late "
		o = s.late[s.random.IntN(len(s.late))]
		for range s.random.IntN(3) {
			s.fault()
		}
		s.tick(1)
		s.check()
	}
	s.perform(o, how)
	return o
}

// perform carries a step out. Whatever it is and however late it comes, it changes one member and keeps the quorum.
func (s *simulation) perform(o order, how string) {
	before, available := s.members(), s.available()
	err := s.carryOut(o)
	if o.Kind != Wait {
		s.note("%s%s %s (%s): %v", how, o.Kind, o.Node, o.Why, err)
	}
	if err == nil {
		s.done[o.Kind]++
	}
	changed := 0
	after := s.members()
	for name := range before {
		if after[name] != before[name] {
			changed++
		}
	}
	for name := range after {
		if before[name] == 0 {
			changed++
		}
	}
	if changed > 1 {
		s.fail("%d members changed in one step", changed)
	}
	if available && !s.available() {
		s.fail("%s %s took the quorum away", o.Kind, o.Node)
	}
	s.check()
}

// members are the members by host, with what tells voters from learners.
func (s *simulation) members() map[string]int {
	out := map[string]int{}
	for _, p := range s.peers {
		out[p.at.name] = 2 * p.id
		if p.learner {
			out[p.at.name]++
		}
	}
	return out
}

// check holds what is true at each time.
func (s *simulation) check() {
	if n := len(s.voters()); n == 0 || len(s.peers)-n > MaxLearners {
		s.fail("%d voters, %d learners", n, len(s.peers)-n)
	}
	if s.lost {
		s.fail("the leader does not have what counted")
	}
	if !s.safe() {
		s.fail("a quorum may not have what counted")
	}
}

// fits holds what is true of a step that is carried out at once.
func (s *simulation) fits(is Cluster, step Step) {
	if wrong := unfit(is, step); wrong != "" {
		s.fail("%s %s (%s): %s: %+v", step.Kind, step.Node, step.Why, wrong, is)
	}
}

// calm ends all faults: then the cluster becomes what is wanted, in few steps, and stays so.
func (s *simulation) calm() {
	s.heal()
	const patience = 8 * time.Hour
	steps, end := 0, s.now+patience
	for last := (order{Step: Step{Why: "not begun"}}); last.Step != (Step{}) || s.leader == nil; {
		if s.now > end {
			s.fail("it does not end: %s", last.Why)
		}
		last = s.round(false)
		if last.Kind != Wait {
			steps++
		}
	}
	if steps > 60 {
		s.fail("it took %d steps", steps)
	}
	for _, p := range s.peers {
		if p.learner || !slices.Contains(s.eligible, p.at) || s.moved[p.at] || !p.answers() {
			s.fail("%s is a member", p.at.name)
		}
	}
	if len(s.peers) != s.count {
		s.fail("%d members", len(s.peers))
	}
	for range 50 {
		if o := s.round(false); o.Step != (Step{}) {
			s.fail("it was at rest: %+v", o)
		}
	}
}

// heal ends all faults but those of hosts that never come back, as long as enough others are left.
func (s *simulation) heal() {
	clear(s.cuts)
	spare := -s.count
	good := func(m *machine) bool { return !m.broken && !s.moved[m] && slices.Contains(s.eligible, m) }
	for _, m := range s.machines {
		if m.lags = false; good(m) {
			spare++
		}
	}
	for _, m := range s.machines {
		if spare < 0 && !m.broken && !good(m) {
			spare++
			delete(s.moved, m)
			if !slices.Contains(s.eligible, m) {
				s.eligible = append(s.eligible, m)
			}
		}
	}
	for ; spare < 0; spare++ {
		m := &machine{name: fmt.Sprintf("new%d", -spare)}
		s.machines, s.eligible = append(s.machines, m), append(s.eligible, m)
	}
	for _, m := range s.machines {
		// Voters that lost their disk may stay away, and any other host but voters with a disk.
		p := s.at(m.name)
		m.up = true
		if p == nil || p.learner || !p.intact() {
			if dies := spare > 0 && s.one(3); dies && good(m) {
				m.up = false
				spare--
			}
		}
	}
	s.note("calm: %s", s)
}
