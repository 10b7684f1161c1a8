package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Command is something that an operator has several nodes run, each once.
type Command struct {
	ID     string   `json:"id"`
	Args   []string `json:"args"` // one: a line for the shell
	Target string   `json:"target"`
	// the nodes, frozen: a stage begins when the one before is complete
	Stages      [][]string    `json:"stages"`
	LeftOut     []string      `json:"leftOut,omitempty"` // nodes of the target that did not answer when it was given
	Max         int           `json:"max"`               // nodes at a time
	Limits      []int         `json:"limits,omitempty"`  // instead of Max, for each stage
	MaxFailures int           `json:"maxFailures,omitempty"`
	Timeout     time.Duration `json:"timeout"` // of the command on a node
	Reason      string        `json:"reason,omitempty"`
	By          string        `json:"by"`
	At          time.Time     `json:"at"`
	Until       time.Time     `json:"until"` // no node begins with it later, by the clock of etcd
	// of the operator who gave it, as authority.Sign makes it: see Sign
	Signature string `json:"signature,omitempty"`
}

// Limit is how many nodes of a stage run the command at a time.
func (c Command) Limit(stage int) int {
	if stage < len(c.Limits) {
		return c.Limits[stage]
	}
	return c.Max
}

// CommandResult is what came of a command on a node.
type CommandResult struct {
	Node     string    `json:"node"`
	State    string    `json:"state"` // running, ok, failed, refused, unknown
	Instance string    `json:"instance,omitempty"`
	ExitCode int       `json:"exitCode"`
	Output   string    `json:"output,omitempty"` // the end of what it wrote
	Reason   string    `json:"reason,omitempty"`
	Signer   string    `json:"signer,omitempty"` // the operator whose signature the node verified
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

// fails reports an end that halts the command when there are too many.
func (r CommandResult) fails() bool { return r.State == Failed || r.State == Unknown }

// givenKey is the command itself, and openKey is there while nodes may begin with it: operators alone write both.
func (s *Commands) givenKey(id string) string { return s.store.key("command_given", id) }
func (s *Commands) openKey(id string) string  { return s.store.key("command_open", id) }

// resultKey is what came of a command on a node.
func (s *Commands) resultKey(id, node string) string { return s.Prefix(id, "result") + node }

// Prefix is where a command has its "queue", the "claim"s to its places, their "mark"s, the "result"s and the "output"
// of nodes, and by stage how many nodes "ended".
func (s *Commands) Prefix(id, what string) string { return s.store.key("command_"+what, id) + "/" }

// claims are the places of all commands.
func (s *Commands) claims() string { return s.store.key("command_claim") + "/" }

// pendingKey is there while nodes may have to do something about a command; with an empty id it is the prefix of all.
func (s *Commands) pendingKey(id string) string { return s.store.key("command_pending", id) }

// answerTime is how long after its last moment a command is kept open for a node whose agent was killed.
const answerTime = time.Hour

// Give makes a command known to the nodes, and wakes them. Its name is its time: of two that are given in the same
// moment the second is told.
func (s *Commands) Give(ctx context.Context, c Command) error {
	key := s.givenKey(c.ID)
	lasts := c.Until.Sub(c.At)
	leases := make([]clientv3.LeaseID, 2)
	for i, d := range []time.Duration{lasts, lasts + c.Timeout + answerTime} {
		lease, err := s.store.Client.Grant(ctx, int64(max(1, d.Seconds())))
		if err != nil {
			return err
		}
		leases[i] = lease.ID
	}
	ops := []clientv3.Op{
		Put(key, c), clientv3.OpPut(s.pendingKey(c.ID), "", clientv3.WithLease(leases[1])), s.store.Bells.wakeOp(),
	}
	if lasts > 0 {
		ops = append(ops, clientv3.OpPut(s.openKey(c.ID), "", clientv3.WithLease(leases[0])))
	}
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(ops...).Commit()
	if err != nil || done.Succeeded {
		return err
	}
	other, _, err := get[Command](ctx, s.store, key)
	return errors.Join(
		unlessBad(err),
		fmt.Errorf(
			"nothing was given: %s gave a command at the very same moment (%s); look at pullet run and try again",
			other.By,
			c.ID,
		),
	)
}

// CommandStatus is a command with what came of it so far, by node.
type CommandStatus struct {
	Command
	Open    bool                     `json:"open"` // nodes may begin with it: it has not expired
	Results map[string]CommandResult `json:"results"`
}

// Stage is the first stage that is not complete; the number of stages when all are. Decommissioned nodes are not waited
// for.
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
		if r.fails() {
			n++
		}
	}
	return n > c.MaxFailures
}

// Runs reports a command that a node is at.
func (c CommandStatus) Runs() bool {
	for _, r := range c.Results {
		if !r.Over() {
			return true
		}
	}
	return false
}

// List are those that were given lately, the oldest first, with their output, and the decommissioned nodes.
func (s *Commands) List(ctx context.Context) ([]CommandStatus, map[string]bool, error) {
	return s.list(ctx, "", true)
}

// Get is one command with its output; nil when it is gone.
func (s *Commands) Get(ctx context.Context, id string) (*CommandStatus, map[string]bool, error) {
	all, gone, err := s.list(ctx, id, true)
	if err != nil || len(all) == 0 {
		return nil, gone, err
	}
	return &all[0], gone, nil
}

// list reads a command, or with an empty id all of them.
func (s *Commands) list(ctx context.Context, id string, outputs bool) ([]CommandStatus, map[string]bool, error) {
	ops := []clientv3.Op{
		clientv3.OpGet(s.store.Nodes.DecommissionedKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	}
	if id == "" {
		ops = append(
			ops,
			clientv3.OpGet(s.givenKey(""), clientv3.WithPrefix()),
			clientv3.OpGet(s.openKey(""), clientv3.WithPrefix()),
		)
	} else {
		ops = append(ops, clientv3.OpGet(s.givenKey(id)), clientv3.OpGet(s.openKey(id)))
	}
	for _, what := range []string{"result", "output"} {
		if prefix := s.store.key("command_"+what, id); what == "result" || outputs {
			ops = append(ops, clientv3.OpGet(strings.TrimSuffix(prefix, "/")+"/", clientv3.WithPrefix()))
		}
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, nil, err
	}
	gone := map[string]bool{}
	for _, kv := range answers[0].GetResponseRange().Kvs {
		if k, err := s.store.Key(kv); err == nil {
			gone[k.Node] = true
		}
	}
	var out []CommandStatus
	results := map[string]map[string]CommandResult{}
	for _, answer := range answers[1:] {
		for _, kv := range answer.GetResponseRange().Kvs {
			if k, err := s.store.Key(kv); err == nil {
				s.file(k, kv, &out, results)
			}
		}
	}
	return out, gone, nil
}

// file files one key of a command: what was given comes before the rest.
func (s *Commands) file(
	k Key,
	kv *mvccpb.KeyValue,
	out *[]CommandStatus,
	results map[string]map[string]CommandResult,
) {
	switch k.kind.shape {
	case "command_given/WORD":
		if given, err := Read[Command](s.store, kv); err == nil {
			c := CommandStatus{Command: given, Results: map[string]CommandResult{}}
			results[k.Word] = c.Results
			*out = append(*out, c)
		}
	case "command_open/WORD":
		if i := slices.IndexFunc(*out, func(c CommandStatus) bool { return c.ID == k.Word }); i >= 0 {
			(*out)[i].Open = true
		}
	case "command_result/WORD/NODE":
		if of := results[k.Word]; of != nil { // it was not forgotten meanwhile
			of[k.Node] = s.result(k, kv)
		}
	case "command_output/WORD/NODE":
		r, ran := results[k.Word][k.Node]
		if text, err := Read[Output](s.store, kv); err == nil && ran {
			r.Output = string(text)
			results[k.Word][k.Node] = r
		}
	}
}

// result is what came of a command on a node. Where it cannot be read the command may have run.
func (s *Commands) result(k Key, kv *mvccpb.KeyValue) CommandResult {
	r, err := Read[CommandResult](s.store, kv)
	if err != nil {
		return CommandResult{Node: k.Node, State: Unknown, Reason: err.Error()}
	}
	return r
}

// Cancel keeps further nodes from beginning with a command. It is false when none may any more.
func (s *Commands) Cancel(ctx context.Context, id string) (bool, error) {
	key := s.openKey(id)
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), ">", 0)).
		Then(clientv3.OpDelete(key), s.store.Bells.RingOp()).
		Commit()
	if err != nil {
		return false, err
	}
	return done.Succeeded, nil
}

// keptCommands is how long a command's results are kept.
const keptCommands = 7 * 24 * time.Hour

// Forget removes commands that were given long ago.
func (s *Commands) Forget(ctx context.Context, now time.Time) error {
	all, _, err := s.list(ctx, "", false)
	for _, c := range all {
		if err == nil && now.Sub(c.At) > keptCommands {
			ops := []clientv3.Op{clientv3.OpDelete(s.givenKey(c.ID)), clientv3.OpDelete(s.openKey(c.ID)),
				clientv3.OpDelete(s.failuresKey(c.ID)), clientv3.OpDelete(s.pendingKey(c.ID))}
			for _, prefix := range []string{s.Prefix(c.ID, "result"), s.Prefix(c.ID, "output"), s.Prefix(c.ID, "ended"),
				s.Prefix(c.ID, "queue"), s.Prefix(c.ID, "claim"), s.Prefix(c.ID, "mark"), s.store.Rollouts.key(c.ID)} {
				ops = append(ops, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
			}
			_, err = s.store.Client.Txn(ctx).Then(ops...).Commit()
		}
	}
	return err
}
