package etcdmodel

import (
	"bytes"
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxOps is how many comparisons or operations of a branch etcd takes; nested ones count with those that they are in.
const maxOps = 128

// branch is what a transaction does: all comparisons, also the nested ones, are made before anything is written.
type branch struct {
	succeeded bool
	ops       []*pb.RequestOp
	nested    []*branch // in the order of ops
}

// txn runs a transaction. It is refused as a whole or done as a whole.
func (s *store) txn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	b := s.choose(r)
	if err := s.possible(b); err != nil {
		return nil, err
	}
	out, err := s.run(b)
	if err != nil {
		return nil, err
	}
	out.Header = s.header()
	return out, nil
}

func (s *store) choose(r *pb.TxnRequest) *branch {
	b := &branch{succeeded: true, ops: r.Success}
	for _, c := range r.Compare {
		if !s.holds(c) {
			b.succeeded, b.ops = false, r.Failure
			break
		}
	}
	for _, op := range b.ops {
		if t := op.GetRequestTxn(); t != nil {
			b.nested = append(b.nested, s.choose(t))
		}
	}
	return b
}

// possible says whether nothing can fail once the transaction began: what is wrong first counts.
func (s *store) possible(b *branch) error {
	nested := b.nested
	for _, op := range b.ops {
		var err error
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			err = s.readable(r.RequestRange.Revision)
		case *pb.RequestOp_RequestPut:
			err = s.leased(r.RequestPut)
		case *pb.RequestOp_RequestTxn:
			err = s.possible(nested[0])
			nested = nested[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leased says whether the lease of a write lives.
func (s *store) leased(r *pb.PutRequest) error {
	if l := s.leases[r.Lease]; r.Lease != 0 && (l == nil || l.ended != 0) {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	return nil
}

func (s *store) run(b *branch) (*pb.TxnResponse, error) {
	out := &pb.TxnResponse{Header: &pb.ResponseHeader{}, Succeeded: b.succeeded} // nested headers are empty
	nested := b.nested
	for _, op := range b.ops {
		answer := &pb.ResponseOp{}
		switch r := op.Request.(type) {
		case *pb.RequestOp_RequestRange:
			got, err := s.read(r.RequestRange)
			if err != nil {
				return nil, err
			}
			answer.Response = &pb.ResponseOp_ResponseRange{ResponseRange: got}
		case *pb.RequestOp_RequestPut:
			answer.Response = &pb.ResponseOp_ResponsePut{ResponsePut: s.put(r.RequestPut)}
		case *pb.RequestOp_RequestDeleteRange:
			deleted := s.deleteRange(r.RequestDeleteRange)
			answer.Response = &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: deleted}
		case *pb.RequestOp_RequestTxn:
			got, err := s.run(nested[0])
			if err != nil {
				return nil, err
			}
			nested = nested[1:]
			answer.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: got}
		}
		out.Responses = append(out.Responses, answer)
	}
	return out, nil
}

// holds makes a comparison. Of a range every key must satisfy it; where there is none, it is made with a key of zeros,
// but a value is never equal to anything there.
func (s *store) holds(c *pb.Compare) bool {
	found := false
	for _, i := range s.find(string(c.Key), string(c.RangeEnd)) {
		if v := i.at(s.revision); v != nil {
			found = true
			if !compare(c, v.kv) {
				return false
			}
		}
	}
	return found || c.Target != pb.Compare_VALUE && compare(c, &mvccpb.KeyValue{})
}

func compare(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var order int
	switch c.Target {
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		order = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return order == 0
	case pb.Compare_NOT_EQUAL:
		return order != 0
	case pb.Compare_GREATER:
		return order > 0
	}
	return order < 0
}

// wellFormed is what etcd checks before it looks at its data.
func wellFormed(r *pb.TxnRequest, room int) error {
	most := max(len(r.Compare), len(r.Success), len(r.Failure))
	if most > room {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if err := wellFormedOp(op, room-most); err != nil {
				return err
			}
		}
	}
	return nil
}

func wellFormedOp(op *pb.RequestOp, room int) error {
	switch r := op.Request.(type) {
	case *pb.RequestOp_RequestRange:
		return wellFormedRange(r.RequestRange)
	case *pb.RequestOp_RequestPut:
		return wellFormedPut(r.RequestPut)
	case *pb.RequestOp_RequestDeleteRange:
		return hasKey(r.RequestDeleteRange.Key)
	case *pb.RequestOp_RequestTxn:
		return wellFormed(r.RequestTxn, room)
	}
	return rpctypes.ErrGRPCKeyNotFound
}

func hasKey(key []byte) error {
	if len(key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

// wellFormedRange also refuses requests that the model cannot answer, so that no test relies on a wrong answer.
func wellFormedRange(r *pb.RangeRequest) error {
	if r.SortTarget != pb.RangeRequest_KEY || r.MaxModRevision|r.MinCreateRevision|r.MaxCreateRevision != 0 {
		return status.Error(codes.Unimplemented, "the model only sorts by key and only filters by MinModRevision")
	}
	return hasKey(r.Key)
}

func wellFormedPut(r *pb.PutRequest) error {
	if r.IgnoreLease || r.IgnoreValue {
		return status.Error(codes.Unimplemented, "the model does not keep a value or a lease")
	}
	return hasKey(r.Key)
}

// written is what a list of operations may write: etcd refuses to touch a key twice in one revision.
type written struct {
	puts    map[string]bool
	deletes [][2]string
}

func (w *written) deleted(key string) bool {
	for _, d := range w.deletes {
		if inRange(key, d[0], d[1]) {
			return true
		}
	}
	return false
}

// add notes puts; those in but do not count, because only one of the two happens.
func (w *written) add(puts, but map[string]bool) error {
	for key := range puts {
		if w.puts[key] && !but[key] || w.deleted(key) {
			return rpctypes.ErrGRPCDuplicateKey
		}
	}
	for key := range puts {
		w.puts[key] = true
	}
	return nil
}

// overlaps looks for keys that are written twice, in etcd's order: deletes, nested transactions, puts. As in etcd a
// delete in a nested transaction is not held against puts of the nested ones before it.
func overlaps(ops []*pb.RequestOp) (*written, error) {
	w := &written{puts: map[string]bool{}}
	for _, op := range ops {
		if d := op.GetRequestDeleteRange(); d != nil {
			w.deletes = append(w.deletes, [2]string{string(d.Key), string(d.RangeEnd)})
		}
	}
	for _, op := range ops {
		if t := op.GetRequestTxn(); t != nil {
			if err := w.addNested(t); err != nil {
				return nil, err
			}
		}
	}
	for _, op := range ops {
		if p := op.GetRequestPut(); p != nil {
			if err := w.add(map[string]bool{string(p.Key): true}, nil); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

func (w *written) addNested(t *pb.TxnRequest) error {
	yes, err := overlaps(t.Success)
	if err != nil {
		return err
	}
	no, err := overlaps(t.Failure)
	if err != nil {
		return err
	}
	if err := w.add(yes.puts, nil); err != nil {
		return err
	}
	if err := w.add(no.puts, yes.puts); err != nil {
		return err
	}
	w.deletes = append(append(w.deletes, yes.deletes...), no.deletes...)
	return nil
}

// writes says whether a transaction goes through the log of etcd: also when the branch that is taken only reads.
func writes(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if op.GetRequestRange() == nil {
				return true
			}
		}
	}
	return false
}

// grows says whether a transaction may take space: etcd looks at both branches.
func grows(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if op.GetRequestPut() != nil || op.GetRequestTxn() != nil && grows(op.GetRequestTxn()) {
				return true
			}
		}
	}
	return false
}
