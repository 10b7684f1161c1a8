package state

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// haltAttempts are made while a gate moves under the hands of who halts it.
const haltAttempts = 10

// HaltGroup halts a group in a rollout because of what failed on a node, with Node, Reason, Failed, Hosts and Unknown
// of because. News is the revision of etcd at which that came on record: nothing is halted for what an operator saw who
// resumed since. It may be done twice. A *MovedError says that the gate moved all the time.
func HaltGroup(ctx context.Context, s *Store, rollout, group string, because Gate, news int64) error {
	for range haltAttempts {
		gate, rev, err := s.Rollouts.Gate(ctx, rollout, group)
		if err != nil || gate.State == Halted || gate.Resumed != "" && news <= gate.Seen {
			return err
		}
		gate.Halt(because.Node, because.Reason)
		gate.Unknown = because.Unknown
		if !gate.Counts(because.Node) {
			gate.Failed, gate.Hosts = append(gate.Failed, because.Failed...), append(gate.Hosts, because.Hosts...)
		}
		done, err := s.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.Rollouts.GateKey(rollout, group)), "=", rev)).
			Then(s.Rollouts.GateOp(rollout, group, gate), s.Bells.RingOp()).Commit()
		if err != nil || done.Succeeded {
			return err
		}
	}
	return &MovedError{What: "the rollout of " + group}
}

// UnknownGate is how a group halts for a targeted step of a node whose result nobody knows.
func UnknownGate(node, step, reason string) Gate {
	return Gate{Node: node, Reason: "step " + step + ": " + reason, Failed: []string{node}, Unknown: step}
}
