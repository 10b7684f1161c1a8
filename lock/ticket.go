package lock

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// ticket is the node's place in a queue.
type ticket struct {
	store *state.Store
	req   *Request

	key         string
	maybeQueued bool             // it may be there
	queued      bool             // it is
	outside     bool             // the node is out of the queue for its own reason
	first       bool             // it is most likely the first in the queue now
	session     clientv3.LeaseID // of the ticket, where the node's own lease outlives the process
	renewed     time.Time        // of the session
}

// op writes the ticket.
func (k *ticket) op(ctx context.Context) (clientv3.Op, error) {
	lease := k.req.Presence.Lease
	if k.req.Lasting {
		granted, err := k.store.Client.Grant(ctx, int64(session.Seconds()))
		if err != nil {
			return clientv3.Op{}, err
		}
		lease, k.session, k.renewed = granted.ID, granted.ID, time.Now()
	}
	return clientv3.OpPut(k.key, "", clientv3.WithLease(lease)), nil
}

// leave gives up the place in the queue.
func (k *ticket) leave(ctx context.Context) error {
	if !k.maybeQueued {
		return nil
	}
	k.queued, k.maybeQueued = false, false
	_, err := k.store.Client.Delete(ctx, k.key)
	return err
}

// discard removes an older ticket of the same node, which a pull left that was killed or cut off from etcd: the node
// would wait for itself until the lease of that ticket ends. Only one pull is at work on a node.
func (k *ticket) discard(ctx context.Context, key string) error {
	_, err := k.store.Client.Delete(ctx, key)
	return err
}
