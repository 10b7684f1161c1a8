package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

// SettleHint is what an operator does about a step whose result is unknown.
func SettleHint(step string) string {
	return fmt.Sprintf(
		"if it did its work there, run: %s; if it is to run again: %s",
		SettleCommand(step, "--done"),
		SettleCommand(step, "--again"),
	)
}

// AgainHint is what an operator does about a step that was cut off and may run twice.
func AgainHint(step string) string { return "to have it run: " + SettleCommand(step, "--again") }

// SettleCommand is the command that settles a step, as it is typed into a shell.
func SettleCommand(step, how string) string {
	return "pullet rollout settle " + safetext.ShellWord(step) + " " + how
}

// Settling is what an operator says of a targeted step: that it did its work, or else that it is to run again.
type Settling struct {
	Done  bool
	Force bool // it runs again also on nodes where it succeeded
}

// Settled is what came of it.
type Settled struct {
	Step  string   `json:"step"`
	Done  bool     `json:"done"`  // it did its work; else it runs again
	Once  bool     `json:"once"`  // the record was the fleet's, and not the version's
	Nodes []string `json:"nodes"` // on which that is so
	Kept  []string `json:"kept"`  // those that had started it, too, and whose results stay
	Gone  []string `json:"gone"`  // of all of them, those that were decommissioned since

	Resumed []GroupGate `json:"resumed"` // what was halted because its result was unknown
}

// Where is where the step runs when it runs again.
func (s *Settled) Where() string {
	return Where(s.Nodes, func(node string) bool { return slices.Contains(s.Gone, node) })
}

// AskedError says that a step is to run again already, and has not begun.
type AskedError struct {
	Step string
	Asked
	Where string
	hosts []string // on which it is to run, where all of them are known
}

func (e *AskedError) Error() string {
	return fmt.Sprintf(
		"%s is to run again already, on %s, at the next pull there: %s asked for it at %s; if it must not run: %s",
		e.Step,
		e.Where,
		e.By,
		e.At.Local().Format(time.DateTime),
		NotAgainHint(e.hosts...),
	)
}

// NotAgainHint is what an operator does about a step that is to run again on these hosts and must not; without hosts it
// is to run on one that takes the place of another, and nobody knows yet on which.
func NotAgainHint(hosts ...string) string {
	scope := "--global"
	if len(hosts) == 1 {
		scope = "--host " + hosts[0]
	}
	return fmt.Sprintf(
		"pullet disable %s --all-changes, push a commit without the step, then pullet enable %s", scope, scope,
	)
}

// Settle says what became of a targeted step: that it did its work on the nodes that started it, or that it is to run
// again. It replaces what is on record for the fleet's version, or for the fleet where the step runs once in its life,
// and resumes the groups that were halted for it. That it succeeded everywhere stays on record when it is said again.
// Where it succeeded on some nodes only, their results stay, unless it runs again by force; so does a success of a step
// that runs once in the fleet's life. A step that is to run again and has not begun is an *AskedError.
func (s *Steps) Settle(ctx context.Context, step, by string, how Settling) (*Settled, error) {
	current, rev, err := s.store.Versions.Current(ctx)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, ErrNoVersion
	}
	for _, scope := range []string{current.ID, OnceScope} {
		r, err := s.record(ctx, scope, step)
		if err != nil {
			return nil, err
		}
		if how.Done && r.stands() {
			resumed, err := s.store.Rollouts.reopen(ctx, by, func(g GroupGate) bool { return g.Unknown == step })
			return &Settled{step, true, scope == OnceScope, []string{}, r.nodes(), r.gone, resumed}, err
		}
		nodes, err := r.settles(how)
		if err != nil {
			return nil, err
		}
		if len(nodes) == 0 {
			continue
		}
		if err := s.busy(ctx, r, current.ID); err != nil {
			return nil, err
		}
		said := Settlement{
			Step:    step,
			By:      by,
			At:      time.Now().UTC(),
			Done:    how.Done,
			Nodes:   nodes,
			Version: current.ID,
			Rollout: current.Rollout(),
		}
		if err := s.write(ctx, r, clientv3.Compare(clientv3.ModRevision(s.store.Versions.CurrentKey()), "=", rev),
			said); err != nil {
			return nil, err
		}
		resumed, err := s.store.Rollouts.reopen(ctx, by, func(g GroupGate) bool { return g.Unknown == step })
		kept := slices.DeleteFunc(r.nodes(), func(node string) bool { return slices.Contains(nodes, node) })
		return &Settled{step, how.Done, scope == OnceScope, nodes, kept, r.gone, resumed}, err
	}
	known, err := s.Settleable(ctx, current.ID)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, fmt.Errorf(
			"there is no record of a targeted step %q in version %s, nor of any other",
			step,
			current,
		)
	}
	return nil, fmt.Errorf(
		"there is no record of a targeted step %q in version %s: there is one of %s",
		step,
		current,
		strings.Join(known, ", "),
	)
}

// settles are the nodes for which an operator's word counts; none where nothing is on record. What succeeded stays,
// where something else did not; a place of a node that was given up is free only when what it started for a version
// runs again, too.
func (r *stepRecord) settles(how Settling) ([]string, error) {
	all := r.nodes()
	open := slices.DeleteFunc(slices.Clone(all), func(node string) bool {
		replaced := r.scope != OnceScope && !how.Done && slices.Contains(r.gone, node)
		return r.succeededOn(node) && !replaced
	})
	switch {
	case len(all) > 0 && !how.Done && how.Force:
		return all, nil
	case len(open) > 0:
		return open, nil
	case len(r.waiting) > 0:
		asked := &AskedError{Step: r.step, Asked: r.said.Asker(), Where: Where(r.waiting, r.isGone)}
		if !slices.ContainsFunc(r.waiting, r.isGone) {
			asked.hosts = r.waiting
		}
		return nil, asked
	case !how.Done && r.scope == OnceScope:
		return all, r.succeeded()
	}
	return all, nil
}

// write replaces the record on the nodes that it is about, if it is as it was read: nobody settled, started or ended
// the step since.
func (s *Steps) write(ctx context.Context, r *stepRecord, same clientv3.Cmp, said Settlement) error {
	hash := StepHash(r.step)
	compares := []clientv3.Cmp{
		same,
		clientv3.Compare(clientv3.ModRevision(s.SettledKey(r.scope, hash)), "=", r.settled),
	}
	for _, began := range []string{"started", "result"} {
		prefix := s.Key(r.scope, hash, began, "")
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(prefix), "<", r.revision+1).WithPrefix())
	}
	ops := []clientv3.Op{s.store.Bells.RingOp(), s.store.Bells.wakeOp()}
	fresh, err := s.freshOps(ctx, r, said)
	if err != nil {
		return err
	}
	ops = append(ops, fresh...)
	for _, node := range r.nodes() {
		started, result := s.Key(r.scope, hash, "started", node), s.Key(r.scope, hash, "result", node)
		switch {
		case !slices.Contains(said.Nodes, node):
		case said.Done:
			ops = append(
				ops,
				Put(
					result,
					StepResult{
						Node:    node,
						Step:    r.step,
						Result:  "ok",
						Reason:  "settled by " + said.By,
						Attempt: r.starts[node].Attempt,
						At:      said.At,
					},
				),
			)
		default:
			ops = append(
				ops,
				clientv3.OpDelete(started),
				clientv3.OpDelete(result),
				clientv3.OpDelete(s.Key(r.scope, hash, "fresh", node)),
			)
			for _, mark := range r.took[node] {
				ops = append(ops, clientv3.OpDelete(mark))
			}
		}
	}
	ops = append(ops, Put(s.SettledKey(r.scope, hash), said.after(r)))
	done, err := s.store.Client.Txn(ctx).If(compares...).Then(together(ops)...).Commit()
	if err == nil && !done.Succeeded {
		err = &MovedError{What: "the record of " + r.step}
	}
	return err
}

// freshOps say of the results that an operator settles as done that they are as old as his word: else a step with a
// maxAge would run again at once.
func (s *Steps) freshOps(ctx context.Context, r *stepRecord, said Settlement) (ops []clientv3.Op, err error) {
	for _, node := range said.Nodes {
		age := r.starts[node].MaxAge
		if !said.Done || age == 0 {
			continue
		}
		lease, err := s.store.Client.Grant(ctx, int64(max(1, age.Seconds())))
		if err != nil {
			return nil, err
		}
		ops = append(
			ops,
			clientv3.OpPut(s.Key(r.scope, StepHash(r.step), "fresh", node), "", clientv3.WithLease(lease.ID)),
		)
	}
	return ops, nil
}

// Settleable are the targeted steps that are on record for a version, or for the fleet.
func (s *Steps) Settleable(ctx context.Context, version string) ([]string, error) {
	steps := map[string]bool{}
	for _, scope := range []string{version, OnceScope} {
		got, err := s.store.Client.Get(ctx, s.store.key("run", scope)+"/", clientv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		for _, kv := range got.Kvs {
			k, err := s.store.Key(kv)
			named := ""
			switch {
			case err != nil:
			case k.kind.shape == "run/ROLLOUT/HASH/started/NODE":
				named = s.ReadStart(kv).Step
			case k.kind.shape == "run/ROLLOUT/HASH/result/NODE":
				named = s.ReadResult(kv).Step
			}
			if named != "" {
				steps[named] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(steps)), nil
}
