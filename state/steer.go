package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNoVersion says that nothing was ever rolled out.
var ErrNoVersion = errors.New("the fleet has no version yet: the first pull that compiles sets it")

// Halt halts the current rollout by hand: no group admits anybody. It reports the version, and false when it was halted
// already.
func (s *Versions) Halt(ctx context.Context, by, reason string) (*Version, bool, error) {
	current, rev, err := s.Current(ctx)
	if err != nil {
		return nil, false, err
	}
	if current == nil {
		return nil, false, ErrNoVersion
	}
	gate, seen, err := s.store.Rollouts.Gate(ctx, current.Rollout(), AllGroups)
	if err != nil || gate.State == Halted {
		return current, false, err
	}
	gate = Gate{By: by}
	gate.Halt("", reason)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(s.CurrentKey()), "=", rev),
			clientv3.Compare(clientv3.ModRevision(s.store.Rollouts.GateKey(current.Rollout(), AllGroups)), "=", seen)).
		Then(s.store.Rollouts.GateOp(current.Rollout(), AllGroups, gate), s.store.Bells.RingOp()).Commit()
	if err == nil && !done.Succeeded {
		err = &MovedError{What: "the rollout"}
	}
	return current, err == nil, err
}

// Undo pins the fleet to the newest version of its history that was neither halted nor undone, for a time where that is
// not 0, if it is still at the version that was read at a revision. It reports the one that it set.
func (s *Versions) Undo(
	ctx context.Context,
	current *Version,
	rev int64,
	by, reason string,
	lasts time.Duration,
) (*Version, error) {
	good, left, err := s.LastGood(ctx, current)
	if err != nil {
		return nil, err
	}
	proven, err := s.proven(ctx, good)
	if err != nil {
		return nil, err
	}
	next := Version{
		ID: good.ID, Release: good.Release, Commits: good.Commits, Previous: current.ID, Rewound: current.Rewound,
		By: by, At: time.Now().UTC(), Held: true, Reason: reason, Bad: left, Proven: proven,
	}
	if lasts > 0 {
		next.Until = next.At.Add(lasts)
		if next.Hold, err = s.hold(ctx, by, lasts); err != nil {
			return nil, err
		}
	}
	return &next, s.Move(ctx, next, current, rev)
}

// hold writes a key that is there for a time, by the clock of etcd.
func (s *Versions) hold(ctx context.Context, by string, lasts time.Duration) (string, error) {
	lease, err := s.store.Client.Grant(ctx, int64(max(1, lasts.Seconds())))
	if err != nil {
		return "", err
	}
	name := strconv.FormatInt(int64(lease.ID), 36)
	_, err = s.store.Client.Put(ctx, s.store.key("hold", name), by, clientv3.WithLease(lease.ID))
	return name, err
}

// Holds reports that nobody proposes a newer version than this one now. The clocks of hosts do not count.
func (s *Versions) Holds(ctx context.Context, v *Version) (bool, error) {
	if v == nil || !v.Held || v.Hold == "" {
		return v != nil && v.Held, nil
	}
	got, err := s.store.Client.Get(ctx, s.store.key("hold", v.Hold), clientv3.WithCountOnly())
	return err == nil && got.Count > 0, err
}

// badWith are the versions that are not proposed again when the fleet leaves this one for good.
func badWith(current *Version) []string {
	if slices.Contains(current.Bad, current.ID) {
		return current.Bad
	}
	return append(slices.Clone(current.Bad), current.ID)
}

// LastGood is the newest version of the history, but for the current one, that was neither undone nor halted, and that
// came after the last rewrite of a repository which an operator accepted. It also gives the versions that the fleet
// leaves for good when it goes there, those that halted in between and those that only a newer record had as well: a
// host that runs one of these goes back only from a version that somebody left.
func (s *Versions) LastGood(ctx context.Context, current *Version) (good Version, left []string, err error) {
	history, err := s.History(ctx)
	if err != nil {
		return good, nil, err
	}
	ends, err := s.Endings(ctx, history)
	if err != nil {
		return good, nil, err
	}
	skipped := badWith(current)
	forgotten, err := forgotten(ctx, s.store, history, skipped)
	if err != nil {
		return good, nil, err
	}
	left = slices.Concat(skipped, forgotten)
	for i, v := range slices.Backward(history) {
		switch {
		case !slices.Equal(v.Rewound, current.Rewound): // hosts refuse it: it may not be in their branches any more
			return good, nil, fmt.Errorf(
				"the versions before it are of a history that was rewritten since (pullet rollout history): "+
					"keep nodes from taking %s with pullet rollout fail, and push a commit that fixes it", current,
			)
		case slices.Contains(skipped, v.ID):
		case ends[i].Halted == "": // in this rollout, whatever became of later ones
			return v, slices.DeleteFunc(slices.Clone(left), func(id string) bool { return id == v.ID }), nil
		case !slices.Contains(left, v.ID):
			left = append(slices.Clone(left), v.ID)
		}
	}
	return good, nil, errors.New(
		"there is no earlier version that was neither halted nor undone (pullet rollout history): " +
			"keep nodes from taking this one with pullet rollout fail, and push a commit that fixes it",
	)
}

// maxForgotten bounds what peers can have an undo write.
const maxForgotten = 100

// forgotten are the versions that nodes run, or say that they run, and that neither the history nor known has: etcd was
// restored from before they were set.
func forgotten(ctx context.Context, s *Store, history []Version, known []string) ([]string, error) {
	o, err := s.Views.read(ctx, []string{"running_version/", "doubting/"})
	if err != nil {
		return nil, err
	}
	versions := slices.Compact(slices.Sorted(maps.Values(o.Running)))
	versions = slices.DeleteFunc(versions, func(id string) bool {
		return slices.Contains(known, id) || slices.ContainsFunc(history, func(v Version) bool { return v.ID == id })
	})
	return versions[:min(len(versions), maxForgotten)], nil
}

// Move sets the fleet's version as an operator wants it, if it is still the one that was read at a revision: the second
// of two operators is told.
func (s *Versions) Move(ctx context.Context, v Version, current *Version, seen int64) error {
	is, err := s.Propose(ctx, v, current, seen)
	switch {
	case is.Done:
		return err
	case unlessBad(err) != nil:
		return err
	case is.Version == nil:
		return errors.Join(err, &MovedError{What: "the fleet's version"})
	}
	return &MovedError{What: "the fleet's version", By: is.Version.By + " (to " + is.Version.String() + ")"}
}

// Follow lets the fleet follow its repositories again. It reports the version, and false when nothing held it.
func (s *Versions) Follow(ctx context.Context) (*Version, bool, error) {
	current, rev, err := s.Current(ctx)
	if err != nil {
		return nil, false, err
	}
	if current == nil {
		return nil, false, ErrNoVersion
	}
	if held, err := s.Holds(ctx, current); err != nil || !held {
		return current, false, err
	}
	next := *current
	next.Held, next.Until, next.Hold = false, time.Time{}, ""
	return &next, true, s.Move(ctx, next, current, rev)
}

// Ending is how the fleet's move to a version ended.
type Ending struct {
	Halted string `json:"halted,omitempty"` // why it is or was left halted
	Undone string `json:"undone,omitempty"` // by whom, and why
	Groups int    `json:"groups"`           // that took part
	Closed int    `json:"closed"`           // of them, those whose nodes are all through
}

// Endings say of each version of the history how it ended.
func (s *Versions) Endings(ctx context.Context, history []Version) ([]Ending, error) {
	out := make([]Ending, len(history))
	for i, v := range history {
		got, err := s.store.Client.Txn(ctx).Then(
			clientv3.OpGet(s.store.Rollouts.GateKey(v.Rollout(), ""), clientv3.WithPrefix()),
			clientv3.OpGet(s.store.Rosters.Key(v.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithCountOnly()),
			clientv3.OpGet(s.store.Rollouts.ClosedKey(v.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithCountOnly()),
		).Commit()
		if err != nil {
			return nil, err
		}
		var halts []string
		for _, kv := range got.Responses[0].GetResponseRange().Kvs {
			if group, g := s.store.Rollouts.ReadGate(kv); g.State == Halted {
				halts = append(halts, GroupGate{group, g}.Why())
			}
		}
		out[i] = Ending{
			Halted: strings.Join(halts, "; "),
			Groups: int(got.Responses[1].GetResponseRange().Count), Closed: int(got.Responses[2].GetResponseRange().Count),
		}
		if i+1 < len(history) {
			out[i].Undone = undone(&v, &history[i+1])
		}
	}
	return out, nil
}

// undone says who left a version for good with the one that came after it, and why.
func undone(v, next *Version) string {
	if slices.Contains(v.Bad, v.ID) || !slices.Contains(next.Bad, v.ID) {
		return ""
	}
	if next.Reason == "" {
		return "by " + next.By
	}
	return "by " + next.By + ": " + next.Reason
}
