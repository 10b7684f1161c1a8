package membership

import (
	"errors"
	"slices"
)

// machine is a host of the model.
type machine struct {
	name, domain string
	up           bool
	lags         bool // its etcd answers and gets no entries
	broken       bool // it lives, and nobody reaches its etcd
	disk         int  // the member whose record it has; 0: none
}

// peer is a member of the modelled etcd. A host that is removed and added again is another one.
type peer struct {
	id      int
	at      *machine
	learner bool
	started bool
	have    int // how many entries of the log it has
}

// etcd is a model of a cluster: raft, one entry like the other, and what etcd v3.7 asks before it changes members.
type etcd struct {
	machines  []*machine
	cuts      map[[2]*machine]bool // from whom no connection comes to whom
	peers     []*peer
	ids       int
	leader    *peer // nil: none
	committed int   // how many entries count for good
	change    *change
	lost      bool // a leader does not have what counted
}

// change is one of members, on its way through the log.
type change struct {
	index int
	apply func()
}

func newEtcd(machines []*machine) *etcd {
	first := &peer{id: 1, at: machines[0], started: true, have: 200}
	machines[0].disk = 1
	return &etcd{machines: machines, cuts: map[[2]*machine]bool{}, peers: []*peer{first}, ids: 1, committed: 200}
}

func (e *etcd) voters() []*peer {
	return slices.DeleteFunc(slices.Clone(e.peers), func(p *peer) bool { return p.learner })
}

func (e *etcd) peer(id int) *peer {
	if i := slices.IndexFunc(e.peers, func(p *peer) bool { return p.id == id }); i >= 0 {
		return e.peers[i]
	}
	return nil
}

func (e *etcd) at(name string) *peer {
	if i := slices.IndexFunc(e.peers, func(p *peer) bool { return p.at.name == name }); i >= 0 {
		return e.peers[i]
	}
	return nil
}

func (p *peer) intact() bool { return p.at.disk == p.id }

func (p *peer) answers() bool { return p.at.up && !p.at.broken && p.intact() }

func (e *etcd) reaches(from, to *peer) bool {
	return from.answers() && to.answers() && !e.cuts[[2]*machine{from.at, to.at}]
}

// connected tells whether raft's messages pass, which takes both ways.
func (e *etcd) connected(a, b *peer) bool { return e.reaches(a, b) && e.reaches(b, a) }

// active is how many voters one of them is connected to, itself among them.
func (e *etcd) active(to *peer) (n int) {
	for _, p := range e.voters() {
		if p == to && p.answers() || p != to && e.connected(p, to) {
			n++
		}
	}
	return n
}

// available tells whether some voter is connected to a quorum.
func (e *etcd) available() bool {
	voters := e.voters()
	return slices.ContainsFunc(voters, func(p *peer) bool { return e.active(p) >= quorum(len(voters)) })
}

// safe tells whether each quorum of voters has one that kept all that counts.
func (e *etcd) safe() bool {
	without, voters := 0, e.voters()
	for _, p := range voters {
		if !p.intact() || p.have < e.committed {
			without++
		}
	}
	return without < quorum(len(voters))
}

// tick lets raft do a round: who comes starts, a leader is elected, gets writes, and hands them on.
func (e *etcd) tick(writes int) {
	for _, p := range e.peers {
		if p.at.up && !p.started {
			p.started, p.at.disk = true, p.id
		}
	}
	e.elect()
	if e.leader != nil {
		e.leader.have += writes
		e.replicate()
	}
}

// elect has the leader go who lost its quorum, and another one come who has what a quorum has.
func (e *etcd) elect() {
	voters := e.voters()
	if e.leader != nil && e.leader.answers() && slices.Contains(voters, e.leader) && e.active(e.leader) >= quorum(len(voters)) {
		return
	}
	e.leader = nil
	for _, candidate := range voters {
		votes := 0
		for _, p := range voters {
			if (p == candidate && p.answers() || e.connected(p, candidate)) && p.have <= candidate.have {
				votes++
			}
		}
		if votes >= quorum(len(voters)) {
			e.lead(candidate)
			return
		}
	}
}

// lead makes a voter the leader. What it does not have is no entry any more, and its first entry is its own.
func (e *etcd) lead(p *peer) {
	e.leader, e.lost = p, e.lost || p.have < e.committed
	for _, other := range e.peers {
		other.have = min(other.have, p.have)
	}
	if e.change != nil && e.change.index > p.have {
		e.change = nil
	}
	p.have++
}

// replicate hands the leader's entries on, and counts who has them.
func (e *etcd) replicate() {
	const most = 60 // in one round
	var have []int
	for _, p := range e.peers {
		if p != e.leader && e.connected(p, e.leader) && !p.at.lags {
			p.have = min(e.leader.have, p.have+most)
		}
		if !p.learner && (p == e.leader || e.connected(p, e.leader)) {
			have = append(have, p.have)
		}
	}
	slices.Sort(have)
	if q := quorum(len(e.voters())); len(have) >= q {
		e.committed = max(e.committed, have[len(have)-q])
	}
	if e.change != nil && e.committed >= e.change.index {
		apply := e.change.apply
		e.change = nil
		apply()
	}
}

// propose has a change go through the log. It may take effect later, or never.
func (e *etcd) propose(apply func()) {
	e.leader.have++
	e.change = &change{e.leader.have, apply}
	e.replicate()
}

var (
	errNoLeader  = errors.New("no leader")
	errUnderway  = errors.New("a change is under way")
	errUnhealthy = errors.New("unhealthy cluster")
	errLearners  = errors.New("too many learners")
	errNotReady  = errors.New("the learner is not ready")
	errUnknown   = errors.New("no such member")
)

// add adds a learner.
func (e *etcd) add(m *machine) error {
	switch {
	case len(e.peers)-len(e.voters()) >= MaxLearners:
		return errLearners
	case e.at(m.name) != nil:
		return errUnknown
	}
	e.propose(func() {
		e.ids++
		m.disk = 0
		e.peers = append(e.peers, &peer{id: e.ids, at: m, learner: true})
	})
	return nil
}

// promote promotes a learner. etcd does not ask whether it lives.
func (e *etcd) promote(p *peer) error {
	if !p.learner || !e.caughtUp(p) {
		return errNotReady
	}
	e.propose(func() { p.learner = false })
	return nil
}

func (e *etcd) caughtUp(p *peer) bool { return p.have*10 >= e.leader.have*9 }

// remove removes a member. Who takes that step looks just before whether a quorum of the others answers.
func (e *etcd) remove(p *peer) error {
	connected := p == e.leader || e.connected(p, e.leader)
	if !p.learner && connected && e.active(e.leader)-1 < quorum(len(e.voters())-1) {
		return errUnhealthy
	}
	e.propose(func() {
		e.peers = slices.DeleteFunc(e.peers, func(other *peer) bool { return other == p })
		if e.leader == p {
			e.leader = nil
		}
	})
	return nil
}

// transfer hands leadership to a voter that has all entries.
func (e *etcd) transfer(p *peer) error {
	if p.learner || !e.connected(p, e.leader) || p.have < e.leader.have {
		return errNotReady
	}
	e.lead(p)
	return nil
}
