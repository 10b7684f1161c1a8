package state

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Unanswering are the nodes of a service's instances that lists leave out: they do not answer, while at least half of
// the instances do. When more are away it is the network or the fleet's record that is at fault, or the power: a list
// that empties itself then would make it worse.
func Unanswering(instances map[string]Service, alive map[string]bool) map[string]bool {
	away := map[string]bool{}
	for node := range instances {
		if !alive[node] {
			away[node] = true
		}
	}
	if 2*len(away) > len(instances) {
		return nil
	}
	return away
}

// sweepers is how many of a service's nodes look at each round of pulls who of them is away: all of a large service
// would look at all.
const sweepers = 3

// SweepDNS takes the instances of a service out of DNS whose nodes do not answer. Who offers the service does it for
// the others; a node that comes back puts itself in again.
func (s *Services) SweepDNS(ctx context.Context, name, zone string) error {
	names := dnsKey(strings.ToLower(name+".service."+zone)) + "/"
	count, err := s.store.Client.Get(ctx, names, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || count.Count == 0 || rand.Int64N(count.Count) >= sweepers {
		return err
	}
	instances, err := s.Instances(ctx, name)
	if err != nil {
		return err
	}
	alive, err := s.answering(ctx, instances)
	if err != nil {
		return err
	}
	for node := range Unanswering(instances, alive) {
		if err := s.leaveDNS(ctx, name, node); err != nil {
			return err
		}
	}
	return nil
}

// answering are the nodes of instances whose lease lives.
func (s *Services) answering(ctx context.Context, instances map[string]Service) (map[string]bool, error) {
	alive := map[string]bool{}
	nodes := slices.Collect(maps.Keys(instances))
	var ops []clientv3.Op
	for _, node := range nodes {
		ops = append(ops, clientv3.OpGet(s.store.Presences.AliveKey(node), clientv3.WithCountOnly()))
	}
	answers, _, err := s.store.ReadMany(ctx, ops)
	if err != nil {
		return nil, err
	}
	for i, node := range nodes {
		alive[node] = answers[i].GetResponseRange().Count > 0
	}
	return alive, nil
}

// leaveDNS takes a node's instance out of DNS where it stands there, unless the node answers again or changed it. Who
// reads the service is woken. The node's own record stays as the node wrote it.
func (s *Services) leaveDNS(ctx context.Context, name, node string) error {
	key := s.key(name, node)
	have, seen, err := get[Service](ctx, s.store, key)
	if err != nil || have.DNS == "" {
		return unlessBad(err)
	}
	_, err = s.store.Client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", seen),
			clientv3.Compare(clientv3.CreateRevision(dnsKey(have.DNS)), ">", 0),
			clientv3.Compare(clientv3.CreateRevision(s.store.Presences.AliveKey(node)), "=", 0)).
		Then(append(have.leaveDNS(), s.store.Bells.RingOp(), s.bell(name))...).Commit()
	return err
}
