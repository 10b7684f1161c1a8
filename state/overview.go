package state

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Overview is the fleet's record at one revision.
type Overview struct {
	Revision int64
	Current  *Version
	Held     bool // at Current: nobody proposes a newer one now
	Nodes    map[string]Node
	Gone     map[string]bool // decommissioned
	Alive    map[string]bool
	Hosts    map[string][]Alive // node -> who runs under its name: more than one are copies of one state directory
	Facts    map[string]json.RawMessage
	Services map[string]map[string]Service    // name -> node -> instance
	Running  map[string]string                // node -> version
	Releases map[string]string                // version -> release, of the last versions that have one
	Statuses map[string]map[string]StatusLine // node -> category -> status
	Slots    map[string]map[string]Claim      // group -> index -> claim
	Gates    map[string]Gate                  // of the current version, by group
	Rosters  map[string]*Roster               // of the current version, by group: as far as somebody asked
}

// StatusLine is a status with its state.
type StatusLine struct {
	State string `json:"state"`
	Status
}

// Overview reads the fleet's record at one revision. Facts and services are read only where they are asked for.
func (s *Store) Overview(ctx context.Context, facts bool) (*Overview, error) {
	prefixes := []string{"node/", "alive/", "rival/", "running_version/", "status/", "slot/", "history/"}
	if facts {
		prefixes = append(prefixes, "facts/", "service/")
	}
	o, err := s.overview(ctx, prefixes...)
	if err != nil {
		return nil, err
	}
	if o.Held, err = s.Holds(ctx, o.Current); err != nil {
		return nil, err
	}
	return o, s.gates(ctx, o)
}

// View reads what templates see of the fleet, at one revision: nodes and who of them answers, facts, services.
func (s *Store) View(ctx context.Context) (*Overview, error) {
	return s.overview(ctx, "node/", "alive/", "facts/", "service/")
}

func (s *Store) overview(ctx context.Context, prefixes ...string) (*Overview, error) {
	ops := []clientv3.Op{clientv3.OpGet(s.CurrentKey())}
	for _, p := range prefixes {
		ops = append(ops, clientv3.OpGet(s.prefix+p, clientv3.WithPrefix()))
	}
	got, err := s.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	o := &Overview{
		Revision: got.Header.Revision, Nodes: map[string]Node{}, Gone: map[string]bool{}, Alive: map[string]bool{}, Facts: map[string]json.RawMessage{}, Hosts: map[string][]Alive{},
		Running: map[string]string{}, Statuses: map[string]map[string]StatusLine{}, Slots: map[string]map[string]Claim{}, Gates: map[string]Gate{}, Rosters: map[string]*Roster{},
		Services: map[string]map[string]Service{}, Releases: map[string]string{},
	}
	for _, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			if err := o.take(strings.TrimPrefix(string(kv.Key), s.prefix), kv.Value); err != nil {
				return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
			}
		}
	}
	return o, nil
}

// take files one key under what it says.
func (o *Overview) take(key string, value []byte) error {
	parts := strings.Split(key, "/")
	last := parts[len(parts)-1]
	switch parts[0] {
	case "current_version":
		return json.Unmarshal(value, &o.Current)
	case "node":
		var n Node
		err := json.Unmarshal(value, &n)
		if o.Gone[last] = n.Decommissioned; !n.Decommissioned {
			o.Nodes[last] = n
		}
		return err
	case "alive":
		o.Alive[last] = true
		return o.host(last, value)
	case "rival":
		return o.host(parts[1], value)
	case "facts":
		o.Facts[last] = value
	case "service":
		var one Service
		err := json.Unmarshal(value, &one)
		if o.Services[parts[1]] == nil {
			o.Services[parts[1]] = map[string]Service{}
		}
		o.Services[parts[1]][last] = one
		return err
	case "history":
		var v Version
		err := json.Unmarshal(value, &v)
		if v.Release != "" {
			o.Releases[v.ID] = v.Release
		}
		return err
	case "running_version":
		o.Running[last] = parts[1]
	case "slot":
		var c Claim
		err := json.Unmarshal(value, &c)
		if o.Slots[parts[1]] == nil {
			o.Slots[parts[1]] = map[string]Claim{}
		}
		o.Slots[parts[1]][last] = c
		return err
	case "status":
		line := StatusLine{State: parts[2]}
		err := json.Unmarshal(value, &line.Status)
		if o.Statuses[last] == nil {
			o.Statuses[last] = map[string]StatusLine{}
		}
		o.Statuses[last][parts[1]] = line
		return err
	}
	return nil
}

// host is one of those that use a node's name.
func (o *Overview) host(node string, value []byte) error {
	var a Alive
	err := json.Unmarshal(value, &a)
	if !slices.ContainsFunc(o.Hosts[node], func(b Alive) bool { return a.mark() == b.mark() }) {
		o.Hosts[node] = append(o.Hosts[node], a)
	}
	return err
}

// gates reads the gates and rosters of the current version, at the same revision.
func (s *Store) gates(ctx context.Context, o *Overview) error {
	if o.Current == nil {
		return nil
	}
	got, err := s.Client.Get(ctx, s.GateKey(o.Current.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithRev(o.Revision))
	if err != nil {
		return err
	}
	for _, kv := range got.Kvs {
		var g Gate
		if err := json.Unmarshal(kv.Value, &g); err != nil {
			return fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		o.Gates[LastPart(kv.Key)] = g
	}
	got, err = s.Client.Get(ctx, s.RosterKey(o.Current.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithRev(o.Revision))
	if err != nil {
		return err
	}
	for _, kv := range got.Kvs {
		roster, err := DecodeRoster(kv.Value)
		if err != nil {
			return fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		o.Rosters[LastPart(kv.Key)] = roster
	}
	return nil
}
