package lock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Request is a node's wish to change to a version.
type Request struct {
	Presence    *state.Presence
	Version     *state.Version
	VersionRev  int64 // the revision at which the version was agreed: admission compares it
	Run         string
	Group       string               // the node's role
	Limit       func(roster int) int // of the group, for a roster of that size
	Depends     []string             // groups that must be done first
	Members     map[string]string    // the inventory: node -> role
	MaxFailures int                  // failures that the group survives
	Waiting     func(w *Wait)        // told each new reason; may be nil
}

// Slot is a claim that a node holds.
type Slot struct {
	store *state.Store
	req   Request
	key   string
	fence int64
}

// Fence is the revision at which the claim was made. It grows with each claim and names the holder for good.
func (s *Slot) Fence() int64 { return s.fence }

// ErrSuperseded says that the fleet moved on to another version while the node waited.
var ErrSuperseded = errors.New("superseded: the fleet moved on to another version")

// poll is how long a waiting node trusts that the bell would have rung.
const poll = 15 * time.Second

// Try claims a slot if the node is admitted now; else it says why not.
func Try(ctx context.Context, store *state.Store, req Request) (*Slot, *Wait, error) {
	for {
		r := newReader(store, req)
		slot, wait, err := r.try(ctx)
		if slot != nil || wait != nil || err != nil {
			return slot, wait, err
		}
	}
}

// Acquire waits until the node is admitted, and claims a slot. A claim that the node holds already, also of an older version, is
// adopted. When ctx ends first it returns the *Wait that stood in the way, or ctx's error if it was not told one; and ErrSuperseded when
// the version changes.
func Acquire(ctx context.Context, store *state.Store, req Request) (*Slot, error) {
	began := time.Now()
	var said string
	var last *Wait
	for {
		r := newReader(store, req)
		slot, wait, err := r.try(ctx)
		switch {
		case slot != nil || errors.Is(err, ErrSuperseded):
			return slot, err
		case err != nil && ctx.Err() != nil && last != nil: // it ended while the store was asked: the last answer stands
			return nil, last
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			wait = &Wait{Gate: "etcd", Reason: err.Error(), Clear: "no gated step is started without it"}
		}
		if wait != nil {
			wait.Since, last = began, wait
			if req.Waiting != nil && wait.Error() != said {
				said = wait.Error()
				req.Waiting(wait)
			}
			if !store.Listen(ctx, r.revision, poll) {
				return nil, wait
			}
		}
	}
}

// reader is one attempt: everything it read is at one revision.
type reader struct {
	store    *state.Store
	req      Request
	revision int64
	gates    map[string]int64 // revisions of the gates of the group and of those that it depends on; 0: nothing was said
	fences   map[int]int64    // create revisions of the claims; 0: free
	frozen   int              // nodes in the frozen roster of the group
	leased   bool             // the node's registration is the one that it made, on a lease that lives
}

func newReader(store *state.Store, req Request) *reader {
	return &reader{store: store, req: req, gates: map[string]int64{}, fences: map[int]int64{}}
}

// try reads, decides and claims. Neither a slot nor a wait means that something moved in between: try again.
func (r *reader) try(ctx context.Context) (*Slot, *Wait, error) {
	view, err := r.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	if !r.leased {
		return nil, &Wait{Gate: "lease of " + view.Node, Reason: "it ended, or another host took the name", Clear: "the next pull registers anew"}, nil
	}
	index, wait := Decide(view)
	if wait != nil {
		return nil, wait, nil
	}
	key, fence := r.store.SlotPrefix(r.req.Group)+strconv.Itoa(index), r.fences[index]
	retried := fence != 0 && view.Claims[index].Version == view.Version
	done, err := r.claim(ctx, key, fence, retried)
	if err != nil || !done.Succeeded {
		return nil, nil, err
	}
	if fence == 0 {
		fence = done.Header.Revision
	}
	return &Slot{r.store, r.req, key, fence}, nil, nil
}

// claim commits the admission if nothing moved: the slot is free (or still ours), the gates and the version are as they were
// read, and our lease lives. A claim for the same version is retried whatever the gates say.
func (r *reader) claim(ctx context.Context, key string, fence int64, retried bool) (*clientv3.TxnResponse, error) {
	conditions := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), "=", fence),
		clientv3.Compare(clientv3.ModRevision(r.store.CurrentKey()), "=", r.req.VersionRev),
		clientv3.Compare(clientv3.ModRevision(r.req.Presence.Key), "=", r.req.Presence.Revision),
	}
	if fence == 0 { // of two that count the same nodes, and find room for one, one is admitted
		moved := clientv3.Compare(clientv3.ModRevision(r.store.SlotPrefix(r.req.Group)), "<", r.revision+1)
		conditions = append(conditions, moved.WithPrefix())
	}
	if !retried {
		for _, group := range append([]string{r.req.Group}, r.req.Depends...) {
			gate := r.store.GateKey(r.req.Version.ID, group)
			conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(gate), "=", r.gates[group]))
		}
	}
	node := r.req.Presence.Node.Name
	value, err := json.Marshal(state.Claim{Node: node, Version: r.req.Version.ID, Release: r.req.Version.Release, Since: time.Now().UTC()})
	if err != nil {
		return nil, err
	}
	ops := append([]clientv3.Op{clientv3.OpPut(key, string(value))}, r.store.StatusOps(node, state.Rollout, state.Running, r.req.status(""))...)
	return r.store.Client.Txn(ctx).If(conditions...).Then(ops...).Commit()
}

// status is what is recorded of the node in this rollout.
func (q Request) status(reason string) state.Status {
	return state.Status{Version: q.Version.ID, Release: q.Version.Release, Run: q.Run, Reason: reason, Time: time.Now().UTC()}
}

// view reads what the decision rests on.
func (r *reader) view(ctx context.Context) (View, error) {
	s, q := r.store, r.req
	rosters, err := r.rosters(ctx)
	if err != nil {
		return View{}, err
	}
	keysOnly := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly()}
	ops := []clientv3.Op{
		clientv3.OpGet(s.CurrentKey(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.SlotPrefix(q.Group), clientv3.WithPrefix()),
		clientv3.OpGet(s.NodeKey(""), keysOnly...),
		clientv3.OpGet(s.AliveKey(""), keysOnly...),
		clientv3.OpGet(s.RunningKey(q.Version.ID, ""), keysOnly...),
		clientv3.OpGet(s.GateKey(q.Version.ID, ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.DecommissionedKey(""), keysOnly...),
	}
	got, err := s.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return View{}, err
	}
	r.revision = got.Header.Revision
	kvs := func(i int) []*keyValue { return got.Responses[i].GetResponseRange().Kvs }
	if current := kvs(0); len(current) == 0 || current[0].ModRevision != q.VersionRev {
		return View{}, ErrSuperseded
	}
	leave(rosters, lastParts(kvs(6)))
	v := View{Node: q.Presence.Node.Name, Group: q.Group, Version: q.Version.ID, Roster: rosters[q.Group], Claims: map[int]state.Claim{}}
	v.Limit = q.Limit(r.frozen)
	v.Known, v.Alive = lastParts(kvs(2)), lastParts(kvs(3))
	for _, kv := range kvs(3) {
		r.leased = r.leased || string(kv.Key) == q.Presence.Key && kv.ModRevision == q.Presence.Revision
	}
	if err := r.claims(&v, kvs(1)); err != nil {
		return View{}, err
	}
	gates, err := r.readGates(kvs(5))
	if err != nil {
		return View{}, err
	}
	v.Gate = gates[q.Group]
	done := lastParts(kvs(4))
	for _, g := range q.Depends {
		v.Depends = append(v.Depends, Dependency{Group: g, Roster: rosters[g], Done: done, Gate: gates[g]})
	}
	return v, nil
}

// leave takes nodes that were given up out of frozen rosters.
func leave(rosters map[string][]string, gone map[string]bool) {
	for group, roster := range rosters {
		rosters[group] = slices.DeleteFunc(roster, func(node string) bool { return gone[node] })
	}
}

func (r *reader) claims(v *View, kvs []*keyValue) error {
	for _, kv := range kvs {
		var c state.Claim
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			return fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		index, err := strconv.Atoi(state.LastPart(kv.Key))
		if err != nil {
			return fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		v.Claims[index], r.fences[index] = c, kv.CreateRevision
	}
	return nil
}

func (r *reader) readGates(kvs []*keyValue) (map[string]state.Gate, error) {
	out := map[string]state.Gate{}
	for _, kv := range kvs {
		var g state.Gate
		if err := json.Unmarshal(kv.Value, &g); err != nil {
			return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		group := state.LastPart(kv.Key)
		out[group], r.gates[group] = g, kv.ModRevision
	}
	return out, nil
}

func lastParts(kvs []*keyValue) map[string]bool {
	out := map[string]bool{}
	for _, kv := range kvs {
		out[state.LastPart(kv.Key)] = true
	}
	return out
}

// rosters are the frozen rosters of the group and of those that it depends on.
func (r *reader) rosters(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	for _, g := range append([]string{r.req.Group}, r.req.Depends...) {
		roster, err := r.store.FreezeRoster(ctx, r.req.Version.ID, g, r.req.Members)
		if err != nil {
			return nil, err
		}
		if g == r.req.Group {
			r.frozen = len(roster)
		}
		if g == r.req.Group && !slices.Contains(roster, r.req.Presence.Node.Name) {
			roster = append(roster, r.req.Presence.Node.Name) // joined after the roster was frozen
		}
		out[g] = roster
	}
	return out, nil
}
