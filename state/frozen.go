package state

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Orders are what operators want of a node, at one revision.
type Orders struct {
	Freeze   *Switch  // that stops all changes of the node, drift correction included; nil: none does
	Scope    Scope    // of Freeze
	Commands []string // that somebody has to run; CommandsFor tells which of them this node has to
	Begun    bool     // the begin of a run is on record
}

// Orders reads what operators want of a node. Of switches the nearest scope counts: host over role over global. Where there is no switch at all, a run
// that is given begins in the same transaction, as BeginRun does.
func (s *Store) Orders(ctx context.Context, p *Presence, role string, run *Status) (Orders, error) {
	scopes := []Scope{HostScope(p.Node.Name), RoleScope(role), GlobalScope()}
	reads := []clientv3.Op{clientv3.OpGet(s.pendingKey(""), clientv3.WithPrefix(), clientv3.WithKeysOnly())}
	unswitched := s.mayBegin(p)
	for _, c := range scopes {
		reads = append(reads, clientv3.OpGet(s.SwitchKey(c)))
		unswitched = append(unswitched, clientv3.Compare(clientv3.CreateRevision(s.SwitchKey(c)), "=", 0))
	}
	txn := s.Client.Txn(ctx).Then(reads...)
	if run != nil {
		txn = s.Client.Txn(ctx).If(unswitched...).Then(append(reads, s.StatusOps(p.Node.Name, Configured, Running, *run)...)...).Else(reads...)
	}
	got, err := txn.Commit()
	if err != nil {
		return Orders{}, err
	}
	o := Orders{Begun: run != nil && got.Succeeded}
	for _, kv := range got.Responses[0].GetResponseRange().Kvs {
		if k, err := s.Key(kv); err == nil {
			o.Commands = append(o.Commands, k.Word)
		}
	}
	for i, c := range scopes {
		for _, kv := range got.Responses[1+i].GetResponseRange().Kvs {
			w := s.ReadSwitch(kv)
			if !w.Enabled && w.AllChanges {
				o.Freeze, o.Scope = &w, c
			}
			return o, nil
		}
	}
	return o, nil
}

// Freeze is the switch that stops all changes of this node, as it knew it last: it holds also while etcd is away.
type Freeze struct {
	Switch
	Scope string `json:"scope"` // "host web1", "role web", "global"
}

// Ended reports that the time of a freeze is over, by this host's clock.
func (f *Freeze) Ended(now time.Time) bool { return !f.Until.IsZero() && now.After(f.Until) }
