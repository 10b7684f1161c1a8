package puller

import (
	"context"
	"fmt"
	"slices"

	"github.com/pullet/pullet/internal/trust"
)

// maxGoverning bounds the commits of a stretch that decide who may sign and change what.
const maxGoverning = 1000

// governing are the commits of a stretch that decide who may sign and change what. Each counts for all commits that do
// not come before it, also for those beside it: so a branch from before a rule does not get around the rule.
type governing struct {
	*stretch
	decided []*ruling
	known   map[string][]int // see of
}

// ruling is a commit that governs.
type ruling struct {
	at            int
	paths         []string // on which it decides
	before, after bits     // the places in its history, and those that have it in theirs
}

// govern finds the commits of a stretch that govern. Each has to be allowed by those that its own history has, and by
// those beside it unless a later one settles that.
func (v *verifier) govern(ctx context.Context, r *stretch) (*governing, error) {
	const all = "" // no path: what counts there are the commits that govern
	g := &governing{stretch: r, known: map[string][]int{}}
	paths := v.authorities.paths()
	var c *contents
	c = newContents(r, v.trees, append([]string{all}, paths...), func(m *merge, _ string) error {
		found, err := c.look(m, all)
		if err != nil {
			return err
		}
		force := []int{}
		for _, d := range found.heads {
			force = append(force, max(d.at, atBase))
		}
		if !m.based {
			force = append(force, atBase)
		}
		for _, path := range paths { // it decides on all of them or on none
			found, err := c.look(m, path)
			if err == nil && found.disputed() {
				if err = v.may(r, m.at, force, path); err == nil && !found.decidable() {
					err = found.parents[0].wrong
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for at := range r.commits {
		if err := c.add(ctx, at); err != nil {
			return nil, err
		}
		own := &ruling{at: at}
		for _, path := range paths {
			if s := c.states[at][path]; s != nil && len(s.heads) == 1 && s.heads[0].at == at {
				own.paths = append(own.paths, path)
			}
		}
		if own.paths == nil {
			continue
		}
		if g.decided = append(g.decided, own); len(g.decided) > maxGoverning {
			return nil, unverified(r.commits[at].id, "", fmt.Errorf(
				"is the change %d of who may sign or of %s since the commit that was verified last",
				len(g.decided), trust.RulesFile))
		}
		c.states[at][all] = &standing{heads: []decision{{at: at}}}
	}
	for _, own := range g.decided {
		g.measure(own)
	}
	return g, v.agree(g)
}

// agree is an error where a ruling is not allowed by one beside it. A later ruling settles that: those before it all
// had to allow it.
func (v *verifier) agree(g *governing) error {
	for _, own := range g.decided {
		for _, beside := range g.of(own.at) {
			settled := slices.ContainsFunc(g.decided, func(later *ruling) bool {
				return own.after.has(later.at) && (beside == atBase && g.based[later.at] || beside >= 0 && later.before.has(beside))
			})
			for _, path := range own.paths {
				if err := v.may(g.stretch, own.at, []int{beside}, path); err != nil && !settled {
					return err
				}
			}
		}
	}
	return nil
}

// measure determines which commits come before a ruling and which after it.
func (g *governing) measure(own *ruling) {
	own.before, own.after = newBits(len(g.commits)), newBits(len(g.commits))
	own.before.set(own.at)
	for at := own.at; at >= 0; at-- {
		if !own.before.has(at) {
			continue
		}
		for _, parent := range g.parents[at] {
			if parent >= 0 {
				own.before.set(parent)
			}
		}
	}
	for at := own.at + 1; at < len(g.commits); at++ {
		for _, parent := range g.parents[at] {
			if parent == own.at || parent >= 0 && own.after.has(parent) {
				own.after.set(at)
			}
		}
	}
}

// of returns the places whose keys and rules count for a commit: the latest of all that do not come after it. A place
// behind all commits is that of the offered version.
func (g *governing) of(at int) []int {
	counts := newBits(len(g.decided))
	for i, own := range g.decided {
		if at >= len(g.commits) || !own.before.has(at) {
			counts.set(i)
		}
	}
	key := fmt.Sprint(counts)
	if known, ok := g.known[key]; ok {
		return known
	}
	var places []int
	var based bool
	for i, own := range g.decided {
		if !counts.has(i) {
			continue
		}
		based = based || g.based[own.at]
		replaced := false
		for j, later := range g.decided {
			replaced = replaced || counts.has(j) && own.after.has(later.at)
		}
		if !replaced {
			places = append(places, own.at)
		}
	}
	if !based {
		places = append(places, atBase)
	}
	g.known[key] = places
	return places
}

// governors returns who may sign, and change what, behind the commits at some places.
func (v *verifier) governors(r *stretch, places []int) (all []authority, err error) {
	for _, at := range places {
		id := r.base
		if at >= 0 {
			id = r.commits[at].id
		}
		who, err := v.authority(id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, who) {
			all = append(all, who)
		}
	}
	return all, nil
}

// may reports whether the signer of a commit may change a path, by the rules of some places.
func (v *verifier) may(r *stretch, at int, places []int, path string) error {
	all, err := v.governors(r, places)
	if err != nil {
		return err
	}
	c := r.commits[min(at, len(r.commits)-1)]
	for _, who := range all {
		if who.rules.Empty() && v.settled {
			continue
		}
		signer, err := v.signer(c, who.keys)
		if err == nil {
			err = unverified(c.id, "", who.rules.Allow(signer, path))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bits are a set of places.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }
