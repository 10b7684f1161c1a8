package claim

import (
	"path"
	"slices"
)

// Contradiction is two claims of different steps that cannot both hold.
type Contradiction struct {
	First, Second int // the steps, by their numbers; the first one is less
	A, B          Claim
}

// Against returns in words what the second claim stands against.
func (c Contradiction) Against() string {
	text := c.A.Text()
	switch {
	case c.A.Name != c.B.Name:
		return text + " of " + c.A.Name
	case text == c.B.Text():
		return "another " + text
	}
	return text
}

// MostCompared bounds how many wants of one host are compared with each other.
const MostCompared = 2_000_000

// Find compares the claims of all steps and yields the pairs that contradict each other, those of the steps' own
// properties first. It ends early when yield returns false. It reports whether everything was compared.
func Find(steps [][]Claim, yield func(Contradiction) bool) (all bool) {
	f := &finder{groups: map[property]*group{}, yield: yield}
	known := homes(steps)
	for i, claims := range steps {
		for _, c := range claims {
			if c, ok := c.placed(known); ok {
				f.add(i, c)
			}
		}
	}
	for _, g := range f.order {
		if !f.within(g) {
			return !f.spent()
		}
	}
	for _, g := range f.order {
		if !f.above(g) {
			break
		}
	}
	return !f.spent()
}

// property is what claims are compared on.
type property struct{ kind, name, aspect string }

// group is the claims on one property, by their wants.
type group struct {
	property
	wants []*wanted
	byKey map[string]*wanted
}

// wanted is one want and the claims that have it.
type wanted struct {
	claims []Claim
	steps  []int
}

// finder compares the claims of one host.
type finder struct {
	groups   map[property]*group
	order    []*group
	yield    func(Contradiction) bool
	compared int
}

func (f *finder) spent() bool { return f.compared > MostCompared }

func (f *finder) add(step int, c Claim) {
	p := property{c.Kind, c.Name, c.Aspect}
	g := f.groups[p]
	if g == nil {
		g = &group{property: p, byKey: map[string]*wanted{}}
		f.groups[p] = g
		f.order = append(f.order, g)
	}
	key := c.want.key()
	w := g.byKey[key]
	if w == nil {
		w = &wanted{}
		g.byKey[key] = w
		g.wants = append(g.wants, w)
	}
	w.claims, w.steps = append(w.claims, c), append(w.steps, step)
}

// within compares the claims on one property. It is false when no more are to be compared.
func (f *finder) within(g *group) bool {
	for i, a := range g.wants {
		if !f.agree(a, a) && !f.pairs(a, a) {
			return false
		}
		for _, b := range g.wants[i+1:] {
			if !f.agree(a, b) && !f.pairs(a, b) {
				return false
			}
			if f.spent() {
				return false
			}
		}
	}
	return true
}

// agree compares two wants, and counts what that costs.
func (f *finder) agree(a, b *wanted) bool {
	one, other := a.claims[0].want, b.claims[0].want
	f.compared++
	for _, w := range []want{one, other} {
		if text, ok := w.(block); ok {
			f.compared += len(text.lines)
		}
	}
	return agree(one, other)
}

// above finds what keeps a path from being there: a path above it that is absent, or a file.
func (f *finder) above(g *group) bool {
	if g.kind != fileKind || !slices.ContainsFunc(g.wants, func(w *wanted) bool { return w.claims[0].exists() }) {
		return true
	}
	for dir := path.Dir(g.name); dir != "/" && dir != "."; dir = path.Dir(dir) {
		f.compared++
		over := f.groups[property{fileKind, dir, g.aspect}]
		if over == nil {
			continue
		}
		for _, w := range over.wants {
			if !w.claims[0].closes() {
				continue
			}
			for _, in := range g.wants {
				if in.claims[0].exists() && !f.pairs(w, in) {
					return false
				}
			}
		}
	}
	return !f.spent()
}

// pairs yields the steps of two wants.
func (f *finder) pairs(a, b *wanted) bool {
	for i, first := range a.steps {
		for j, second := range b.steps {
			one := Contradiction{first, second, a.claims[i], b.claims[j]}
			if first > second {
				one = Contradiction{second, first, b.claims[j], a.claims[i]}
			}
			f.compared++
			if first == second || a == b && i > j {
				continue
			}
			if !f.yield(one) {
				return false
			}
		}
	}
	return true
}
