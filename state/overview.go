package state

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Overview is the fleet's record at one revision.
type Overview struct {
	Revision int64
	Current  *Version
	Unread   *BadRecordError       // why Current is not known; nil where there is none
	Leases   map[string]int64      // of the nodes that are alive
	Times    map[string]LeaseTimes // of nodes for which others wait: see Idles
	Doubting map[string]Doubt      // nodes that live, and do not accept the fleet's record
	Grace    bool                  // etcd restarted, and nodes in the middle of an upgrade report first
	Skipped  *Skipped              // the newest commit that the fleet does not take; nil: none is known
	Held     bool                  // at Current: nobody proposes a newer one now
	Nodes    map[string]Node
	Gone     map[string]bool // decommissioned
	Alive    map[string]bool
	Hosts    map[string][]Alive // node -> who runs under its name: more than one are copies of one state directory
	Facts    map[string]Facts
	Services map[string]map[string]Service    // name -> node -> instance
	Running  map[string]string                // node -> version
	Releases map[string]string                // version -> release, of the last versions that have one
	Statuses map[string]map[string]StatusLine // node -> category -> status
	Slots    map[string]map[string]Claim      // group -> index -> claim
	Gates    map[string]Gate                  // of the current version, by group
	Rosters  map[string]*Roster               // of the current version, by group: as far as somebody asked
	Closed   map[string]bool                  // groups of the current rollout that are through
	Soaks    map[string]time.Time             // those of them that are watched before others follow, and until when
	Listed   map[string]string                // nodes of the current version's inventory -> role
	Switches map[string]Switch                // all that operators set, by scope, with "pause" and "store"
	Ending   []EndingSoon                     // certificates near their end
	Carriers string                           // for what the next change of the datastore's members waits; "": for nothing
	Reacts   bool                             // something is on record of reactions
	Settled  map[string]Settlement            // step -> what was said of it last, in the fleet's version or in its life

	holders   map[string]int64  // node -> the revision at which the slot that it holds was written
	ran       map[string]int64  // node -> the revision at which Running was said
	settledIn map[string]string // step -> the scope of its record
}

// StatusLine is a status with its state.
type StatusLine struct {
	State string `json:"state"`
	Status
	Revision int64 `json:"-"` // of etcd, at which it was said
}

// Fleet reads the fleet's record at one revision. Facts and services are read only where they are asked for.
func (s *Views) Fleet(ctx context.Context, facts bool) (*Overview, error) {
	prefixes := []string{
		"node/", "alive/", "rival/", "running_version/", "status/", "lost/", "slot/", "history/", "config_state/", "skipped",
		"settled/", "store_grace", "doubting/", "authority", "datastore/steps",
	}
	if facts {
		prefixes = append(prefixes, "facts/", "service/")
	}
	o, err := s.read(ctx, prefixes, s.reacts()...)
	if err != nil {
		return nil, err
	}
	if o.Held, err = s.store.Versions.Holds(ctx, o.Current); err != nil {
		return nil, err
	}
	o.Skipped = o.Skipped.Beside(o.Current, o.Held)
	o.unregistered()
	o.clones()
	if err := s.store.Steps.rerun(ctx, o); err != nil {
		return nil, err
	}
	return o, s.gates(ctx, o)
}

// Templates reads what templates see of the fleet, at one revision: nodes and who of them answers, facts, services.
func (s *Views) Templates(ctx context.Context) (*Overview, error) {
	return s.read(ctx, []string{"node/", "alive/", "facts/", "service/"})
}

// read reads the records below prefixes, and what further operations read.
func (s *Views) read(ctx context.Context, prefixes []string, more ...clientv3.Op) (*Overview, error) {
	ops := append(more, clientv3.OpGet(s.store.Versions.CurrentKey()))
	for _, p := range prefixes {
		ops = append(ops, clientv3.OpGet(s.store.prefix+p, clientv3.WithPrefix()))
	}
	got, err := s.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, err
	}
	o := &Overview{
		Revision: got.Header.Revision, Nodes: map[string]Node{}, Gone: map[string]bool{}, Alive: map[string]bool{},
		Facts: map[string]Facts{}, Hosts: map[string][]Alive{},
		Running: map[string]string{}, Statuses: map[string]map[string]StatusLine{}, Slots: map[string]map[string]Claim{},
		Gates: map[string]Gate{}, Rosters: map[string]*Roster{},
		Services: map[string]map[string]Service{}, Releases: map[string]string{}, Switches: map[string]Switch{},
		Closed: map[string]bool{}, Soaks: map[string]time.Time{},
		Leases: map[string]int64{}, Times: map[string]LeaseTimes{}, Doubting: map[string]Doubt{},
		Settled: map[string]Settlement{}, settledIn: map[string]string{}, ran: map[string]int64{},
		holders: map[string]int64{},
	}
	for _, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			if k, err := s.store.Key(kv); err == nil {
				o.add(s.store, k, kv)
			}
		}
	}
	return o, nil
}

// add files one record under what it says.
func (o *Overview) add(s *Store, k Key, kv *mvccpb.KeyValue) {
	switch k.kind.shape {
	case "current_version":
		v, err := Read[Version](s, kv)
		if o.Unread, _ = errors.AsType[*BadRecordError](err); err == nil {
			o.Current = &v
		}
	case "node/NODE":
		if n, err := Read[Node](s, kv); err == nil {
			if o.Gone[k.Node] = n.Decommissioned; !n.Decommissioned {
				o.Nodes[k.Node] = n
			}
		}
	case "alive/NODE":
		o.Alive[k.Node], o.Leases[k.Node] = true, kv.Lease
		o.host(s, k.Node, kv)
	case "rival/NODE/HASH":
		o.host(s, k.Node, kv)
	case "facts/NODE":
		if f, err := Read[Facts](s, kv); err == nil {
			o.Facts[k.Node] = f
		}
	case "service/NODE/SERVICE":
		if one, err := Read[Service](s, kv); err == nil {
			file(o.Services, k.Service, k.Node, one)
		}
	case "doubting/NODE":
		if d, err := Read[Doubt](s, kv); err == nil {
			o.doubting(k.Node, d, kv.ModRevision)
		}
	case "datastore/steps":
		steps, _ := Read[MemberSteps](s, kv)
		o.Carriers = steps.Waits
	case "authority":
		a, _ := Read[Authority](s, kv) // one that cannot be read names nobody
		o.Ending = a.Ending
	case "reactor/group/HASH", "reaction_given/WORD", "reaction_paused/HASH":
		o.Reacts = true
	case "store_grace":
		o.Grace = true // it goes with its lease
	case "skipped":
		if one, err := Read[Skipped](s, kv); err == nil {
			o.Skipped = &one
		}
	case "settled/ROLLOUT/HASH":
		o.takeSettled(s, k, kv)
	case "history/SEQ":
		if v, err := Read[Version](s, kv); err == nil && v.Release != "" {
			o.Releases[v.ID] = v.Release
		}
	case "running_version/VERSION/NODE":
		o.runs(k.Node, k.Version, kv.ModRevision)
	case "slot/GROUP/PLACE":
		c := s.Rollouts.ReadClaim(kv)
		file(o.Slots, k.Group, strconv.Itoa(k.Place), c)
		o.holders[c.Node] = max(o.holders[c.Node], kv.ModRevision)
	case "config_state/pause",
		"config_state/store",
		"config_state/enable/global",
		"config_state/enable/role/GROUP",
		"config_state/enable/host/NODE":
		o.Switches[k.scope()] = s.Switches.Read(kv)
	case "status/CATEGORY/STATE/NODE":
		if st, err := Read[Status](s, kv); err == nil {
			o.said(k.Node, k.Category, StatusLine{k.State, st, cmp.Or(st.Said, kv.ModRevision)})
		}
	case "lost/NODE":
		if st, err := Read[Status](s, kv); err == nil {
			o.said(k.Node, Rollout, StatusLine{Failed, st, kv.ModRevision})
		}
	}
}

// said files what is said of a node: what was said last holds.
func (o *Overview) said(node, category string, line StatusLine) {
	if line.Revision > o.Statuses[node][category].Revision {
		file(o.Statuses, node, category, line)
	}
}

// runs files the version that a node runs: what was said last holds.
func (o *Overview) runs(node, version string, at int64) {
	if at <= o.ran[node] {
		return
	}
	if o.Running[node], o.ran[node] = version, at; version == "" {
		delete(o.Running, node)
	}
}

// doubting files what a node says that knows better than a restored record, which may name a version that the node ran
// before.
func (o *Overview) doubting(node string, d Doubt, at int64) {
	o.Doubting[node] = d
	if o.runs(node, d.Running, at); d.Release != "" {
		o.Releases[d.Running] = d.Release
	}
}

// unregistered adds the nodes that a restored record does not know and that say that they live.
func (o *Overview) unregistered() {
	for node, d := range o.Doubting {
		if _, known := o.Nodes[node]; !known && !o.Gone[node] {
			o.Nodes[node] = Node{Name: node, LastSeen: d.At}
		}
	}
}

// In reports that the gate of a group holds for a node: of all groups, of the one whose roster has it, or, where none
// does, of its role.
func (o *Overview) In(node, group string) bool {
	listed := false // in a roster; in two where it changed its role in mid-rollout
	for of, roster := range o.Rosters {
		if has := roster.Has(node); has && group == of {
			return true
		} else if has {
			listed = true
		}
	}
	return group == AllGroups || !listed && group == GroupOf(o.Nodes[node].Role)
}

// NoVersion is why there is no current version.
func (o *Overview) NoVersion() error {
	if o.Unread != nil {
		return o.Unread
	}
	return ErrNoVersion
}

// file puts a value into a map of maps.
func file[T any](into map[string]map[string]T, outer, inner string, value T) {
	if into[outer] == nil {
		into[outer] = map[string]T{}
	}
	into[outer][inner] = value
}

// host is one of those that use a node's name.
func (o *Overview) host(s *Store, node string, kv *mvccpb.KeyValue) {
	a, err := Read[Alive](s, kv)
	if err == nil && !slices.ContainsFunc(o.Hosts[node], func(b Alive) bool { return a.mark() == b.mark() }) {
		o.Hosts[node] = append(o.Hosts[node], a)
	}
}

// clones says of the nodes that several hosts run under one name that they failed: none of these hosts may write it.
func (o *Overview) clones() {
	for node, hosts := range o.Hosts {
		if n, known := o.Nodes[node]; known && len(hosts) > 1 {
			st := Status{
				Version: o.Running[node],
				Release: o.Releases[o.Running[node]],
				Reason:  Cloned(node, hosts),
				Remedy:  Act(ClonedClear(node)),
				Kind:    WaitClone,
				Time:    n.LastSeen,
			}
			file(o.Statuses, node, Configured, StatusLine{State: Failed, Status: st})
		}
	}
}

// gates reads the gates, the rosters, how far the groups are and the inventory of the current version, at the same
// revision.
func (s *Views) gates(ctx context.Context, o *Overview) error {
	if o.Current == nil {
		return nil
	}
	at := clientv3.WithRev(o.Revision)
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.Rollouts.GateKey(o.Current.Rollout(), ""), clientv3.WithPrefix(), at),
		clientv3.OpGet(s.store.Rosters.Key(o.Current.Rollout(), ""), clientv3.WithPrefix(), at),
		clientv3.OpGet(s.store.Nodes.ListedKey(o.Current.ID), at),
		clientv3.OpGet(
			s.store.Rollouts.ClosedKey(o.Current.Rollout(), ""), clientv3.WithPrefix(), clientv3.WithKeysOnly(), at,
		),
		clientv3.OpGet(s.store.Rollouts.SoakKey(o.Current.Rollout(), ""), clientv3.WithPrefix(), at),
	).Commit()
	if err != nil {
		return err
	}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		if group, g := s.store.Rollouts.ReadGate(kv); group != "" {
			o.Gates[group] = g
		}
	}
	for _, kv := range got.Responses[1].GetResponseRange().Kvs {
		if roster, err := s.store.Rosters.read(kv); err == nil {
			k, _ := s.store.Key(kv)
			o.Rosters[k.Group] = roster
		}
	}
	for _, kv := range got.Responses[2].GetResponseRange().Kvs {
		if listed, err := Read[Listed](s.store, kv); err == nil {
			o.Listed = listed.roles()
		}
	}
	o.passed(s.store, got.Responses[3].GetResponseRange().Kvs, got.Responses[4].GetResponseRange().Kvs)
	return nil
}

// passed files which groups are through, and which of them are watched.
func (o *Overview) passed(s *Store, closed, soaks []*mvccpb.KeyValue) {
	for _, kv := range closed {
		if k, err := s.Key(kv); err == nil {
			o.Closed[k.Group] = true
		}
	}
	for _, kv := range soaks {
		if k, err := s.Key(kv); err == nil {
			until, _ := Read[Moment](s, kv) // for people; the key alone says that it is watched
			o.Soaks[k.Group] = until.Time
		}
	}
}
