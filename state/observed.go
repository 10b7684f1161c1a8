package state

import (
	"context"
	"reflect"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Observed is what the reactor knew of the fleet when it looked last: what changed since is an event.
type Observed struct {
	At       time.Time `json:"at"` // by the fleet's clock
	Version  string    `json:"version,omitempty"`
	Rollout  string    `json:"rollout,omitempty"`
	Release  string    `json:"release,omitempty"`
	Finished bool      `json:"finished,omitempty"` // every host that answers runs the version
	Halted   []string  `json:"halted,omitempty"`   // groups
	Nodes    []string  `json:"nodes,omitempty"`    // that are registered, sorted
	Lost     []string  `json:"lost,omitempty"`     // those of them that do not answer, sorted
	Ready    []string  `json:"ready,omitempty"`    // instances that are ready, as SERVICE/NODE, sorted
}

// Same reports that nothing changed but the time.
func (o Observed) Same(other Observed) bool {
	o.At, other.At = time.Time{}, time.Time{}
	return reflect.DeepEqual(o, other)
}

func (s *Events) observedKey() string { return s.store.key("reactor", "observed") }

// Observe reads what the reactor knew, nil where nothing looked before, and the fleet as it is: nil where somebody
// looked lately. The time is by the fleet's clock.
func (s *Events) Observe(ctx context.Context, now time.Time, lately time.Duration) (*Observed, *Overview, error) {
	got, err := s.store.Client.Get(ctx, s.observedKey())
	if err != nil {
		return nil, nil, err
	}
	var was *Observed
	for _, kv := range got.Kvs {
		if o, err := Read[Observed](s.store, kv); err == nil { // another one begins anew, and tells nothing
			was = &o
		}
	}
	if was != nil && was.At.After(now.Add(-lately)) && !was.At.After(now) {
		return was, nil, nil
	}
	fleet, err := s.store.Views.Fleet(ctx, true)
	return was, fleet, err
}

func (s *Events) observedOps(o *Observed) []clientv3.Op {
	if o == nil {
		return nil
	}
	return []clientv3.Op{Put(s.observedKey(), o)}
}

func (o *Observed) limit() int { return maxBig }

func (o *Observed) check(Key) error {
	var c checks
	c.times(o.At)
	c.version(o.Version)
	c.version(o.Rollout)
	c.nodes(o.Nodes)
	c.nodes(o.Lost)
	c.unless(len(o.Ready) <= maxNames && len(o.Halted) <= maxList, "it has too much in it")
	line(&o.Release)
	lines(o.Halted)
	lines(o.Ready)
	return c.err
}
