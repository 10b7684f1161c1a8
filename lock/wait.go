package lock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// Wait says why a node does not go on: at which gate, for whom, and what clears it.
type Wait struct {
	Kind   state.WaitKind `json:"kind"`
	Gate   string         `json:"gate"`   // "slot web", "role canary", "barrier db/join"
	Reason string         `json:"reason"` // who holds it, and how that one is
	state.Remedy
	Since   time.Time      `json:"since"`             // when this node began to wait
	Holders []state.Holder `json:"holders,omitempty"` // who is waited for
	// the group whose halt it waits for: only a newer version or an operator ends it
	Halt    string    `json:"halt,omitempty"`
	Depends []string  `json:"-"`               // the groups that must be through before the node's own; nil: not known
	Ahead   string    `json:"ahead,omitempty"` // the node that comes before this one in a queue
	Frees   bool      `json:"frees,omitempty"` // a place is freed when its holder is lost
	Until   time.Time `json:"until,omitzero"`  // when it is over; zero: nobody knows
}

func (w *Wait) Error() string {
	return fmt.Sprintf("waiting for %s: %s; %s", w.Gate, w.Reason, w.Clear)
}

// Follow is the wait as it is to be printed now. Where no action is needed but the node waits, through others, for one
// that does not go on by itself, it says so; else it says until when the lease of a node that it waits for lives. Where
// that cannot be asked it is the wait as it is, with the error.
func (w *Wait) Follow(ctx context.Context, s *state.Store, version string) (*Wait, error) {
	if !w.Itself() || !w.Kind.Idles() {
		return w, nil
	}
	st := state.Status{Holders: w.Holders, Ahead: w.Ahead, Frees: w.Frees}
	b, err := state.Follow(
		st,
		version,
		func(nodes []string) (map[string]state.Status, error) { return waitsOf(ctx, s, version, nodes) },
	)
	if b == nil && err == nil {
		b, err = s.Views.Idle(ctx, st)
	}
	if b == nil || err != nil {
		return w, err
	}
	out := *w
	out.Reason, out.Remedy = b.After(w.Reason), b.Remedy
	return &out, nil
}

// waitsOf are the statuses of some nodes that wait in a rollout. One that an operator stopped and lets go on since has
// only not looked again.
func waitsOf(ctx context.Context, s *state.Store, version string, nodes []string) (map[string]state.Status, error) {
	waits, err := s.Statuses.Waits(ctx, nodes)
	if err != nil {
		return nil, err
	}
	blockers, err := s.Views.Blockers(ctx, nodes)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(waits, func(node string, st state.Status) bool {
		h := state.Holder{Node: node}
		fillCondition(&h, blockers.Nodes[node], blockers.Switches, version)
		return h.Off == "" && st.Kind.Switched()
	})
	return waits, nil
}

// WaitOf is what a status says that its node waits for.
func WaitOf(st state.Status) *Wait {
	return &Wait{
		Kind: st.Kind, Gate: st.Gate, Reason: strings.TrimPrefix(st.Reason, st.Gate+": "), Remedy: st.Remedy, Since: st.Since,
		Holders: st.Holders, Halt: st.Halt, Ahead: st.Ahead,
		Frees: st.Frees, Until: st.Until,
	}
}

// ErrSuperseded says that the fleet moved on to another version while the node waited.
var ErrSuperseded = errors.New("superseded: the fleet moved on to another version")

// superseded returns nil for a run that ends whatever the fleet moves to. Else it returns ErrSuperseded when the fleet
// is at another rollout than the request's, or nobody can read at which; else the revision at which that was set.
func superseded(ctx context.Context, s *state.Store, q *Request) (int64, error) {
	if q.Apart {
		return q.VersionRev, nil
	}
	current, rev, err := s.Versions.Current(ctx)
	if _, bad := errors.AsType[*state.BadRecordError](err); bad ||
		err == nil && (current == nil || current.Rollout() != q.rollout()) {
		err = ErrSuperseded
	}
	return rev, err
}

// ErrFenced says that the claim was taken back: what the node does now is not covered by it any more.
var ErrFenced = errors.New("the slot was taken back from this node (see pullet status): no further step is started")

// ErrReplaced says that another node has this one's place in an election: it takes the step. It is ErrFenced, too.
var ErrReplaced error = replaced{}

type replaced struct{}

func (replaced) Error() string {
	return "another node was chosen for the step in place of this one"
}

func (replaced) Is(target error) bool { return target == ErrFenced }

// Unreadable is the wait of a node that cannot go on because of a record which cannot be read; nil where it is another
// error.
func Unreadable(gate string, err error) *Wait {
	bad, ok := errors.AsType[*state.BadRecordError](err)
	if !ok {
		return nil
	}
	return &Wait{
		Kind:   state.WaitRecord,
		Gate:   gate,
		Reason: fmt.Sprintf("etcd key %s cannot be read: %s", bad.Key, bad.Why),
		Remedy: state.Act(bad.Clear),
	}
}

// startAgain is what helps against a node that does not answer.
func startAgain(node string) string {
	return fmt.Sprintf("start %s again, or give it up: pullet decommission %s", node, node)
}

// takeOver is what helps against a node that does not answer and keeps its place at steps that chosen nodes take,
// because it started some. What one of them made is replaced only by an operator's word.
func takeOver(h state.Holder) string {
	var commands []string
	if !h.Gone {
		commands = []string{"pullet decommission " + h.Node}
	}
	for _, step := range h.Took[:min(len(h.Took), shownMissing)] { // the next ones are named when these are settled
		commands = append(commands, state.SettleCommand(step, "--again"))
	}
	return fmt.Sprintf(
		"start %s again, or let another node run what it started again: %s",
		h.Node,
		strings.Join(commands, "; "),
	)
}

// etcdAway is the wait of a node while etcd does not answer.
func etcdAway(err error) *Wait {
	return &Wait{
		Kind:   state.WaitEtcd,
		Gate:   "etcd",
		Reason: err.Error(),
		Remedy: state.Act("no gated step starts without it; pullet doctor"),
	}
}
