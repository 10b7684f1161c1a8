package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
}

// Locks are the slots, the claims of serialized steps, the barriers that are not open and the elections of the current rollout, at the
// revision of an overview.
func (s *Store) Locks(ctx context.Context, o *Overview) ([]Lock, error) {
	var out []Lock
	for group, claims := range o.Slots {
		for place, c := range claims {
			out = append(out, o.claimed("slot", group, place, c))
		}
	}
	got, err := s.Client.Get(ctx, s.SemaphorePrefix(""), clientv3.WithPrefix(), clientv3.WithRev(o.Revision))
	if err != nil {
		return nil, err
	}
	for _, kv := range got.Kvs {
		var c Claim
		if err := json.Unmarshal(kv.Value, &c); err != nil {
			return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		name := c.Step
		if name == "" { // it is about to start it
			name = strings.Split(string(kv.Key[len(s.prefix):]), "/")[1]
		}
		out = append(out, o.claimed("serialize", name, LastPart(kv.Key), c))
	}
	if o.Current == nil {
		return out, nil
	}
	// Elections are the version's, barriers the rollout's.
	for _, of := range slices.Compact([]string{o.Current.ID, o.Current.Rollout()}) {
		byHash, err := s.stepKeys(ctx, of, o.Revision)
		if err != nil {
			return nil, err
		}
		for hash, keys := range byHash {
			if of != o.Current.Rollout() { // a barrier of an earlier move to this version
				delete(keys, "roster")
			}
			locks, err := o.stepLocks(hash, keys)
			if err != nil {
				return nil, err
			}
			out = append(out, locks...)
		}
	}
	return out, nil
}

// stepKeys are the keys of the steps and elections of a version or a rollout, by their hash.
func (s *Store) stepKeys(ctx context.Context, of string, revision int64) (map[string]map[string]*mvccpb.KeyValue, error) {
	prefix := s.key("run", of) + "/"
	got, err := s.Client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]*mvccpb.KeyValue{}
	for _, kv := range got.Kvs {
		hash, rest, _ := strings.Cut(string(kv.Key[len(prefix):]), "/")
		if out[hash] == nil {
			out[hash] = map[string]*mvccpb.KeyValue{}
		}
		out[hash][rest] = kv
	}
	return out, nil
}

func (o *Overview) claimed(kind, name, place string, c Claim) Lock {
	return Lock{Kind: kind, Name: name, Place: place, Node: c.Node, Step: c.Step, Since: c.Since, Alive: o.Alive[c.Node]}
}

// stepLocks are the gates that the keys of one step, or of one election, show.
func (o *Overview) stepLocks(hash string, keys map[string]*mvccpb.KeyValue) ([]Lock, error) {
	name := hash
	if kv := keys["name"]; kv != nil {
		name = string(kv.Value)
	}
	var out []Lock
	for key, kv := range keys {
		place, ok := strings.CutPrefix(key, "place/")
		if !ok {
			continue
		}
		l := Lock{Kind: "election", Name: name, Place: place, Node: string(kv.Value), Alive: o.Alive[string(kv.Value)]}
		if started := keys["started/"+l.Node]; started != nil {
			l.Step = string(started.Value)
		}
		out = append(out, l)
	}
	if keys["roster"] == nil || keys["open"] != nil || keys["count"] == nil { // nobody came yet, or all did
		return out, nil
	}
	roster, err := DecodeRoster(keys["roster"].Value)
	if err != nil {
		return nil, fmt.Errorf("etcd key %s: %w", keys["roster"].Key, err)
	}
	l := Lock{Kind: "barrier", Name: string(keys["count"].Value), Left: roster.Left}
	for _, node := range roster.Nodes() {
		if keys["in/"+node] != nil {
			l.In++
		} else if !o.Gone[node] {
			l.Missing = append(l.Missing, node)
		}
	}
	return append(out, l), nil
}
