package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Command is something that an operator has several nodes run, each once.
type Command struct {
	ID          string        `json:"id"`
	Args        []string      `json:"args"` // one: a line for the shell
	Target      string        `json:"target"`
	Stages      [][]string    `json:"stages"`            // the nodes, frozen: a stage begins when the one before is complete
	LeftOut     []string      `json:"leftOut,omitempty"` // nodes of the target that did not answer when it was given
	Max         int           `json:"max"`               // nodes at a time
	MaxFailures int           `json:"maxFailures,omitempty"`
	Timeout     time.Duration `json:"timeout"` // of the command on a node
	Reason      string        `json:"reason,omitempty"`
	By          string        `json:"by"`
	At          time.Time     `json:"at"`
	Until       time.Time     `json:"until"` // no node begins with it later, by the clock of etcd
}

// CommandResult is what came of a command on a node.
type CommandResult struct {
	Node     string    `json:"node"`
	State    string    `json:"state"` // running, ok, failed, refused, unknown
	Instance string    `json:"instance,omitempty"`
	ExitCode int       `json:"exitCode"`
	Output   string    `json:"output,omitempty"` // the end of what it wrote
	Reason   string    `json:"reason,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
}

// The states of a command on a node beside Running, Failed and the words of a status.
const (
	Ran     = "ok"
	Refused = "refused" // the node's own configuration does not allow it
	Unknown = "unknown" // the agent was killed while it ran
)

// Over reports an end: the node does no more about the command.
func (r CommandResult) Over() bool { return r.State != "" && r.State != Running }

func (s *Store) commandKey(parts ...string) string {
	return s.key(append([]string{"command"}, parts...)...)
}

// CommandPrefix is where the gates of a command are.
func (s *Store) CommandPrefix(id, what string) string { return s.commandKey(id, what) + "/" }

// Give makes a command known to the nodes, and wakes them. Its name is its time: of two that are given in the same moment the second is told.
func (s *Store) Give(ctx context.Context, c Command) error {
	key := s.commandKey(c.ID, "given")
	ops := []clientv3.Op{Put(key, c), s.WakeOp()}
	if lasts := c.Until.Sub(c.At); lasts > 0 {
		lease, err := s.Client.Grant(ctx, int64(max(1, lasts.Seconds())))
		if err != nil {
			return err
		}
		ops = append(ops, clientv3.OpPut(s.commandKey(c.ID, "open"), "", clientv3.WithLease(lease.ID)))
	}
	done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(ops...).Commit()
	if err != nil || done.Succeeded {
		return err
	}
	var other Command
	_, err = s.read(ctx, key, &other)
	return errors.Join(err, fmt.Errorf("nothing was given: %s gave a command at the very same moment (%s); look at pullet run and try again", other.By, c.ID))
}

// CommandStatus is a command with what came of it so far, by node.
type CommandStatus struct {
	Command
	Open    bool                     `json:"open"` // nodes may begin with it: it has not expired
	Results map[string]CommandResult `json:"results"`
}

// Stage is the first stage that is not complete; the number of stages when all are. Decommissioned nodes are not waited for.
func (c CommandStatus) Stage(gone map[string]bool) int {
	for i, nodes := range c.Stages {
		if slices.ContainsFunc(nodes, func(n string) bool { return !c.Results[n].Over() && !gone[n] }) {
			return i
		}
	}
	return len(c.Stages)
}

// Halted reports a command that failed on more nodes than it survives: no other begins with it.
func (c CommandStatus) Halted() bool {
	n := 0
	for _, r := range c.Results {
		if r.State == Failed || r.State == Unknown {
			n++
		}
	}
	return n > c.MaxFailures
}

// Commands are those that were given, the oldest first, and the decommissioned nodes.
func (s *Store) Commands(ctx context.Context) ([]CommandStatus, map[string]bool, error) {
	got, err := s.Client.Txn(ctx).Then(
		clientv3.OpGet(s.key("command")+"/", clientv3.WithPrefix()),
		clientv3.OpGet(s.DecommissionedKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return nil, nil, err
	}
	gone := map[string]bool{}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		gone[LastPart(kv.Key)] = true
	}
	var out []CommandStatus
	results := map[string]map[string]CommandResult{}
	open := map[string]bool{}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		parts := strings.Split(strings.TrimPrefix(string(kv.Key), s.key("command")+"/"), "/")
		switch parts[1] {
		case "given":
			c := CommandStatus{Results: map[string]CommandResult{}}
			if err := json.Unmarshal(kv.Value, &c.Command); err != nil {
				return nil, nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
			}
			results[c.ID] = c.Results
			out = append(out, c)
		case "open":
			open[parts[0]] = true
		case "result": // after given in the order of keys
			var r CommandResult
			if err := json.Unmarshal(kv.Value, &r); err != nil {
				return nil, nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
			}
			if m := results[parts[0]]; m != nil {
				m[r.Node] = r
			}
		}
	}
	for i := range out {
		out[i].Open = open[out[i].ID]
	}
	return out, gone, nil
}

// ErrBegun says that a node began with a command before.
var ErrBegun = errors.New("the command was begun before")

// BeginCommand records that a node begins with a command: it happens once.
func (s *Store) BeginCommand(ctx context.Context, id string, r CommandResult) error {
	key := s.commandKey(id, "result", r.Node)
	done, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(Put(key, r)).Commit()
	if err == nil && !done.Succeeded {
		err = ErrBegun
	}
	return err
}

// EndCommand records what came of a command on a node. Whoever finds the stage complete then wakes those of the next one.
func (s *Store) EndCommand(ctx context.Context, id string, r CommandResult, stage int) error {
	if _, err := s.Client.Txn(ctx).Then(Put(s.commandKey(id, "result", r.Node), r), s.RingOp()).Commit(); err != nil {
		return err
	}
	all, gone, err := s.Commands(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		if now := c.Stage(gone); c.ID == id && now > stage && now < len(c.Stages) {
			_, err = s.Client.Txn(ctx).Then(s.WakeOp()).Commit()
		}
	}
	return err
}

// AbandonCommand records the end of a command whose agent was killed, and gives back the place that it had.
func (s *Store) AbandonCommand(ctx context.Context, id string, r CommandResult) error {
	claims, err := s.Client.Get(ctx, s.CommandPrefix(id, "claim"), clientv3.WithPrefix())
	if err != nil {
		return err
	}
	ops := []clientv3.Op{Put(s.commandKey(id, "result", r.Node), r), s.RingOp(), s.WakeOp()}
	for _, kv := range claims.Kvs {
		var c Claim
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			return fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		if c.Node == r.Node {
			ops = append(ops, clientv3.OpDelete(string(kv.Key)), clientv3.OpDelete(s.CommandPrefix(id, "mark")+LastPart(kv.Key)))
		}
	}
	_, err = s.Client.Txn(ctx).Then(ops...).Commit()
	return err
}

// keptCommands is how long a command's results are kept.
const keptCommands = 7 * 24 * time.Hour

// ForgetCommands removes commands that were given long ago.
func (s *Store) ForgetCommands(ctx context.Context, now time.Time) error {
	all, _, err := s.Commands(ctx)
	for _, c := range all {
		if err == nil && now.Sub(c.At) > keptCommands {
			_, err = s.Client.Delete(ctx, s.commandKey(c.ID)+"/", clientv3.WithPrefix())
		}
	}
	return err
}
