package state

import (
	"fmt"
	"math"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

func (n *Node) check(k Key) error {
	var c checks
	if n.Name != k.Node {
		return errOtherNode
	}
	c.err = safetext.Labels(n.Labels)
	c.word("role", n.Role)
	c.version(n.Running)
	c.times(n.FirstSeen, n.LastSeen)
	c.count("format", n.Format, maxFormat)
	c.unless(len(n.Boots) <= maxList, "it has %d boots, of %d at most", len(n.Boots), maxList)
	for _, boot := range n.Boots {
		c.unless(len(boot) <= maxText && !safetext.Obeyed(boot), "%s is not one line", quoted(boot))
	}
	line(&n.Agent, &n.UUID)
	return c.err
}

func (a *Alive) check(Key) error {
	var c checks
	for _, text := range []string{a.Instance, a.Owner, a.Machine, a.Boot} {
		c.unless(len(text) <= maxText && !safetext.Obeyed(text), "%s is not one line", quoted(text))
	}
	line(&a.Host)
	c.times(a.Booted)
	return c.err
}

func (g *gone) check(Key) error {
	var c checks
	line(&g.By)
	c.times(g.Time)
	return c.err
}

func (s *Status) check(Key) error {
	var c checks
	c.version(s.Version)
	c.word("run", s.Run)
	c.times(s.Time, s.Since, s.Until)
	c.unless(len(s.Holders) <= maxList, "it waits for %d nodes, of %d at most", len(s.Holders), maxList)
	for i := range s.Holders {
		c.holder(&s.Holders[i])
	}
	c.unless(len(s.Depends) <= maxList, "it comes after %d groups, of %d at most", len(s.Depends), maxList)
	lines(s.Depends)
	if s.Ahead != "" {
		c.node(s.Ahead)
	}
	c.unless(s.known(), "%s is no end of a wait", quoted(string(s.Ends)))
	line(&s.Release, &s.Reason, &s.Clear, &s.Gate, &s.Halt, &s.Log, &s.Step, &s.Unknown)
	if s.Digest != nil {
		c.digest(s.Digest)
	}
	return c.err
}

// holder checks a node that others wait for. One whose claim cannot be read has no name.
func (c *checks) holder(h *Holder) {
	if h.Node != "" {
		c.node(h.Node)
	}
	c.times(h.Since)
	c.unless(len(h.Took) <= maxList, "it started %d steps, of %d at most", len(h.Took), maxList)
	line(&h.Step, &h.Off, &h.Election)
	lines(h.Took)
}

func (c *checks) digest(d *Digest) {
	c.unless(len(d.Counts) <= 20, "it counts %d outcomes, of 20 at most", len(d.Counts))
	for outcome, n := range d.Counts {
		c.word("outcome", outcome)
		c.count("steps", n, math.MaxInt32)
	}
	c.unless(d.Seconds >= 0 && d.Seconds < 1e9, "%v seconds is absurd", d.Seconds)
	line(&d.Failed)
}

func (s *Service) check(k Key) error {
	c := serviceChecks(s)
	c.unless(
		s.DNS == "" || safetext.Host(s.DNS) && strings.HasPrefix(s.DNS, strings.ToLower(k.Node+"."+k.Service+".service.")),
		"%s is not its name in DNS",
		quoted(s.DNS),
	)
	return c.err
}

// Check says what is wrong with an instance that is to be announced.
func (s Service) Check() error { return serviceChecks(&s).err }

func serviceChecks(s *Service) *checks {
	c := &checks{}
	c.unless(
		s.Address == "" || safetext.Address(s.Address),
		"%s is neither an IP address nor the name of a host",
		quoted(s.Address),
	)
	c.unless(len(s.Addresses) <= maxList, "it has %d interfaces, of %d at most", len(s.Addresses), maxList)
	for name, all := range s.Addresses {
		c.unless(safetext.Interface(name), "%s is no name of an interface", quoted(name))
		c.addresses(name, all)
	}
	c.count("port", s.Port, 65535)
	c.unless(len(s.Tags) <= 100, "it has %d tags, of 100 at most", len(s.Tags))
	for _, tag := range s.Tags {
		c.unless(
			len(tag) <= 253 && !safetext.Obeyed(tag),
			"the tag %s is not one line of 253 letters at most",
			quoted(tag),
		)
	}
	c.times(s.Announced, s.Ready)
	line(&s.Why)
	return c
}

// addresses checks those of one interface: a list, or one.
func (c *checks) addresses(name string, all any) {
	if list, ok := all.([]any); ok {
		c.unless(len(list) <= maxList, "interface %s has %d addresses, of %d at most", name, len(list), maxList)
		for _, one := range list {
			text, ok := one.(string)
			c.unless(ok && safetext.Address(text), "interface %s: %s is no address", name, quoted(fmt.Sprint(one)))
		}
		return
	}
	if list, ok := all.([]string); ok { // before it was written
		for _, text := range list {
			c.unless(safetext.Address(text), "interface %s: %s is no address", name, quoted(text))
		}
		return
	}
	text, ok := all.(string)
	c.unless(ok && safetext.Address(text), "interface %s: %s is no address", name, quoted(fmt.Sprint(all)))
}

// Facts are what a node published of itself.
type Facts map[string]any

func (f *Facts) decode(value []byte) error {
	if string(value) == "null" { // a node without facts
		return nil
	}
	return unpackJSON(value, (*map[string]any)(f))
}

func (f *Facts) check(Key) error {
	var c checks
	c.facts("", map[string]any(*f))
	return c.err
}

// facts checks all texts and keys in a value.
func (c *checks) facts(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		c.unless(len(v) <= maxList, "%s has %d facts, of %d at most", path, len(v), maxList)
		for key, one := range v {
			c.unless(safetext.Word(key), "%s is no name of a fact", quoted(key))
			c.facts(path+"."+key, one)
		}
	case []any:
		c.unless(len(v) <= maxList, "%s has %d values, of %d at most", path, len(v), maxList)
		for _, one := range v {
			c.facts(path, one)
		}
	case string:
		c.unless(len(v) <= maxText && !safetext.Obeyed(v), "the fact %s is not one line of %d letters at most",
			strings.TrimPrefix(path, "."), maxText)
	}
}
