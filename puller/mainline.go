package puller

import (
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// advance is one step of the line of first parents, as if it had been pulled alone: the commit, and those that it
// merged. All of them are held against who may sign behind the commit that the step starts at.
type advance struct {
	from    plumbing.Hash // the first parent; zero: none
	commits []*link       // parents first; the last one is the step's own
}

// advances sorts new commits into the steps that lead to one of them, oldest first.
func advances(to plumbing.Hash, commits map[plumbing.Hash]*link) (steps []advance) {
	var line []*link
	for at := commits[to]; at != nil; at = commits[firstParent(at)] {
		line = append(line, at)
	}
	done := map[plumbing.Hash]bool{}
	for _, c := range slices.Backward(line) {
		steps = append(steps, advance{from: firstParent(c), commits: reach(c, commits, done)})
	}
	return steps
}

func firstParent(c *link) plumbing.Hash {
	if len(c.parents) == 0 {
		return plumbing.ZeroHash
	}
	return c.parents[0]
}

// reach are the commits in the history of one that are not done yet, parents first.
func reach(
	c *link, commits map[plumbing.Hash]*link, done map[plumbing.Hash]bool,
) (all []*link) {
	stack := []*link{c}
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		ready := true
		for _, id := range top.parents {
			if parent := commits[id]; parent != nil && !done[id] {
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
