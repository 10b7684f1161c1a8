package state

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// SettleHint is what an operator does about a step whose result is unknown.
func SettleHint(step string) string {
	return fmt.Sprintf("if it did its work there, run: %s; if it is to run again: %s", SettleCommand(step, "--done"), SettleCommand(step, "--again"))
}

// SettleCommand is the command that settles a step, as it is typed into a shell.
func SettleCommand(step, how string) string {
	if strings.Trim(step, shellPlain) != "" {
		step = "'" + strings.ReplaceAll(step, "'", `'\''`) + "'"
	}
	return "pullet rollout settle " + step + " " + how
}

// shellPlain are the characters that a shell leaves alone wherever they stand in a word.
const shellPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+,-"

// Settled is what an operator said of a targeted step.
type Settled struct {
	Step  string   `json:"step"`
	Done  bool     `json:"done"`  // it did its work; else it runs again
	Once  bool     `json:"once"`  // the record was the fleet's, and not the version's
	Nodes []string `json:"nodes"` // that had started it
	Gone  []string `json:"gone"`  // of them, those that were decommissioned since

	Resumed []GroupGate `json:"resumed"` // what was halted because its result was unknown
}

// Where is where the step runs when it runs again.
func (s *Settled) Where() string {
	there := slices.DeleteFunc(slices.Clone(s.Nodes), func(n string) bool { return slices.Contains(s.Gone, n) })
	if len(s.Gone) > 0 {
		there = append(there, "the host that takes the place of "+strings.Join(s.Gone, ", ")+" (decommissioned)")
	}
	return strings.Join(there, ", ")
}

// Settle says what became of a targeted step: that it did its work on the nodes that started it, or that it is to run again. It replaces what is
// on record for the fleet's version, or for the fleet where the step runs once in its life, and resumes the groups that were halted for it. A step that
// succeeded and runs once in the fleet's life runs again only by force.
func (s *Store) Settle(ctx context.Context, step, by string, done, force bool) (*Settled, error) {
	current, rev, err := s.Current(ctx)
	if err != nil {
		return nil, err
	}
	if current == nil {
		return nil, ErrNoVersion
	}
	for _, scope := range []string{current.ID, OnceScope} {
		r, err := s.stepRecord(ctx, scope, step)
		if err != nil {
			return nil, err
		}
		if len(r.starts)+len(r.results) == 0 {
			continue
		}
		if err := s.busy(ctx, r); err != nil {
			return nil, err
		}
		if scope == OnceScope && !done && !force {
			if err := r.succeeded(); err != nil {
				return nil, err
			}
		}
		if err := s.settle(ctx, r, clientv3.Compare(clientv3.ModRevision(s.CurrentKey()), "=", rev), by, done); err != nil {
			return nil, err
		}
		resumed, err := s.reopen(ctx, by, func(g GroupGate) bool { return g.Unknown == step })
		return &Settled{step, done, scope == OnceScope, r.nodes(), r.gone, resumed}, err
	}
	known, err := s.settleable(ctx, current.ID)
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, fmt.Errorf("there is no record of a targeted step %q in version %s, nor of any other", step, current)
	}
	return nil, fmt.Errorf("there is no record of a targeted step %q in version %s: there is one of %s", step, current, strings.Join(known, ", "))
}

// stepRecord is what is on record of a targeted step, by node.
type stepRecord struct {
	scope, step string
	revision    int64
	starts      map[string]StepStart
	results     map[string]StepResult
	gone        []string // nodes that are given up, of those that started it
	took        []string // keys by which nodes keep their places, because they started it
}

func (r *stepRecord) nodes() []string {
	nodes := map[string]bool{}
	for n := range r.starts {
		nodes[n] = true
	}
	for n := range r.results {
		nodes[n] = true
	}
	return slices.Sorted(maps.Keys(nodes))
}

func (s *Store) stepRecord(ctx context.Context, scope, step string) (*stepRecord, error) {
	r := &stepRecord{scope: scope, step: step, starts: map[string]StepStart{}, results: map[string]StepResult{}}
	got, err := s.Client.Txn(ctx).Then(
		clientv3.OpGet(s.RunKey(scope, StepHash(step), "started", ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.RunKey(scope, StepHash(step), "result", ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.key("run", scope)+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.DecommissionedKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, err
	}
	r.revision = got.Header.Revision
	for i, response := range got.Responses {
		for _, kv := range response.GetResponseRange().Kvs {
			k, err := s.Key(kv)
			switch {
			case err != nil:
			case i == 3:
				if _, started := r.starts[k.Node]; started {
					r.gone = append(r.gone, k.Node)
				}
			case i == 2:
				if k.kind.shape == "run/ROLLOUT/HASH/took/NODE/WORD" && k.Word == StepHash(step) {
					r.took = append(r.took, string(kv.Key))
				}
			case i == 0:
				r.starts[k.Node] = s.ReadStart(kv)
			default:
				r.results[k.Node] = s.ReadResult(kv)
			}
		}
	}
	return r, nil
}

// succeeded refuses to have a step run again that did its work, once in the fleet's life.
func (r *stepRecord) succeeded() error {
	for _, node := range slices.Sorted(maps.Keys(r.results)) {
		result := r.results[node]
		if result.Result != "ok" {
			continue
		}
		how := "succeeded on " + node + " at " + result.At.Local().Format(time.DateTime)
		if result.Reason != "" {
			how += " (" + result.Reason + ")"
		}
		again := &Settled{Nodes: r.nodes(), Gone: r.gone}
		return fmt.Errorf("%s %s, and runs once in the fleet's life: it does not run again; to run it once more on %s: %s",
			r.step, how, again.Where(), SettleCommand(r.step, "--again --force"))
	}
	return nil
}

// busy refuses to settle a step that runs now: what comes of it is about to be known.
func (s *Store) busy(ctx context.Context, r *stepRecord) error {
	for _, node := range slices.Sorted(maps.Keys(r.starts)) {
		if result := r.results[node]; result.Result != "" && (result.Attempt == r.starts[node].Attempt || result.Result == "unknown") {
			continue
		}
		alive, err := s.Client.Get(ctx, s.AliveKey(node), clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		if alive.Count > 0 {
			return fmt.Errorf("%s runs %s since %s and has not said what came of it: wait for it, or stop pullet there and wait until its lease ends (pullet status)",
				node, r.step, r.starts[node].At.Format(time.TimeOnly))
		}
	}
	return nil
}

// settle replaces the record, if it is as it was read.
func (s *Store) settle(ctx context.Context, r *stepRecord, same clientv3.Cmp, by string, did bool) error {
	now, hash := time.Now().UTC(), StepHash(r.step)
	compares, ops := []clientv3.Cmp{same}, []clientv3.Op{s.RingOp(), s.wakeOp()}
	for _, node := range r.nodes() {
		started, result := s.RunKey(r.scope, hash, "started", node), s.RunKey(r.scope, hash, "result", node)
		compares = append(compares, clientv3.Compare(clientv3.ModRevision(started), "<", r.revision+1), clientv3.Compare(clientv3.ModRevision(result), "<", r.revision+1))
		if did {
			ops = append(ops, Put(result, StepResult{Node: node, Step: r.step, Result: "ok", Reason: "settled by " + by, Attempt: r.starts[node].Attempt, At: now}))
			continue
		}
		ops = append(ops, clientv3.OpDelete(started), clientv3.OpDelete(result), clientv3.OpDelete(s.RunKey(r.scope, hash, "fresh", node)))
	}
	if !did {
		for _, mark := range r.took {
			ops = append(ops, clientv3.OpDelete(mark))
		}
		ops = append(ops, clientv3.OpPut(s.RunKey(r.scope, hash, "again"), by+" "+now.Format(time.RFC3339Nano)))
	}
	done, err := s.Client.Txn(ctx).If(compares...).Then(ops...).Commit()
	if err == nil && !done.Succeeded {
		err = &MovedError{What: "the record of " + r.step}
	}
	return err
}

// settleable are the targeted steps that are on record.
func (s *Store) settleable(ctx context.Context, version string) ([]string, error) {
	steps := map[string]bool{}
	for _, scope := range []string{version, OnceScope} {
		got, err := s.Client.Get(ctx, s.key("run", scope)+"/", clientv3.WithPrefix())
		if err != nil {
			return nil, err
		}
		for _, kv := range got.Kvs {
			k, err := s.Key(kv)
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
