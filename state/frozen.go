package state

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Frozen is the switch that stops all changes of a node, drift correction included, with its scope; nil where none does. The nearest scope
// counts: host over role over global.
func (s *Store) Frozen(ctx context.Context, node, role string) (*Switch, Scope, error) {
	scopes := []Scope{HostScope(node), RoleScope(role), GlobalScope()}
	var ops []clientv3.Op
	for _, c := range scopes {
		ops = append(ops, clientv3.OpGet(s.SwitchKey(c)))
	}
	got, err := s.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return nil, Scope{}, err
	}
	for i, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			w := s.ReadSwitch(kv)
			if w.Enabled || !w.AllChanges {
				return nil, Scope{}, nil
			}
			return &w, scopes[i], nil
		}
	}
	return nil, Scope{}, nil
}

// Freeze is the switch that stops all changes of this node, as it knew it last: it holds also while etcd is away.
type Freeze struct {
	Switch
	Scope string `json:"scope"` // "host web1", "role web", "global"
}

// Ended reports that the time of a freeze is over, by this host's clock.
func (f *Freeze) Ended(now time.Time) bool { return !f.Until.IsZero() && now.After(f.Until) }
