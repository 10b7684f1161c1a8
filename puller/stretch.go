package puller

import (
	"container/heap"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// The places of commits outside a stretch.
const (
	atBase  = -1 // the base
	atOlder = -2 // another trusted commit, or nothing where there is a base
)

// stretch is the part of a history that is new to a base. Commits have places: parents come before their children.
type stretch struct {
	base    plumbing.Hash // zero: none, so that the history starts at nothing
	tree    plumbing.Hash // of the base
	commits []*link
	place   map[plumbing.Hash]int
	parents [][]int // by place: the places of the parents
	based   []bool  // by place: the base is in the history
}

// stretch sorts the new commits of a history that leads to one of them.
func (s *store) stretch(base, to plumbing.Hash, commits map[plumbing.Hash]*link) (*stretch, error) {
	r := &stretch{base: base, place: map[plumbing.Hash]int{}}
	if !base.IsZero() {
		c, err := s.commit(base)
		if err != nil {
			return nil, err
		}
		r.tree = c.TreeHash
	}
	if start := commits[to]; start != nil {
		r.commits = parentsFirst(start, commits)
	}
	for i, c := range r.commits {
		r.place[c.id] = i
		parents := []int{r.at(plumbing.ZeroHash)}[:1-min(1, len(c.parents))] // nothing, if there are none
		for _, id := range c.parents {
			parents = append(parents, r.at(id))
		}
		r.parents = append(r.parents, parents)
		r.based = append(r.based, slices.ContainsFunc(parents, r.has))
	}
	return r, nil
}

// at returns the place of a commit, which is in the stretch or trusted.
func (r *stretch) at(id plumbing.Hash) int {
	if place, ok := r.place[id]; ok {
		return place
	}
	if id == r.base {
		return atBase
	}
	return atOlder
}

// has reports whether the base is in the history of a place.
func (r *stretch) has(at int) bool { return at == atBase || at >= 0 && r.based[at] }

// apart returns the places that only the history of some places has, and those that only the history of another one
// has.
func (r *stretch) apart(some []int, other int) (onlySome, onlyOther map[int]bool) {
	const both = 3
	reached := map[int]int{}
	queue := &places{}
	open := 0 // in the queue that not both have reached
	reach := func(at, who int) {
		was, known := reached[at]
		now := was | who
		if at < 0 || was == now {
			return
		}
		reached[at] = now
		switch {
		case !known:
			heap.Push(queue, at)
			if now != both {
				open++
			}
		case now == both:
			open--
		}
	}
	for _, at := range some {
		reach(at, 1)
	}
	reach(other, 2)
	only := [both]map[int]bool{1: {}, 2: {}}
	for open > 0 {
		at := heap.Pop(queue).(int)
		who := reached[at]
		if who != both {
			open--
			only[who][at] = true
		}
		for _, parent := range r.parents[at] {
			reach(parent, who)
		}
	}
	return only[1], only[2]
}

// places is a heap of places, the latest first.
type places []int

func (p places) Len() int           { return len(p) }
func (p places) Less(i, j int) bool { return p[i] > p[j] }
func (p places) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *places) Push(at any)       { *p = append(*p, at.(int)) }
func (p *places) Pop() any {
	old := *p
	last := old[len(old)-1]
	*p = old[:len(old)-1]
	return last
}

// parentsFirst returns a commit and those of its history that are among some commits.
func parentsFirst(c *link, among map[plumbing.Hash]*link) (all []*link) {
	done := map[plumbing.Hash]bool{}
	stack := []*link{c}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		ready := true
		for _, id := range top.parents {
			if parent := among[id]; parent != nil && !done[id] {
				stack, ready = append(stack, parent), false
			}
		}
		if !ready {
			continue
		}
		stack = stack[:len(stack)-1]
		if !done[top.id] {
			done[top.id] = true
			all = append(all, top)
		}
	}
	return all
}
