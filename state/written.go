package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// UnwritableError says that a record was not written because nobody would read it back.
type UnwritableError struct {
	Key, Why string
}

func (e *UnwritableError) Error() string {
	return fmt.Sprintf("%s is not written to the fleet's record: %s", e.Key, e.Why)
}

// OthersError says that a host did not write a record because it is for others to write, whatever etcd would have
// allowed.
type OthersError struct {
	Key string
	By  string // who writes such records
}

func (e *OthersError) Error() string {
	return fmt.Sprintf("a host does not write %s: it is for %s", e.Key, e.By)
}

// writes is an interceptor for the operations of a client: what could not be read back, and what a host may not write,
// is refused where it comes from.
func (s *Store) writes(
	ctx context.Context,
	method string,
	req, reply any,
	conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	var err error
	switch r := req.(type) {
	case *pb.PutRequest:
		err = s.written(r)
	case *pb.DeleteRangeRequest:
		err = s.deleted(r)
	case *pb.TxnRequest:
		err = s.writtenBy(r)
	}
	if err != nil {
		return err
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

// writtenBy checks all that a transaction may write.
func (s *Store) writtenBy(r *pb.TxnRequest) error {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			var err error
			if put := op.GetRequestPut(); put != nil {
				err = s.written(put)
			} else if gone := op.GetRequestDeleteRange(); gone != nil {
				err = s.deleted(gone)
			} else if txn := op.GetRequestTxn(); txn != nil {
				err = s.writtenBy(txn)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// written checks one record.
func (s *Store) written(r *pb.PutRequest) error {
	if err := s.mayWrite(Range{From: string(r.Key)}); err != nil {
		return err
	}
	if !strings.HasPrefix(string(r.Key), s.prefix) { // names in DNS
		return nil
	}
	k, err := parseKey(s.prefix, string(r.Key))
	bad, ok := errors.AsType[*BadRecordError](err)
	switch {
	case ok && (bad.of == nil || bad.of.examine == nil): // nobody reads it
		return nil
	case err == nil && k.kind.examine != nil:
		bad, ok = errors.AsType[*BadRecordError](k.kind.examine(k, r.Value))
	}
	if ok {
		return &UnwritableError{bad.Key, bad.Why}
	}
	if why := s.all.refuses(k.kind); why != "" {
		return &UnwritableError{shownKey(strings.TrimPrefix(string(r.Key), s.prefix)), why}
	}
	return nil
}

func (s *Store) deleted(r *pb.DeleteRangeRequest) error {
	return s.mayWrite(Range{string(r.Key), string(r.RangeEnd)})
}

// mayWrite holds what a host writes against its role. Of what people write etcd itself knows whether they may.
func (s *Store) mayWrite(keys Range) error {
	within := func(r Range) bool { return r.covers(keys) }
	if s.role == nil || slices.ContainsFunc(s.role, within) {
		return nil
	}
	by := itsNode
	if k, err := parseKey(s.prefix, keys.From); err == nil {
		by = k.kind.by
	}
	return &OthersError{shownKey(strings.TrimPrefix(keys.From, s.prefix)), by.String()}
}
