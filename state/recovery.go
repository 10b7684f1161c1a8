package state

import (
	"context"
	"errors"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Recoveries are the clusters of etcd whose record this one goes on from, the last one at the end. Who was a member of
// one of them is none of this one.
type Recoveries struct {
	Recoveries []Recovery `json:"recoveries"`
}

// Recovery is how a cluster ended that had lost its quorum: one host went on alone.
type Recovery struct {
	Cluster uint64    `json:"cluster"` // etcd's id of the cluster that ended
	Node    string    `json:"node"`    // that went on
	At      time.Time `json:"at"`
}

// keptRecoveries is how many stay on record.
const keptRecoveries = 50

// Of is how a cluster ended, where the record went on without it.
func (r Recoveries) Of(cluster uint64) (Recovery, bool) {
	i := slices.IndexFunc(r.Recoveries, func(one Recovery) bool { return one.Cluster == cluster })
	if i < 0 {
		return Recovery{}, false
	}
	return r.Recoveries[i], true
}

func (s *Datastores) recoveredKey() string { return s.key("recovered") }

// Recoveries are the clusters whose record this one goes on from.
func (s *Datastores) Recoveries(ctx context.Context) (Recoveries, error) {
	r, _, err := get[Recoveries](ctx, s.store, s.recoveredKey())
	return r, err
}

// Recovered records that this cluster goes on from another one, and takes back what hosts got that were to become
// members of that.
func (s *Datastores) Recovered(ctx context.Context, r Recovery) error {
	all, err := s.Recoveries(ctx)
	if unlessBad(err) != nil {
		return err
	}
	if _, known := all.Of(r.Cluster); known {
		return nil
	}
	all.Recoveries = append(all.Recoveries, r)
	all.Recoveries = all.Recoveries[max(0, len(all.Recoveries)-keptRecoveries):]
	_, err = s.store.Client.Txn(ctx).
		Then(Put(s.recoveredKey(), all), clientv3.OpDelete(s.HandedKey(""), clientv3.WithPrefix())).Commit()
	return err
}

func (r *Recoveries) check(Key) error {
	var c checks
	c.count("recoveries", len(r.Recoveries), keptRecoveries)
	for i := range r.Recoveries {
		one := &r.Recoveries[i]
		if one.Cluster == 0 {
			return errors.New("it names no cluster")
		}
		c.times(one.At)
		line(&one.Node)
	}
	return c.err
}
