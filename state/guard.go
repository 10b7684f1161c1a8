package state

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Origin is where the fleet's record was when a node saw it last. A record that is another one, or younger, was replaced or restored from a
// backup: claims that were made since are forgotten there.
type Origin struct {
	Cluster  uint64 `json:"cluster,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	Accepted string `json:"accepted,omitempty"` // the operator's acceptance that was seen last
}

// WentBackError says that the fleet's record is older than what the node saw before.
type WentBackError struct {
	Seen, Is Origin
}

func (e *WentBackError) Error() string {
	what := fmt.Sprintf("it went back in time, from revision %d to %d", e.Seen.Revision, e.Is.Revision)
	if e.Seen.Cluster != e.Is.Cluster {
		what = "it is another one than this node knows"
	}
	return "the fleet's record in etcd was restored or replaced: " + what +
		"; look whether anybody is in the middle of an upgrade, then accept it: pullet rollout resume --store"
}

func (s *Store) acceptedKey() string { return s.key("store_accepted") }

// Guard compares the fleet's record with what the node saw last; a *WentBackError tells that it is not to be trusted. It returns where it is
// now.
func (s *Store) Guard(ctx context.Context, seen Origin) (Origin, error) {
	got, err := s.Client.Get(ctx, s.acceptedKey())
	if err != nil {
		return seen, err
	}
	now := Origin{Cluster: got.Header.ClusterId, Revision: got.Header.Revision}
	if len(got.Kvs) > 0 {
		now.Accepted = string(got.Kvs[0].Value)
	}
	back := seen.Cluster != 0 && (seen.Cluster != now.Cluster || now.Revision < seen.Revision)
	if back && (now.Accepted == "" || now.Accepted == seen.Accepted) {
		return seen, &WentBackError{seen, now}
	}
	return now, nil
}

// Accept tells every node that the fleet's record is to be trusted as it is.
func (s *Store) Accept(ctx context.Context, by string) error {
	_, err := s.Client.Txn(ctx).Then(
		clientv3.OpPut(s.acceptedKey(), by+" "+time.Now().UTC().Format(time.RFC3339Nano)), s.WakeOp(), s.RingOp()).Commit()
	return err
}
