package datastore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// exchange is one look at a rotation of the authority among the members. What one phase has members present is what
// they all believe since the one before, so that no member refuses another one, or a host, whoever is behind.
type exchange struct {
	rotation
	member   *member
	store    *state.Store
	members  []*pb.Member
	record   state.Rotation
	revision int64 // of the record
}

// advance takes the steps of a rotation that can be taken now.
func (k rotation) advance(ctx context.Context) error {
	for {
		looking, cancel := context.WithTimeout(ctx, 4*tendEvery)
		x, err := k.look(looking)
		changed := false
		if err == nil {
			changed, err = x.step(looking, ctx)
		}
		cancel()
		if changed {
			k.rouse(k.wake)
			k.rouse(k.tended) // it says what it has now
		}
		if err != nil || !changed {
			return err
		}
	}
}

// look is what is known of the rotation now.
func (k rotation) look(ctx context.Context) (*exchange, error) {
	member, store, err := k.serving()
	if err != nil {
		return nil, err
	}
	x := &exchange{rotation: k, member: member, store: store}
	if x.record, x.revision, err = store.Datastores.Rotation(ctx); err != nil {
		return nil, err
	}
	listed, err := store.Client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	x.members = listed.Members
	return x, nil
}

// step takes the next step, and reports whether there was one. The member starts anew until runs ends.
func (x *exchange) step(ctx, runs context.Context) (bool, error) {
	x.mu.Lock()
	err := x.take()
	if err == nil {
		err = x.apply(ctx, x.record, time.Now())
	}
	x.store = x.keeper.store // it connected anew where this member presents another certificate now
	stale := !slices.Equal(fingerprintsOf(x.believes), fingerprintsOf(x.keys.authority.Bundle()))
	x.mu.Unlock()
	changed, failed := x.goesOn(ctx)
	if failed == nil && !changed {
		changed, failed = x.hand(ctx)
	}
	if err = errors.Join(err, failed); err != nil || changed {
		return changed, err
	}
	if stale {
		return x.restart(ctx, runs)
	}
	if !x.member.leads() || !x.record.Reached(state.RotationBelieve) || x.record.Reached(state.RotationEnd) {
		return false, nil
	}
	ready, err := x.ready(ctx)
	if err != nil || !ready {
		return false, err
	}
	return x.next(ctx)
}

// take places what this member got. It has to be the next one of the authority that it has: who writes etcd may have
// written it, and encrypt what he likes for everybody.
func (x *exchange) take() error {
	sealed, got := x.record.Sealed[x.Node]
	if !got || x.keys.exchanged(x.record.Authority) != nil {
		return nil
	}
	next, err := x.received(sealed)
	switch {
	case err == nil && next.Fingerprint() != x.record.Authority:
		err = fmt.Errorf("it is %s, and %s is recorded", next.Fingerprint(), x.record.Authority)
	case err == nil:
		err = x.keys.placeNext(next)
	}
	if err != nil {
		return fmt.Errorf("what this member got to exchange the authority: %w; type pullet fleet rotate on this host", err)
	}
	x.Log.WithField("authority", next.Fingerprint()).Info("the next authority is here")
	return nil
}

// received is the authority that this member got.
func (k rotation) received(sealed state.Sealed) (*authority.Authority, error) {
	text, err := Candidate{k.Config}.unseal(sealed.Text)
	if err != nil {
		return nil, err
	}
	return authority.Parse(text)
}

// apply does what a phase has this member do without starting anew.
func (k rotation) apply(ctx context.Context, r state.Rotation, now time.Time) error {
	next := k.keys.next
	if next != nil && next.Fingerprint() == r.Authority && r.Reached(state.RotationSign) {
		if err := k.keys.signNext(); err != nil {
			return err
		}
		k.Log.WithField("authority", r.Authority).Info("a new authority signs")
	}
	if k.keys.authority.Fingerprint() != r.Authority || !k.keys.authority.Rotating() ||
		!r.Reached(state.RotationPresent) {
		return nil
	}
	by, err := k.keys.presents()
	if err == nil && by != r.Authority {
		err = k.present(ctx, now)
	}
	if err != nil {
		return err
	}
	if r.Reached(state.RotationEnd) {
		return k.keys.change(k.keys.authority.Finish())
	}
	return nil
}

// goesOn records a rotation that is under way here and not on record: a backup from before was restored, or somebody
// wrote another one there. It begins with the first phase: nobody knows what the other members have.
func (x *exchange) goesOn(ctx context.Context) (bool, error) {
	x.mu.Lock()
	own, next := x.keys.authority, x.keys.next
	known := x.keys.exchanged(x.record.Authority) != nil
	x.mu.Unlock()
	if known || !own.Rotating() || !x.member.leads() {
		return false, nil
	}
	if next == nil {
		next = own
	}
	r := state.Rotation{Authority: next.Fingerprint(), Phase: state.RotationBelieve, By: x.Node, At: time.Now().UTC()}
	return x.store.Datastores.Rotate(ctx, r, x.revision)
}

// hand encrypts the next authority for members that say for which key, and did not get it yet.
func (x *exchange) hand(ctx context.Context) (bool, error) {
	if x.record.Phase != state.RotationBelieve {
		return false, nil
	}
	x.mu.Lock()
	next := x.keys.exchanged(x.record.Authority)
	x.mu.Unlock()
	if next == nil {
		return false, nil
	}
	said, err := x.said(ctx)
	if err != nil {
		return false, err
	}
	more, err := sealFor(next, x.members, said, x.record.Sealed)
	if err != nil || len(more) == len(x.record.Sealed) {
		return false, err
	}
	x.record.Sealed = more
	return x.store.Datastores.Rotate(ctx, x.record, x.revision)
}

// said is what members say of themselves.
func (x *exchange) said(ctx context.Context) (map[string]state.Reach, error) {
	all, err := x.store.Datastores.All(ctx)
	return all.Reach, err
}

// ready reports that all members are ready for the next phase. They show it themselves: what is on record of them is
// not asked, since a member that is taken for ready and is not would be shut out.
func (x *exchange) ready(ctx context.Context) (bool, error) {
	x.mu.Lock()
	own, next := x.keys.authority, x.keys.exchanged(x.record.Authority)
	x.mu.Unlock()
	switch {
	case next == nil:
		return false, nil
	case !own.Rotating(): // the record is older than what is here
		return true, nil
	}
	switch x.record.Phase {
	case state.RotationBelieve: // they let in who has a certificate of the next one
		credentials, err := x.keys.keeper(next, time.Now())
		if err != nil {
			return false, err
		}
		return x.allAnswer(ctx, credentials, own.Bundle())
	case state.RotationSign:
		c, err := x.store.Identities.All(ctx)
		return err == nil && (x.record.Finish || len(x.formerOf(c.Identities)) == 0), err
	default: // they present one of the next one
		credentials, err := os.ReadFile(x.file(keeperFile))
		if err != nil {
			return false, err
		}
		return x.allAnswer(ctx, credentials, next.Finish().Bundle())
	}
}

func (k rotation) formerOf(all map[string]state.Identity) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keys.former(all)
}

// next records the next phase. When the rotation ends nobody needs the encrypted keys any more.
func (x *exchange) next(ctx context.Context) (bool, error) {
	x.mu.Lock()
	rotating := x.keys.authority.Rotating()
	x.mu.Unlock()
	r := x.record
	switch {
	case rotating && r.Phase == state.RotationBelieve:
		r.Phase = state.RotationSign
	case rotating && r.Phase == state.RotationSign:
		r.Phase = state.RotationPresent
	default:
		r.Phase, r.Sealed = state.RotationEnd, nil
	}
	return x.store.Datastores.Rotate(ctx, r, x.revision)
}

// allAnswer reports that all members let somebody in with these credentials, who believes these authorities alone.
func (x *exchange) allAnswer(ctx context.Context, credentials, bundle []byte) (bool, error) {
	all, err := x.answers(ctx, credentials, bundle, x.members)
	return err == nil && len(all) == len(x.members), err
}

func (x *exchange) answers(
	ctx context.Context, credentials, bundle []byte, members []*pb.Member,
) (map[uint64]*clientv3.StatusResponse, error) {
	with, err := presenting(credentials, bundle)
	if err != nil {
		return nil, err
	}
	client, err := x.asking(with)
	if err != nil {
		return nil, err
	}
	defer client.Close() // nothing was written
	return statuses(ctx, client, members), nil
}
