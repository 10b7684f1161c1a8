package state

import (
	"context"
	"errors"
	"fmt"
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

// writes is an interceptor for the operations of a client: what could not be read back is refused where it comes from.
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
	return nil
}
