package state

import (
	"math"

	"github.com/pullet/pullet/internal/safetext"
)

func (c *Cursor) check(Key) error {
	var check checks
	check.unless(c.Revision >= 0, "its revision is %d", c.Revision)
	check.unless(c.By == "" || safetext.Name(c.By), "%s is no host", quoted(c.By))
	check.count("done", c.Done, MaxOutbox)
	check.count("page", c.Page, math.MaxInt32)
	check.count("first", c.First, math.MaxInt32)
	check.times(c.Clock.At)
	return check.err
}

func (p *Page) limit() int { return maxBig }

func (p *Page) check(Key) error {
	var c checks
	c.times(p.At, p.Clock)
	c.unless(len(p.Events) <= MaxPage, "it has %d events", len(p.Events))
	for i := range p.Events {
		e := &p.Events[i]
		c.also(e.Check())
		c.times(e.Last)
		c.count("count", e.Count, math.MaxInt32)
		c.nodes(e.From)
		c.unless(len(e.IDs) <= MaxIDs, "it has too many ids")
		lines(e.IDs)
	}
	return c.err
}

func (g *Group) limit() int { return maxBig }

func (g *Group) check(k Key) error {
	var c checks
	c.unless(GroupHash(g.Reaction, g.Event) == k.Hash, "it is about another reaction than its key")
	c.also(CheckEventName(g.Event))
	line(&g.Reaction)
	c.unless(len(g.Tallies) <= maxTallies, "it has %d tallies", len(g.Tallies))
	c.count("dropped", g.Dropped, math.MaxInt32)
	for i := range g.Tallies {
		c.tally(&g.Tallies[i])
	}
	return c.err
}

func (c *checks) tally(t *Tally) {
	if t.Host != "" {
		c.node(t.Host)
	}
	c.unless(len(t.Seen) <= MaxSeen && len(t.IDs) <= MaxIDs, "a tally has too much in it")
	for _, seen := range t.Seen {
		c.times(seen.At)
		c.count("n", seen.N, math.MaxInt32)
	}
	c.times(t.Ready, t.Reacted, t.Next)
	c.nodes(t.Hosts)
	lines(t.Unknown)
	lines(t.IDs)
	line(&t.Why)
	if t.Last != nil {
		c.also(t.Last.Check())
	}
}

func (t *Told) check(Key) error {
	var c checks
	c.unless(len(*t) <= MaxTold, "it has %d entries, of %d at most", len(*t), MaxTold)
	for hash, at := range *t {
		c.unless(hexOf(hash, 20), "%s is no digest", quoted(hash))
		c.times(at)
	}
	return c.err
}
