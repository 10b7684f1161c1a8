package state

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Switch is an operator's word on who may change. Switches only restrict.
type Switch struct {
	Enabled bool   `json:"enabled"`
	Version string `json:"version,omitempty"` // the only one that is admitted; "" is any
	// AllChanges, of a switch that is not enabled: drift is not corrected either.
	AllChanges bool `json:"allChanges,omitempty"`

	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself, by the clock of etcd
}

// Scope is what a switch is for.
type Scope struct{ Kind, Name string }

// HostScope is the scope of one node. Its switch goes before that of its role.
func HostScope(node string) Scope { return Scope{"host", node} }

// RoleScope is the scope of a role. Its switch goes before that of the fleet.
func RoleScope(role string) Scope { return Scope{"role", GroupOf(role)} }

// GlobalScope is the scope of the whole fleet.
func GlobalScope() Scope { return Scope{"global", ""} }

// PauseScope is where a pause stands among switches.
const PauseScope = "pause"

func (c Scope) String() string {
	if c.Name == "" {
		return c.Kind
	}
	return c.Kind + " " + c.Name
}

// Key is the key of a scope's switch.
func (s *Switches) Key(c Scope) string {
	if c.Name == "" {
		return s.store.key("config_state", "enable", c.Kind)
	}
	return s.store.key("config_state", "enable", c.Kind, c.Name)
}

// PauseKey is there while all rollouts are paused.
func (s *Switches) PauseKey() string { return s.store.key("config_state", "pause") }

// Set sets a scope's switch, for a time where that is not 0; nil removes it. It is an error when the switch is
// another one than was: somebody else was faster.
func (s *Switches) Set(ctx context.Context, c Scope, w, was *Switch, lasts time.Duration) error {
	key := s.Key(c)
	have, seen, err := get[Switch](ctx, s.store, key)
	if unlessBad(err) != nil {
		return err
	}
	if (was == nil) != (seen == 0) || was != nil && !was.At.Equal(have.At) {
		return &MovedError{"the switch of " + c.String(), have.By}
	}
	op := clientv3.OpDelete(key)
	if w != nil {
		if op, err = s.lasting(ctx, key, w, lasts); err != nil {
			return err
		}
	}
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", seen)).
		Then(op, s.store.Bells.RingOp()).
		Commit()
	if err != nil || done.Succeeded {
		return err
	}
	now, _, err := get[Switch](ctx, s.store, key)
	return errors.Join(unlessBad(err), &MovedError{"the switch of " + c.String(), now.By})
}

// MovedError says that somebody else changed something at the same moment.
type MovedError struct{ What, By string }

func (e *MovedError) Error() string {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	return e.What + " was changed just now" + by + ": look at pullet status and try again"
}

// lasting writes a switch on a lease of its own where it ends by itself.
func (s *Switches) lasting(ctx context.Context, key string, w *Switch, lasts time.Duration) (clientv3.Op, error) {
	if lasts <= 0 {
		return Put(key, w), nil
	}
	w.Until = w.At.Add(lasts)
	return forAWhile(ctx, s.store, key, w, lasts)
}

// forAWhile writes a record on a lease of its own.
func forAWhile(ctx context.Context, s *Store, key string, record any, lasts time.Duration) (clientv3.Op, error) {
	lease, err := s.Client.Grant(ctx, int64(max(1, lasts.Seconds())))
	if err != nil {
		return clientv3.Op{}, err
	}
	return Put(key, record, clientv3.WithLease(lease.ID)), nil
}

// Pause stops admissions everywhere, until Unpause or for a time. It reports false when it was paused already.
func (s *Switches) Pause(ctx context.Context, w *Switch, lasts time.Duration) (bool, error) {
	op, err := s.lasting(ctx, s.PauseKey(), w, lasts)
	if err != nil {
		return false, err
	}
	done, err := s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.PauseKey()), "=", 0)).
		Then(op, s.store.Bells.RingOp()).
		Commit()
	if err != nil {
		return false, err
	}
	return done.Succeeded, nil
}

// Unpause lets admissions go on. It returns the pause that it lifted; nil where nothing was paused.
func (s *Switches) Unpause(ctx context.Context) (*Switch, error) {
	done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(s.PauseKey()), ">", 0)).
		Then(clientv3.OpDelete(s.PauseKey(), clientv3.WithPrevKV()), s.store.Bells.RingOp()).Commit()
	if err != nil || !done.Succeeded {
		return nil, err
	}
	var was Switch
	for _, kv := range done.Responses[0].GetResponseDeleteRange().PrevKvs {
		was = s.Read(kv)
	}
	return &was, nil
}

// List are all switches that are set, by scope ("host web1", "role web", "global"), with "pause" among them.
func (s *Switches) List(ctx context.Context) (map[string]Switch, error) {
	got, err := s.store.Client.Get(ctx, s.store.key("config_state")+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := map[string]Switch{}
	for _, kv := range got.Kvs {
		if k, err := s.store.Key(kv); err == nil {
			out[k.scope()] = s.Read(kv)
		}
	}
	return out, nil
}

// scope is what the key of a switch is for, in words.
func (k Key) scope() string {
	switch {
	case k.Node != "":
		return HostScope(k.Node).String()
	case k.Group != "":
		return RoleScope(k.Group).String()
	case k.kind.shape == "config_state/pause":
		return PauseScope
	case k.kind.shape == "config_state/store":
		return StoreScope
	}
	return GlobalScope().String()
}

// OffScope is the switch that keeps a node from changing to a version: "host web1", "role web", "global"; "" is none.
func OffScope(switches map[string]Switch, node, role, version string) string {
	for _, c := range scopesOf(node, role) {
		if w, ok := switches[c.String()]; ok {
			if !w.Enabled || w.Version != "" && w.Version != version {
				return c.String()
			}
			return ""
		}
	}
	return ""
}

// Read is a switch as it stands in etcd. One that cannot be read keeps everybody where they are.
func (s *Switches) Read(kv *mvccpb.KeyValue) Switch {
	w, err := Read[Switch](s.store, kv)
	if err != nil {
		return Switch{Reason: err.Error()}
	}
	return w
}
