package puller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// state is where a commit's paths differ from the trusted commits in its history. Any other path has the content of the
// base, or, in a history without the base, of an older trusted commit.
type state map[string]*standing

// contents follows the contents of paths through a stretch. A commit decides on a path if its signer may change it, and
// if its content there differs from its first parent or is a choice between decisions of its parents. A content that
// nobody decided on is wrong, whatever parents lead to it.
type contents struct {
	*stretch
	trees *trees
	may   func(m *merge, path string) error // whether the signer of a commit may change a path
	only  []string                          // the paths to look at; nil: all

	states []state
	left   []int // children of a commit that are still to come
}

func newContents(r *stretch, t *trees, only []string, may func(*merge, string) error) *contents {
	c := &contents{stretch: r, trees: t, only: only, may: may}
	c.states, c.left = make([]state, len(r.commits)), make([]int, len(r.commits))
	for _, parents := range r.parents {
		for _, at := range parents {
			if at >= 0 {
				c.left[at]++
			}
		}
	}
	return c
}

// version is a commit, or what counts as one: nothing, or the offered commit merged into the base.
type version struct {
	at    int
	tree  plumbing.Hash
	based bool
	state state
}

// merge is a commit with its parents.
type merge struct {
	version
	parents []version
	changed map[string]change // from the first parent; nil: not known
	apart   []*sides          // by parent
}

// sides are the places that only one of two histories has.
type sides struct{ before, own map[int]bool }

// version returns the version at a place; id is the commit's.
func (c *contents) version(at int, id plumbing.Hash) (version, error) {
	switch {
	case at >= 0:
		return version{at, c.commits[at].tree, c.based[at], c.states[at]}, nil
	case at == atBase:
		return version{at: at, tree: c.tree, based: true}, nil
	case id.IsZero():
		return version{at: at}, nil
	}
	old, err := c.trees.store.commit(id)
	if err != nil {
		return version{}, err
	}
	return version{at: at, tree: old.TreeHash}, nil
}

// add determines the state of the commit at a place, whose parents were added before.
func (c *contents) add(ctx context.Context, at int) error {
	own := c.commits[at]
	m := &merge{version: version{at: at, tree: own.tree, based: c.based[at]}}
	for i, place := range c.parents[at] {
		id := plumbing.ZeroHash
		if len(own.parents) > 0 {
			id = own.parents[i]
		}
		parent, err := c.version(place, id)
		if err != nil {
			return err
		}
		m.parents = append(m.parents, parent)
	}
	if err := c.judge(ctx, m); atFault(err) {
		return unverified(own.id, "", fmt.Errorf("cannot be read: %w", err))
	} else if err != nil {
		return err
	}
	c.states[at] = m.state
	return nil
}

// offered returns the state of a commit that follows the base. One that was not built upon the base, such as one of a
// rewritten branch, counts as its signer's merge into the base: else contents of the base could go without a decision.
func (c *contents) offered(ctx context.Context, at int) (state, error) {
	own, err := c.version(at, c.commits[at].id)
	if err != nil || own.based {
		return own.state, err
	}
	base, err := c.version(atBase, c.base)
	if err != nil {
		return nil, err
	}
	m := &merge{version: version{at: len(c.commits), tree: own.tree, based: true}, parents: []version{base, own}}
	c.left[at]++
	err = c.judge(ctx, m)
	return m.state, err
}

// inherit returns a copy of the first parent's state. It gives up the states of parents without further children.
func (c *contents) inherit(m *merge) state {
	for _, p := range m.parents {
		if p.at >= 0 {
			c.left[p.at]--
		}
	}
	first := m.parents[0]
	if first.state == nil {
		return state{}
	}
	if first.at >= 0 && c.left[first.at] > 0 {
		return maps.Clone(first.state)
	}
	return first.state
}

// judge determines the state of a commit from its parents.
func (c *contents) judge(ctx context.Context, m *merge) error {
	paths, err := c.paths(ctx, m)
	if err != nil {
		return err
	}
	judged := state{}
	for path := range paths {
		if judged[path], err = c.standing(m, path); err != nil {
			return err
		}
	}
	m.state = c.inherit(m)
	for path, s := range judged {
		if c.plain(m, s) {
			delete(m.state, path)
		} else {
			m.state[path] = s
		}
	}
	for _, p := range m.parents {
		if p.at >= 0 && c.left[p.at] == 0 {
			c.states[p.at] = nil
		}
	}
	if len(m.state) > maxPaths {
		return contentError{text: fmt.Sprintf("more changed paths than the limit of %d", maxPaths)}
	}
	return nil
}

// plain reports whether a state need not hold a standing, because it is that of every other path.
func (c *contents) plain(m *merge, s *standing) bool {
	usual := atOlder
	if m.based {
		usual = atBase
	}
	return s.wrong == nil && len(s.heads) == 1 && s.heads[0].at == usual
}

// paths returns the paths at which a commit can stand in another way than its first parent.
func (c *contents) paths(ctx context.Context, m *merge) (map[string]bool, error) {
	paths := map[string]bool{}
	if c.only != nil {
		for _, path := range c.only {
			paths[path] = true
		}
		return paths, nil
	}
	first := m.parents[0]
	var err error
	if m.changed, err = c.trees.changed(ctx, first.tree, m.tree); err != nil {
		return nil, err
	}
	for path := range m.changed {
		paths[path] = true
	}
	if len(m.parents) == 1 {
		return paths, nil
	}
	for _, p := range m.parents {
		for path, s := range p.state {
			if !m.agree(path, s) {
				paths[path] = true
			}
		}
	}
	if m.based && !first.based {
		fromBase, err := c.trees.changed(ctx, c.tree, m.tree)
		if err != nil {
			return nil, err
		}
		for path := range fromBase {
			paths[path] = true
		}
	}
	return paths, nil
}

// agree reports whether all parents stand the same way at a path that the commit does not change.
func (m *merge) agree(path string, s *standing) bool {
	if _, changed := m.changed[path]; changed {
		return false
	}
	return !slices.ContainsFunc(m.parents, func(p version) bool { return p.state[path] != s })
}

// at returns how a version stands at a path.
func (c *contents) at(v version, path string) (*standing, error) {
	if s := v.state[path]; s != nil {
		return s, nil
	}
	from := decision{at: atOlder}
	tree := v.tree
	if v.based {
		from.at, tree = atBase, c.tree
	}
	var err error
	from.content, err = c.trees.leaf(tree, path)
	return &standing{content: from.content, heads: []decision{from}}, err
}
