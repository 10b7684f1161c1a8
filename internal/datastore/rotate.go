package datastore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// rotatePath is where root of this host asks for another authority.
const rotatePath = "/rotate"

// rotatedIn is how long who asks for another authority waits to hear what became of that.
const rotatedIn = 10 * time.Second

// Rotated is how far a rotation is.
type Rotated struct {
	Begun   bool     `json:"begun"`             // now
	Phase   string   `json:"phase"`             // state.RotationBelieve and so on
	Waiting []string `json:"waiting,omitempty"` // who has a certificate of a former authority
	Members []string `json:"members,omitempty"` // that are waited for
}

// rotation exchanges the authority.
type rotation struct{ *keeper }

// rotate makes a new authority, which signs when all members believe it, beside the one before. With finish it ends
// the rotation although somebody has no certificate of the new one.
func (k rotation) rotate(ctx context.Context, finish bool) (Rotated, error) {
	begun, err := k.record(ctx, finish)
	if err != nil {
		return Rotated{}, err
	}
	want := state.RotationSign
	if finish {
		want = state.RotationEnd
	}
	k.rouse(k.tended)
	for end := time.Now().Add(rotatedIn); ; {
		out, err := k.progress(ctx)
		done := err == nil && (out.reached(want) || !begun && !finish)
		if done || time.Now().After(end) { // else it may have started anew just then
			out.Begun = begun
			return out, err
		}
		select {
		case <-time.After(restTime):
		case <-ctx.Done():
			_, _, broken := k.serving()
			return Rotated{}, cmp.Or(broken, ctx.Err())
		}
	}
}

// reached reports that the rotation is in a phase or behind it, and no member is waited for any more.
func (r Rotated) reached(phase string) bool {
	return state.Rotation{Phase: r.Phase}.Reached(phase) && len(r.Members) == 0
}

// record puts on record what is asked for. It is true for a rotation that begins.
func (k rotation) record(ctx context.Context, finish bool) (begun bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, revision, err := k.store.Datastores.Rotation(ctx)
	if err != nil {
		return false, err
	}
	switch underWay := k.underWay(r); {
	case finish && !underWay:
		return false, errors.New("no rotation is under way: pullet fleet rotate begins one")
	case finish && !r.Reached(state.RotationSign):
		return false, errors.New("the members of the datastore do not all believe the new authority yet, and who is left " +
			"then would be shut out: pullet fleet rotate says which are waited for")
	case underWay && (!finish || r.Finish):
		return false, nil
	case finish:
		r.Finish = true
	default:
		begun = true
		if r, err = k.begin(ctx, time.Now()); err != nil {
			return false, err
		}
	}
	done, err := k.store.Datastores.Rotate(ctx, r, revision)
	if err == nil && !done {
		err = errors.New("another member recorded a step of a rotation at the same time: type it again")
	}
	return begun, err
}

// underWay reports a rotation that this member takes part in. What it cannot use is none: as long as it does not
// believe the next authority nobody signs with that, so that another one may take its place.
func (k rotation) underWay(r state.Rotation) bool {
	if k.keys.authority.Rotating() {
		return true
	}
	sealed, got := r.Sealed[k.Node]
	if !got {
		return false
	}
	next, err := k.received(sealed)
	if err == nil {
		_, err = k.keys.authority.Expect(next)
	}
	return err == nil
}

// begin makes the next authority, for this member and for those that say for which key.
func (k rotation) begin(ctx context.Context, now time.Time) (state.Rotation, error) {
	next, err := k.keys.authority.Rotate(now)
	if err != nil {
		return state.Rotation{}, err
	}
	listed, err := k.store.Client.MemberList(ctx)
	if err != nil {
		return state.Rotation{}, err
	}
	all, err := k.store.Datastores.All(ctx)
	if err != nil {
		return state.Rotation{}, err
	}
	own, err := Candidate{k.Config}.recipient()
	if err != nil {
		return state.Rotation{}, err
	}
	all.Reach[k.Node] = state.Reach{Recipient: own.Recipient().String()}
	sealed, err := sealFor(next, listed.Members, all.Reach, nil)
	return state.Rotation{
		Authority: next.Fingerprint(), Phase: state.RotationBelieve, By: k.Node, At: now.UTC(), Sealed: sealed,
	}, err
}

// sealFor encrypts the next authority for members that say for which key, beside what is encrypted already.
func sealFor(
	next *authority.Authority, members []*pb.Member, said map[string]state.Reach, have map[string]state.Sealed,
) (map[string]state.Sealed, error) {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]state.Sealed{}
	}
	for _, m := range members {
		to := said[m.Name].Recipient
		if to == "" || out[m.Name].Recipient == to {
			continue
		}
		text, err := sealed(to, next.Encode())
		if err != nil {
			return nil, fmt.Errorf("the recipient of %s: %w", m.Name, err)
		}
		out[m.Name] = state.Sealed{Recipient: to, Text: text}
	}
	return out, nil
}

// rotateHandler answers root of this host.
func rotateHandler(k *keeper) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		done, err := rotation{k}.rotate(r.Context(), r.URL.Query().Has("finish"))
		answer(w, done, err)
	}
}

// Rotate asks the datastore of this host for another authority, or to finish that.
func Rotate(ctx context.Context, c Config, finish bool) (out Rotated, err error) {
	path := rotatePath
	if finish {
		path += "?finish"
	}
	err = askInside(ctx, c, path, nil, &out)
	return out, err
}
