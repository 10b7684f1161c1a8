package state

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Lock is one gate that nodes hold, or have to come to.
type Lock struct {
	Kind  string    `json:"kind"` // slot, serialize, barrier, election
	Name  string    `json:"name"` // the group, or the step
	Place string    `json:"place,omitempty"`
	Node  string    `json:"node,omitempty"` // the holder
	Step  string    `json:"step,omitempty"` // that it started last
	Since time.Time `json:"since,omitzero"`
	Alive bool      `json:"alive"`

	In      int      `json:"in,omitempty"`      // nodes that came to a barrier
	Missing []string `json:"missing,omitempty"` // and those that did not
	Left    []string `json:"left,omitempty"`    // out of its roster, and why
	Took    []string `json:"took,omitempty"`    // steps that a chosen node started and that stand: they keep its place
	Gone    bool     `json:"gone,omitempty"`    // an operator gave it up
	Unread  string   `json:"unread,omitempty"`  // why its record cannot be read
}

// Locks are the slots, the claims of serialized steps, the barriers that are not open and the elections of the current
// rollout, at the revision of an overview.
func (s *Views) Locks(ctx context.Context, o *Overview) ([]Lock, error) {
	var out []Lock
	for group, claims := range o.Slots {
		for place, c := range claims {
			out = append(out, o.claimed("slot", group, place, c))
		}
	}
	got, err := s.store.Client.Get(
		ctx, s.store.Steps.SemaphorePrefix(""), clientv3.WithPrefix(), clientv3.WithRev(o.Revision),
	)
	if err != nil {
		return nil, err
	}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		c := s.store.Rollouts.ReadClaim(kv)
		name := cmp.Or(c.Step, k.Hash) // it is about to start it
		out = append(out, o.claimed("serialize", name, strconv.Itoa(k.Place), c))
	}
	if o.Current == nil {
		return out, nil
	}
	// Elections are the version's, barriers the rollout's.
	for _, of := range slices.Compact([]string{o.Current.ID, o.Current.Rollout()}) {
		byHash, err := s.store.Steps.stepKeys(ctx, of, o.Revision)
		if err != nil {
			return nil, err
		}
		for hash, keys := range byHash {
			if of != o.Current.Rollout() { // a barrier of an earlier move to this version
				delete(keys, "roster")
			}
			out = append(out, o.stepLocks(s.store, hash, keys)...)
		}
	}
	return out, nil
}

// stepKeys are the keys of the steps and elections of a version or a rollout, by their hash.
func (s *Steps) stepKeys(
	ctx context.Context,
	of string,
	revision int64,
) (map[string]map[string]*mvccpb.KeyValue, error) {
	prefix := s.store.key("run", of) + "/"
	got, err := s.store.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]*mvccpb.KeyValue{}
	for _, kv := range got.Kvs {
		if k, err := s.store.Key(kv); err == nil && k.Hash != "" {
			_, rest, _ := strings.Cut(string(kv.Key[len(prefix):]), "/")
			file(out, k.Hash, rest, kv)
		}
	}
	return out, nil
}

func (o *Overview) claimed(kind, name, place string, c Claim) Lock {
	l := Lock{Kind: kind, Name: name, Place: place, Node: c.Node, Step: c.Step, Since: c.Since, Alive: o.Alive[c.Node]}
	if c.Unread != nil {
		l.Unread = c.Unread.Error()
	}
	return l
}

// stepLocks are the gates that the keys of one step, or of one election, show.
func (o *Overview) stepLocks(s *Store, hash string, keys map[string]*mvccpb.KeyValue) []Lock {
	title := func(key string) string {
		if keys[key] == nil {
			return ""
		}
		text, _ := Read[Title](s, keys[key]) // for people
		return string(text)
	}
	var out []Lock
	for key, kv := range keys {
		place, ok := strings.CutPrefix(key, "place/")
		if !ok {
			continue
		}
		node, err := Read[NodeName](s, kv)
		l := Lock{
			Kind:  "election",
			Name:  cmp.Or(title("name"), hash),
			Place: place,
			Node:  string(node),
			Alive: o.Alive[string(node)],
			Gone:  o.Gone[string(node)],
		}
		for _, key := range inOrder(keys, "took/"+l.Node+"/") {
			l.Step = title(key)
			l.Took = append(l.Took, l.Step)
		}
		if err != nil {
			l.Unread = err.Error()
		}
		out = append(out, l)
	}
	if keys["roster"] == nil || keys["open"] != nil || keys["count"] == nil { // nobody came yet, or all did
		return out
	}
	roster, err := s.Rosters.read(keys["roster"])
	if err != nil {
		return append(out, Lock{Kind: "barrier", Name: title("count"), Unread: err.Error()})
	}
	l := Lock{Kind: "barrier", Name: title("count"), Left: roster.Left}
	for _, node := range roster.Nodes() {
		if keys["in/"+node] != nil {
			l.In++
		} else if !o.Gone[node] {
			l.Missing = append(l.Missing, node)
		}
	}
	return append(out, l)
}

// inOrder are the keys below a prefix in the order in which they were written.
func inOrder(keys map[string]*mvccpb.KeyValue, prefix string) (out []string) {
	for key := range keys {
		if strings.HasPrefix(key, prefix) {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(keys[a].ModRevision, keys[b].ModRevision) })
	return out
}
