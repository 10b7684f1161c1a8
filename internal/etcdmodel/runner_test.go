package etcdmodel

import (
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func (r *runner) compares(cmps []func(r *runner) clientv3.Cmp) []clientv3.Cmp {
	var out []clientv3.Cmp
	for _, c := range cmps {
		out = append(out, c(r))
	}
	return out
}

func (r *runner) ops(ops []opened) []clientv3.Op {
	var out []clientv3.Op
	for _, o := range ops {
		out = append(out, o(r))
	}
	return out
}

// lease is one that the script was granted, or a strange one.
func (r *runner) lease(n int) clientv3.LeaseID {
	if n < len(r.leases) {
		return r.leases[n]
	}
	return strange
}

func (r *runner) grant(ttl int64) string {
	got, err := r.client.Grant(r.ctx, ttl)
	if err != nil {
		return r.failed(err)
	}
	r.leases = append(r.leases, got.ID)
	return fmt.Sprint("granted ", got.TTL, r.relative(got.Revision))
}

func (r *runner) revoke(id clientv3.LeaseID) string {
	got, err := r.client.Revoke(r.ctx, id)
	if err != nil {
		return r.failed(err)
	}
	return "revoked" + r.relative(got.Header.Revision)
}

func (r *runner) timeToLive(id clientv3.LeaseID) string {
	got, err := r.client.TimeToLive(r.ctx, id, clientv3.WithAttachedKeys())
	if err != nil {
		return r.failed(err)
	}
	var held []string
	for _, key := range got.Keys {
		held = append(held, strings.TrimPrefix(string(key), r.prefix))
	}
	slices.Sort(held)
	return fmt.Sprint("lease ", got.TTL > 0, got.TTL <= got.GrantedTTL, got.GrantedTTL, held, r.relative(got.Revision))
}

func (r *runner) failed(err error) string { return fmt.Sprintf("%T: %v", err, err) }

// relative is a revision as all etcds have it: 0 stays 0.
func (r *runner) relative(revision int64) string {
	if revision == 0 {
		return " @-"
	}
	return fmt.Sprint(" @", revision-r.base)
}

func (r *runner) kv(kv *mvccpb.KeyValue) string {
	lease := slices.Index(r.leases, clientv3.LeaseID(kv.Lease))
	return fmt.Sprintf(" {%s=%s created%s changed%s version %d lease %d %t}", strings.TrimPrefix(string(kv.Key), r.prefix), kv.Value,
		r.relative(kv.CreateRevision), r.relative(kv.ModRevision), kv.Version, lease, kv.Lease != 0)
}

func (r *runner) kvs(kvs []*mvccpb.KeyValue) string {
	var out strings.Builder
	for _, kv := range kvs {
		out.WriteString(r.kv(kv))
	}
	return out.String()
}

func (r *runner) got(g *pb.RangeResponse) string {
	return fmt.Sprintf("got %d %t%s%s", g.Count, g.More, r.relative(g.Header.GetRevision()), r.kvs(g.Kvs))
}

func (r *runner) wrote(p *pb.PutResponse) string {
	out := "put" + r.relative(p.Header.GetRevision())
	if p.PrevKv != nil {
		out += r.kv(p.PrevKv)
	}
	return out
}

func (r *runner) deleted(d *pb.DeleteRangeResponse) string {
	return fmt.Sprint("deleted ", d.Deleted, r.relative(d.Header.GetRevision()), r.kvs(d.PrevKvs))
}

func (r *runner) txn(t *pb.TxnResponse) string {
	out := fmt.Sprint("txn ", t.Succeeded, r.relative(t.Header.GetRevision()))
	for _, a := range t.Responses {
		out += "\n    "
		switch a := a.Response.(type) {
		case *pb.ResponseOp_ResponseRange:
			out += r.got(a.ResponseRange)
		case *pb.ResponseOp_ResponsePut:
			out += r.wrote(a.ResponsePut)
		case *pb.ResponseOp_ResponseDeleteRange:
			out += r.deleted(a.ResponseDeleteRange)
		case *pb.ResponseOp_ResponseTxn:
			out += r.txn(a.ResponseTxn)
		}
	}
	return out
}
