package datastore

import (
	"context"
	"os"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// restartTTL is how long a member may take to start anew until another one may do so, in seconds. That one looks first
// whether all others serve.
const restartTTL = 20

// restart starts the member anew, which reads what it believes when it starts: one at a time, while all others serve
// and are enough without it. It is false where that has to wait.
func (x *exchange) restart(ctx, runs context.Context) (bool, error) {
	if len(x.members) == 1 {
		return true, x.anew(runs)
	}
	if wait, err := x.others(ctx); err != nil || wait {
		return false, err
	}
	turn, err := x.store.Datastores.Turn(ctx, x.Node+" restarts", restartTTL)
	if err != nil || turn == 0 {
		return false, err
	}
	defer func() {
		if _, store, err := x.serving(); err == nil {
			_, _ = store.Client.Revoke(ctx, turn) // it ends by itself
		}
	}()
	if serve, err := x.othersServe(ctx); err != nil || !serve {
		return false, err
	}
	return true, x.anew(runs)
}

// others reports that the member that leads waits for the others to start anew first: so another one leads but once.
func (x *exchange) others(ctx context.Context) (bool, error) {
	if !x.member.leads() {
		return false, nil
	}
	said, err := x.said(ctx)
	if err != nil {
		return false, err
	}
	x.mu.Lock()
	believed := fingerprintsOf(x.keys.authority.Bundle())
	x.mu.Unlock()
	return slices.ContainsFunc(x.voters(), func(m *pb.Member) bool {
		return !slices.Equal(said[m.Name].Believes, believed)
	}), nil
}

// voters are the other members that count.
func (x *exchange) voters() []*pb.Member {
	return votersBut(x.members, uint64(x.member.server.Server.MemberID()))
}

// othersServe reports that all other members serve, as this one will see them when it started anew, and that they are
// a quorum.
func (x *exchange) othersServe(ctx context.Context) (bool, error) {
	credentials, err := os.ReadFile(x.file(keeperFile))
	if err != nil {
		return false, err
	}
	x.mu.Lock()
	bundle := x.keys.authority.Bundle()
	x.mu.Unlock()
	others := x.voters()
	all, err := x.answers(ctx, credentials, bundle, others)
	if err != nil {
		return false, err
	}
	for _, m := range others {
		if s := all[m.ID]; s == nil || len(s.Errors) > 0 { // such as one without a leader
			return false, nil
		}
	}
	return len(others) >= (len(others)+1)/2+1, nil
}

// anew starts the member anew. The others wait for it: what asked for that does not end it.
func (x *exchange) anew(runs context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.reopen(runs); err != nil {
		return err
	}
	if !x.keys.authority.Rotating() && x.record.Reached(state.RotationEnd) {
		x.Log.WithField("authority", x.keys.authority.Fingerprint()).Info("the former authority counts no more")
	}
	return nil
}

// fingerprintsOf are those of a bundle that this host wrote, sorted.
func fingerprintsOf(bundle []byte) []string {
	out, _ := authority.Fingerprints(bundle)
	slices.Sort(out)
	return out
}
