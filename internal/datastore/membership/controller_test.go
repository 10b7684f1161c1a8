package membership

import (
	"slices"
	"time"
)

const (
	round        = 30 * time.Second
	replaceAfter = 10 * time.Minute
)

// wants is what the repository and the operators say.
type wants struct {
	count    int
	eligible []*machine
	moved    map[*machine]bool
}

// controller carries out what Next decides. It lives on the leader, so a new leader has a new one.
type controller struct {
	*etcd
	wants
	leads  *peer
	since  map[int]time.Duration // since when no other member reaches one
	failed map[string]bool       // on record: another leader reads it
	now    time.Duration
}

// order is a step, and the member that it is about: a host that is added again is another one.
type order struct {
	Step
	id int
}

// look is the cluster as the leader sees it: who of the members that it is connected to reaches whom.
func (c *controller) look() Cluster {
	if c.leads != c.leader {
		c.forget()
	}
	is := Cluster{Count: c.count, ReplaceAfter: replaceAfter}
	for _, p := range c.peers {
		is.Members = append(is.Members, Member{
			Node: p.at.name, Learner: p.learner, Leader: p == c.leader, Down: c.down(p),
			CaughtUp: p.learner && c.caughtUp(p), Moving: c.moved[p.at],
		})
	}
	for _, m := range c.eligible {
		is.Hosts = append(is.Hosts, Host{Node: m.name, Domain: m.domain, Ready: m.up && !c.moved[m], Failed: c.failed[m.name]})
	}
	return is
}

// forget is what a controller does that ends.
func (c *controller) forget() { c.leads, c.since = c.leader, map[int]time.Duration{} }

func (c *controller) down(p *peer) time.Duration {
	reached := slices.ContainsFunc(c.peers, func(other *peer) bool {
		return other != p && (other == c.leader || c.connected(other, c.leader)) && c.reaches(other, p)
	})
	since, away := c.since[p.id]
	switch {
	case reached || p == c.leader:
		delete(c.since, p.id)
		return 0
	case !away:
		since = c.now - time.Second
		c.since[p.id] = since
	}
	return c.now - since
}

// decide is what the controller does next.
func (c *controller) decide(is Cluster) order {
	step := Next(is)
	if p := c.at(step.Node); p != nil {
		return order{step, p.id}
	}
	return order{step, 0}
}

// carryOut carries a step out, maybe late, after it asked what etcd does not.
func (c *controller) carryOut(o order) error {
	if o.Kind == Wait {
		return nil
	}
	if c.leader == nil {
		return errNoLeader
	}
	if c.change != nil {
		return errUnderway
	}
	if o.Kind == Add {
		i := slices.IndexFunc(c.machines, func(m *machine) bool { return m.name == o.Node })
		return c.add(c.machines[i])
	}
	p := c.peer(o.id)
	if p == nil {
		return errUnknown
	}
	switch o.Kind {
	case Promote:
		return c.promoteLiving(p)
	case Lead:
		return c.transfer(p)
	default:
		return c.removeOther(p)
	}
}

func (c *controller) promoteLiving(p *peer) error {
	if !c.connected(p, c.leader) {
		return errNotReady
	}
	delete(c.failed, p.at.name)
	return c.promote(p)
}

func (c *controller) removeOther(p *peer) error {
	if p == c.leader {
		return errUnhealthy
	}
	if _, away := c.since[p.id]; away && p.learner {
		c.fails(p.at)
	}
	return c.remove(p)
}

// fails notes that a learner did not come. When each host that could come failed, it forgets that of the others.
func (c *controller) fails(m *machine) {
	c.failed[m.name] = true
	another := slices.ContainsFunc(c.eligible, func(m *machine) bool {
		p, away := c.at(m.name), false
		if p != nil {
			_, away = c.since[p.id]
		}
		return m.up && !c.moved[m] && !c.failed[m.name] && (p == nil || away)
	})
	if !another {
		c.failed = map[string]bool{m.name: true}
	}
}
