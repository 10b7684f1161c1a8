package puller

import (
	"cmp"
	"fmt"
	"slices"
)

// decision is a content of a path with the place of the commit that decided on it.
type decision struct {
	at      int
	content leaf
}

// standing is a commit's content at a path, and the decisions that count there: those that no later one replaced.
type standing struct {
	content leaf
	heads   []decision
	wrong   error // an *UnverifiedError; nil if the content is that of one of the heads
}

// inherited is what a commit finds at a path.
type inherited struct {
	content leaf // of the commit
	parents []*standing
	heads   []decision // of the parents together
	known   []decision // of each parent, also if another one replaced it
}

// look returns what a commit finds at a path.
func (c *contents) look(m *merge, path string) (*inherited, error) {
	found := &inherited{}
	for i, p := range m.parents {
		s, err := c.at(p, path)
		if err != nil {
			return nil, err
		}
		found.parents, found.known = append(found.parents, s), append(found.known, s.heads...)
		if i == 0 {
			found.heads = s.heads
		} else {
			found.heads = c.join(m, i, found.heads, s.heads)
		}
	}
	ch, changed := m.changed[path]
	var err error
	switch {
	case changed:
		found.content = ch.after
	case m.changed != nil:
		found.content = found.parents[0].content
	default:
		found.content, err = c.trees.leaf(m.tree, path)
	}
	return found, err
}

// standing determines how a commit stands at a path.
func (c *contents) standing(m *merge, path string) (*standing, error) {
	found, err := c.look(m, path)
	if err != nil {
		return nil, err
	}
	own := &standing{content: found.content, heads: found.heads}
	if !found.disputed() {
		if own.heads[0].at == atOlder {
			own.heads = []decision{{atOlder, own.content}}
		}
		return own, nil
	}
	var refused error
	if found.decidable() {
		if refused = c.may(m, path); refused == nil {
			own.heads = []decision{{m.at, own.content}}
			return own, nil
		}
	}
	if found.matches(found.heads) {
		return own, nil
	}
	undecided := unverified(c.commits[min(m.at, len(c.commits)-1)].id, "", fmt.Errorf(
		"has a content of %q that nobody decided on who may change it", path))
	own.wrong = cmp.Or(refused, found.parents[0].wrong, undecided)
	for _, p := range found.parents { // one of them brought it
		if p.wrong != nil && p.content == own.content {
			own.wrong = p.wrong
			break
		}
	}
	return own, nil
}

// matches reports whether one of some decisions has the content of the commit.
func (f *inherited) matches(some []decision) bool {
	return slices.ContainsFunc(some, func(d decision) bool { return d.content == f.content })
}

// disputed reports whether a head has another content than the commit. Of several older contents one is enough.
func (f *inherited) disputed() bool {
	if f.heads[0].at == atOlder && f.matches(f.heads) {
		return false
	}
	return slices.ContainsFunc(f.heads, func(d decision) bool { return d.content != f.content })
}

// decidable reports whether a commit can decide on its content: a real change of its first parent, or the choice of a
// decision. What its first parent has without a decision stays that.
func (f *inherited) decidable() bool { return f.content != f.parents[0].content || f.matches(f.known) }

// join returns the decisions that count where two histories meet: those of each that the other one did not replace.
// a is the join for the parents before i, b is of parent i. Older contents count only beside nothing else.
func (c *contents) join(m *merge, i int, a, b []decision) []decision {
	if slices.Equal(a, b) {
		return a
	}
	before := m.parents[:i]
	only := &sides{}
	if slices.ContainsFunc(slices.Concat(a, b), func(d decision) bool { return d.at >= 0 }) {
		only = m.split(c.stretch, i)
	}
	basedA := slices.ContainsFunc(before, func(p version) bool { return p.based })
	var joined []decision
	keep := func(own, others []decision, only map[int]bool, based bool) {
		for _, d := range own {
			replaced := d.at >= 0 && !only[d.at] || d.at == atBase && based
			if (slices.Contains(others, d) || !replaced) && !slices.Contains(joined, d) {
				joined = append(joined, d)
			}
		}
	}
	keep(a, b, only.before, m.parents[i].based)
	keep(b, a, only.own, basedA)
	if slices.ContainsFunc(joined, func(d decision) bool { return d.at != atOlder }) {
		joined = slices.DeleteFunc(joined, func(d decision) bool { return d.at == atOlder })
	}
	return joined
}

// split returns the places that only the parents before one, or only that one, have in their histories.
func (m *merge) split(r *stretch, i int) *sides {
	if m.apart == nil {
		m.apart = make([]*sides, len(m.parents))
	}
	if m.apart[i] == nil {
		var places []int
		for _, p := range m.parents[:i] {
			places = append(places, p.at)
		}
		m.apart[i] = &sides{}
		m.apart[i].before, m.apart[i].own = r.apart(places, m.parents[i].at)
	}
	return m.apart[i]
}
