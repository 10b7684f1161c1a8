package puller

import (
	"container/heap"
	"context"
	"errors"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Relation says how one head stands to another.
type Relation int

// The relations of a head to another one that it is compared with.
const (
	Unknown  Relation = iota // the other commit is not to be found
	Same                     // the same commit
	Newer                    // a descendant, or a higher version
	Older                    // an ancestor, or a lower version
	Diverged                 // neither; or the same tag on another commit
)

// String is the relation in lower case, for messages.
func (r Relation) String() string {
	switch r {
	case Same:
		return "same"
	case Newer:
		return "newer"
	case Older:
		return "older"
	case Diverged:
		return "diverged"
	}
	return "unknown"
}

// errCut says that an answer needs commits that the store does not have.
var errCut = errors.New("the history in the store is not complete")

// relate compares commits: what to is, seen from from. It returns errCut with
// the answer that holds if the missing history changes nothing.
func (s *store) relate(ctx context.Context, from, to plumbing.Hash) (Relation, error) {
	if from == to {
		return Same, nil
	}
	newer, err := s.contains(ctx, to, from)
	if newer || err != nil && !errors.Is(err, errCut) {
		return Newer, err
	}
	older, err2 := s.contains(ctx, from, to)
	if older || err2 != nil && !errors.Is(err2, errCut) {
		return Older, err2
	}
	return Diverged, errors.Join(err, err2)
}

// contains says whether the history of a commit has another one. It walks from
// new to old, so it is quick when they are near; a no costs the whole history.
func (s *store) contains(ctx context.Context, commit, wanted plumbing.Hash) (bool, error) {
	found, err := s.nearest(ctx, commit, []plumbing.Hash{wanted})
	return len(found) > 0, err
}

// nearest returns the one of some commits that a walk through the history of a commit from new to old meets first, or
// none.
func (s *store) nearest(ctx context.Context, commit plumbing.Hash, wanted []plumbing.Hash) ([]plumbing.Hash, error) {
	start, err := s.commit(commit)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, errCut
	}
	if err != nil {
		return nil, err
	}
	cut := error(nil)
	seen := map[plumbing.Hash]bool{commit: true}
	queue := &byTime{start}
	for queue.Len() > 0 {
		c := heap.Pop(queue).(*object.Commit)
		for _, id := range c.ParentHashes {
			if slices.Contains(wanted, id) {
				return []plumbing.Hash{id}, nil
			}
			if seen[id] {
				continue
			}
			seen[id] = true
			parent, err := s.commit(id)
			switch {
			case errors.Is(err, plumbing.ErrObjectNotFound):
				cut = errCut
			case err != nil:
				return nil, err
			default:
				heap.Push(queue, parent)
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return nil, cut
}

// byTime is a heap of commits, newest first.
type byTime []*object.Commit

func (q byTime) Len() int           { return len(q) }
func (q byTime) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }
func (q byTime) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byTime) Push(c any)        { *q = append(*q, c.(*object.Commit)) }
func (q *byTime) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// relateTags compares versions; ok is false where a tag is missing or no
// version, and ancestry has to decide.
func (s Source) relateTags(from, to Head) (rel Relation, ok bool) {
	a, b := s.version(from.Tag), s.version(to.Tag)
	if !s.tagged() || a == nil || b == nil {
		return Unknown, false
	}
	switch {
	case from.Commit == to.Commit:
		return Same, true
	case from.Tag == to.Tag:
		return Diverged, true
	case s.newer(to.Tag, from.Tag):
		return Newer, true
	}
	return Older, true
}
