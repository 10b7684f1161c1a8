package state

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Credentials is all that is on record of who may connect.
type Credentials struct {
	Authority   Authority
	Identities  map[string]Identity
	Requests    map[string]Request
	Invitations map[string]Invitation
	Revoking    map[string]bool    // whom an operator revokes
	Gone        map[string]bool    // hosts that were decommissioned
	Revoked     map[string]Revoked // by the number of the certificate
	Revision    int64
}

// All reads all of them at one revision.
func (s *Identities) All(ctx context.Context) (Credentials, error) {
	out := Credentials{
		Identities: map[string]Identity{}, Requests: map[string]Request{}, Invitations: map[string]Invitation{},
		Revoking: map[string]bool{}, Gone: map[string]bool{}, Revoked: map[string]Revoked{},
	}
	ops := []clientv3.Op{clientv3.OpGet(s.authorityKey())}
	for _, what := range []string{"identity/", "request/", "invitation/", "revoking/", "revoked/", "decommissioned/"} {
		ops = append(ops, clientv3.OpGet(s.store.key(what), clientv3.WithPrefix()))
	}
	got, err := s.store.Client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return out, err
	}
	out.Revision = got.Header.Revision
	for _, r := range got.Responses {
		for _, kv := range r.GetResponseRange().Kvs {
			if k, err := s.store.Key(kv); err == nil {
				out.add(s.store, k, kv)
			}
		}
	}
	return out, nil
}

// add files one record.
func (c *Credentials) add(s *Store, k Key, kv *mvccpb.KeyValue) {
	switch k.kind.shape {
	case "authority":
		c.Authority, _ = Read[Authority](s, kv) // one that cannot be read is written anew
	case "identity/NODE":
		keep(s, kv, k.Node, c.Identities)
	case "request/NODE":
		keep(s, kv, k.Node, c.Requests)
	case "invitation/WORD":
		keep(s, kv, k.Word, c.Invitations)
	case "revoked/WORD":
		keep(s, kv, k.Word, c.Revoked)
	case "revoking/NODE":
		c.Revoking[k.Node] = true
	case "decommissioned/NODE":
		c.Gone[k.Node] = true
	}
}

// keep files a record that can be read.
func keep[T any, P record[T]](s *Store, kv *mvccpb.KeyValue, name string, in map[string]T) {
	if one, err := Read[T, P](s, kv); err == nil {
		in[name] = one
	}
}
