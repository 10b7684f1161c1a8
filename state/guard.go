package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Origin is where the fleet's record was when a node saw it last. A record that is another one, or younger, was replaced or restored from a
// backup: claims that were made since are forgotten there.
type Origin struct {
	Cluster  uint64 `json:"cluster,omitempty"`
	Revision int64  `json:"revision,omitempty"` // at which the node's own record was written
	Accepted string `json:"accepted,omitempty"` // the operator's acceptance that was seen last
}

// WentBackError says that the fleet's record is older than what the node saw before.
type WentBackError struct {
	Seen, Is Origin
}

// wentBack begins the reason of a pause that a node made because the record is not to be trusted.
const wentBack = "the fleet's record in etcd was restored or replaced: "

func (e *WentBackError) Error() string {
	what := fmt.Sprintf("this node's record went back in time, from revision %d to %d", e.Seen.Revision, e.Is.Revision)
	if e.Seen.Cluster != e.Is.Cluster || e.Is.Revision == 0 {
		what = "it is another one than this node knows"
	}
	return wentBack + what +
		"; look whether anybody is in the middle of an upgrade, then accept it: pullet rollout resume --store"
}

func (s *Store) acceptedKey() string { return s.key("store_accepted") }

// Guard compares the fleet's record with what the node saw last; a *WentBackError tells that it is not to be trusted. It returns where it is
// now. What is compared is the node's own record: others may have written a lot since the store went back. The rollouts are paused then, so
// that nobody goes on who saw less. What comes later in this process is compared by onward.
func (s *Store) Guard(ctx context.Context, node string, seen Origin) (Origin, error) {
	s.onward.begin()
	got, err := s.Client.Txn(ctx).Then(clientv3.OpGet(s.acceptedKey()), clientv3.OpGet(s.NodeKey(node), clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return seen, err
	}
	now := Origin{Cluster: got.Header.ClusterId}
	if accepted := got.Responses[0].GetResponseRange().Kvs; len(accepted) > 0 {
		word, _ := Read[Word](s, accepted[0]) // one that cannot be read accepts nothing
		now.Accepted = string(word)
	}
	if own := got.Responses[1].GetResponseRange().Kvs; len(own) > 0 {
		now.Revision = own[0].ModRevision
	}
	back := seen.Revision != 0 && (seen.Cluster != now.Cluster || now.Revision < seen.Revision)
	if back && (now.Accepted == "" || now.Accepted == seen.Accepted) {
		back := &WentBackError{seen, now}
		_, err := s.Pause(ctx, &Switch{Reason: back.Error(), By: node, At: time.Now().UTC()}, 0)
		return seen, errors.Join(back, err)
	}
	return now, nil
}

// Accept tells every node that the fleet's record is to be trusted as it is, and lifts the pause.
func (s *Store) Accept(ctx context.Context, by string) error {
	ops := []clientv3.Op{clientv3.OpPut(s.acceptedKey(), by+" "+time.Now().UTC().Format(time.RFC3339Nano)), s.wakeOp(), s.RingOp()}
	pause, seen, err := get[Switch](ctx, s, s.PauseKey())
	if unlessBad(err) != nil {
		return err
	}
	if seen != 0 && strings.HasPrefix(pause.Reason, wentBack) { // an operator's own pause stays
		ops = append(ops, clientv3.OpDelete(s.PauseKey()))
	}
	_, err = s.Client.Txn(ctx).Then(ops...).Commit()
	return err
}
