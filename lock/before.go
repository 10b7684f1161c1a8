package lock

import (
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/state"
)

// Before is who comes before a node in a queue.
type Before struct {
	Node   string                // empty where its ticket cannot be read
	Unread *state.BadRecordError // why not: the ticket keeps its place
}

// before reads who has a ticket.
func before(s *state.Store, ticket *mvccpb.KeyValue) *Before {
	k, err := s.Key(ticket)
	if bad, ok := errors.AsType[*state.BadRecordError](err); ok {
		return &Before{Unread: bad}
	}
	return &Before{Node: k.Node}
}

func (b *Before) String() string {
	if b.Unread != nil {
		return "the ticket " + b.Unread.Key + ", which cannot be read,"
	}
	return b.Node
}
