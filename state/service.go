package state

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Service is one node's instance of a service. That it is announced and that it is ready are two facts: addresses are
// needed before anything works.
type Service struct {
	Address   string         `json:"address"`             // the one to use
	Addresses map[string]any `json:"addresses,omitempty"` // by interface
	Port      int            `json:"port,omitempty"`
	Tags      []string       `json:"tags,omitempty"`
	Announced time.Time      `json:"announced"`
	Ready     time.Time      `json:"ready,omitzero"` // since when the node is validated with it; zero: it is not
	Why       string         `json:"why,omitempty"`  // it is not ready although the node was validated
	DNS       string         `json:"dns,omitempty"`  // its name there
}

// key is the key of a node's instance: a node may write below its own name alone.
func (s *Services) key(name, node string) string { return s.store.key("service", node, name) }

// prefix is that of all instances of all services.
func (s *Services) prefix() string { return s.store.key("service") + "/" }

// Instances are the instances of a service by node.
func (s *Services) Instances(ctx context.Context, name string) (map[string]Service, error) {
	got, err := s.store.Client.Get(ctx, s.prefix(), clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	out := map[string]Service{}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil || k.Service != name {
			continue
		}
		if one, err := Read[Service](s.store, kv); err == nil {
			out[k.Node] = one
		}
	}
	return out, nil
}

// Announce publishes a node's instance of a service. One that is the same stays as it is, and ready where it was; what
// changed has to prove itself anew. With keep, one that is there stays, whatever it says.
func (s *Services) Announce(ctx context.Context, name, node string, service Service, keep bool) error {
	return s.edit(ctx, name, node, "", func(have *Service) *Service {
		if have != nil && (keep || have.same(service)) {
			return have
		}
		service.Announced = time.Now().UTC()
		return &service
	})
}

// same compares what a node says of its instance.
func (s Service) same(other Service) bool {
	plain := func(s Service) any { // as it comes out of etcd
		data, _ := json.Marshal(
			Service{Address: s.Address, Addresses: s.Addresses, Port: s.Port, Tags: s.Tags},
		) // plain data
		return string(data)
	}
	return plain(s) == plain(other)
}

// Withdraw takes a node's instance of a service back.
func (s *Services) Withdraw(ctx context.Context, name, node string) error {
	return s.edit(ctx, name, node, "", func(*Service) *Service { return nil })
}

// SetReady says of a node's instance whether it works, or else why not. One that is not announced stays unknown. With a
// zone, what works stands in DNS too.
func (s *Services) SetReady(ctx context.Context, name, node, zone string, ready bool, why string) error {
	return s.edit(ctx, name, node, zone, func(have *Service) *Service {
		if have == nil {
			return nil
		}
		one := *have
		one.Why = why
		switch {
		case !ready:
			one.Ready = time.Time{}
		case have.Ready.IsZero():
			one.Ready = time.Now().UTC()
		}
		return &one
	})
}

// edit changes a node's instance, and in the same transaction takes out of DNS what does not hold any longer.
// Nobody is woken where nothing changes.
func (s *Services) edit(ctx context.Context, name, node, zone string, edit func(have *Service) *Service) error {
	key := s.key(name, node)
	for {
		have, seen, err := s.instance(ctx, key)
		if unlessBad(err) != nil {
			return err
		}
		want := edit(have)
		if want == have && err == nil { // one that cannot be read is written anew, or goes
			return nil
		}
		ops := []clientv3.Op{clientv3.OpDelete(key)}
		if want != nil {
			want.DNS = want.nameInDNS(name, node, zone)
			ops = []clientv3.Op{Put(key, want)}
		}
		if have != nil && want != nil && reflect.DeepEqual(*have, *want) {
			return s.standInDNS(ctx, key, want)
		}
		if have != nil && (want == nil || want.DNS != have.DNS || want.Address != have.Address) {
			ops = append(ops, have.leaveDNS()...)
		}
		ops = append(ops, s.store.Bells.RingOp(), s.bell(name))
		done, err := s.store.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", seen)).Then(ops...).Commit()
		if err != nil {
			return err
		}
		if done.Succeeded {
			return s.standInDNS(ctx, key, want)
		}
	}
}

// instance is a node's instance of a service: nil where there is none, or it cannot be read.
func (s *Services) instance(ctx context.Context, key string) (*Service, int64, error) {
	one, seen, err := get[Service](ctx, s.store, key)
	if seen == 0 || err != nil {
		return nil, seen, err
	}
	return &one, seen, nil
}

// bellKey is written when something about a service changed: the nodes that read it watch it.
func (s *Services) bellKey(name string) string { return s.store.key("wake_service", name) }

func (s *Services) bell(name string) clientv3.Op {
	return clientv3.OpPut(s.bellKey(name), strconv.FormatInt(time.Now().UnixNano(), 36))
}

// Await returns nil as soon as something changed about one of these services after a revision, or why it cannot
// tell any more.
func (s *Services) Await(ctx context.Context, names []string, seen int64) error {
	for {
		rung, now, err := s.lastRung(ctx, names)
		if err != nil {
			return err
		}
		if rung > seen {
			return nil
		}
		if !s.awaitAny(ctx, names, now) {
			return ctx.Err()
		}
	}
}

// lastRung is the revision of the last change of any of the services, and the one at which that was read.
func (s *Services) lastRung(ctx context.Context, names []string) (rung, now int64, err error) {
	var ops []clientv3.Op
	for _, name := range names {
		ops = append(ops, clientv3.OpGet(s.bellKey(name), clientv3.WithKeysOnly()))
	}
	answers, now, err := s.store.ReadMany(ctx, ops) // what is read later is newer, and watched from here on
	if err != nil {
		return 0, 0, err
	}
	for _, r := range answers {
		for _, kv := range r.GetResponseRange().Kvs {
			rung = max(rung, kv.ModRevision)
		}
	}
	return rung, now, nil
}

// awaitAny waits for the bell of any of the services, or for as long as a poll takes.
func (s *Services) awaitAny(ctx context.Context, names []string, after int64) bool {
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	rung := make(chan struct{}, len(names))
	for _, name := range names {
		go func() {
			s.store.Bells.Await(watch, s.bellKey(name), after, time.Minute)
			rung <- struct{}{}
		}()
	}
	select {
	case <-rung:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
