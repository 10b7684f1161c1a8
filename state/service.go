package state

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Service is one node's instance of a service. That it is announced and that it is ready are two facts: addresses are needed before
// anything works.
type Service struct {
	Address   string         `json:"address"`             // the one to use
	Addresses map[string]any `json:"addresses,omitempty"` // by interface
	Port      int            `json:"port,omitempty"`
	Tags      []string       `json:"tags,omitempty"`
	Announced time.Time      `json:"announced"`
	Ready     time.Time      `json:"ready,omitzero"` // since when the node is validated with it; zero: it is not
}

// ServiceKey is the key of a node's instance; with an empty node, the prefix of all.
func (s *Store) ServiceKey(name, node string) string { return s.key("service", name, node) }

// Announce publishes a node's instance of a service. One that was ready and is the same stays ready.
func (s *Store) Announce(ctx context.Context, name, node string, service Service) error {
	_, err := s.Client.Txn(ctx).Then(Put(s.ServiceKey(name, node), service), s.RingOp()).Commit()
	return err
}

// Withdraw takes a node's instance of a service back.
func (s *Store) Withdraw(ctx context.Context, name, node string) error {
	_, err := s.Client.Txn(ctx).Then(clientv3.OpDelete(s.ServiceKey(name, node)), s.RingOp()).Commit()
	return err
}

// Services are the instances of a service by node.
func (s *Store) Services(ctx context.Context, name string) (map[string]Service, error) {
	got, err := s.Client.Get(ctx, s.ServiceKey(name, ""), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := map[string]Service{}
	for _, kv := range got.Kvs {
		var one Service
		if err := json.Unmarshal(kv.Value, &one); err != nil {
			return nil, fmt.Errorf("etcd key %s: %w", kv.Key, err)
		}
		out[LastPart(kv.Key)] = one
	}
	return out, nil
}

// SetReady says of a node's instance whether it works. One that is not announced stays unknown.
func (s *Store) SetReady(ctx context.Context, name, node string, ready bool) error {
	key := s.ServiceKey(name, node)
	var one Service
	seen, err := s.read(ctx, key, &one)
	if seen == 0 || err != nil || ready == !one.Ready.IsZero() {
		return err
	}
	if one.Ready = (time.Time{}); ready {
		one.Ready = time.Now().UTC()
	}
	// Announced anew in between: the next pull says it again.
	_, err = s.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", seen)).Then(Put(key, one), s.RingOp()).Commit()
	return err
}
