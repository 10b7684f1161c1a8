package puller

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// newCommits finds the commits that are in the history of one and not in that of the trusted ones. It goes from new to
// old in both histories at once, so it reads little where they are near. Dates can be wrong, and whoever signs commits
// chooses theirs: so it reads all of the trusted history unless it is clear without dates that no new commit is in it.
type newCommits struct {
	store *store
	seen  map[plumbing.Hash]*visit
	queue byVisit
	open  int  // visits in the queue that are not of the trusted history
	cut   bool // the store lacks a part of the trusted history
}

// link is a commit's place in history: without its text, because a history can be long.
type link struct {
	id      plumbing.Hash
	parents []plumbing.Hash
	tree    plumbing.Hash
	when    time.Time // of the committer
}

func linkOf(c *object.Commit) *link {
	return &link{c.Hash, c.ParentHashes, c.TreeHash, c.Committer.When}
}

// visit is a commit that was met.
type visit struct {
	commit  *link
	trusted bool
	queued  bool
}

// commitsSince returns the new commits by their ids. The last of the trusted ones is the one that they most likely
// follow. It returns errCut where the store lacks history that is needed.
func (s *store) commitsSince(
	ctx context.Context, to plumbing.Hash, trusted []plumbing.Hash,
) (map[plumbing.Hash]*link, error) {
	u := &newCommits{store: s, seen: map[plumbing.Hash]*visit{}}
	for _, base := range trusted {
		if err := u.meet(base, true); err != nil {
			return nil, err
		}
	}
	if err := u.meet(to, false); err != nil {
		return nil, err
	}
	for u.open > 0 {
		if err := errors.Join(ctx.Err(), u.next()); err != nil {
			return nil, err
		}
	}
	if len(trusted) > 0 && !u.clear(trusted[len(trusted)-1]) {
		for u.queue.Len() > 0 {
			if err := errors.Join(ctx.Err(), u.next()); err != nil {
				return nil, err
			}
		}
		if u.cut && s.shallow() {
			return nil, errCut
		}
	}
	found := map[plumbing.Hash]*link{}
	for id, v := range u.seen {
		if !v.trusted {
			found[id] = v.commit
		}
	}
	return found, nil
}

// clear reports whether every way back from a new commit leads to the base. Then none of them is in its history.
func (u *newCommits) clear(base plumbing.Hash) bool {
	for _, v := range u.seen {
		if v.trusted {
			continue
		}
		if len(v.commit.parents) == 0 {
			return false
		}
		for _, id := range v.commit.parents {
			if id != base && u.seen[id].trusted {
				return false
			}
		}
	}
	return true
}

// next goes on behind the newest commit in the queue.
func (u *newCommits) next() error {
	v := heap.Pop(&u.queue).(*visit)
	v.queued = false
	if !v.trusted {
		u.open--
	}
	for _, parent := range v.commit.parents {
		if err := u.meet(parent, v.trusted); err != nil {
			return err
		}
	}
	return nil
}

// meet queues a commit that is new, or that turns out to be of the trusted history.
func (u *newCommits) meet(id plumbing.Hash, trusted bool) error {
	v := u.seen[id]
	switch {
	case v == nil:
		c, err := u.store.commit(id)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			if trusted {
				u.cut = true
				return nil
			}
			return errCut
		}
		if err != nil {
			return err
		}
		v = &visit{commit: linkOf(c), trusted: trusted}
		u.seen[id] = v
	case v.trusted || !trusted:
		return nil
	default:
		v.trusted = true
		if v.queued {
			u.open--
			return nil
		}
	}
	v.queued = true
	heap.Push(&u.queue, v)
	if !trusted {
		u.open++
	}
	return nil
}

// byVisit is a heap of visits, the newest commit first.
type byVisit []*visit

func (q byVisit) Len() int { return len(q) }
func (q byVisit) Less(i, j int) bool {
	return q[i].commit.when.After(q[j].commit.when)
}
func (q byVisit) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *byVisit) Push(v any)   { *q = append(*q, v.(*visit)) }
func (q *byVisit) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
