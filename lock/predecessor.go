package lock

import (
	"errors"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pullet/pullet/state"
)

// Predecessor is who comes before a node in a queue.
type Predecessor struct {
	Node   string                // empty where its ticket cannot be read
	Unread *state.BadRecordError // why not: the ticket keeps its place
}

// predecessorOf reads who has a ticket.
func predecessorOf(s *state.Store, ticket *mvccpb.KeyValue) *Predecessor {
	k, err := s.Key(ticket)
	if bad, ok := errors.AsType[*state.BadRecordError](err); ok {
		return &Predecessor{Unread: bad}
	}
	return &Predecessor{Node: k.Node}
}

func (b *Predecessor) String() string {
	if b.Unread != nil {
		return "the ticket " + b.Unread.Key + ", which cannot be read,"
	}
	return b.Node
}
