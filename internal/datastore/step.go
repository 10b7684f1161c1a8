package datastore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pullet/pullet/internal/datastore/membership"
	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/state"
)

// keptSteps is how many steps stay on record.
const keptSteps = 50

// step takes the next step, where there is one.
func (t *tending) step(ctx context.Context, store *state.Store, v view) error {
	cluster := t.cluster(v, time.Now())
	next := membership.Next(cluster)
	if differ := Unlike(v.record); differ != "" && next.Kind == membership.Add {
		next = membership.Step{Why: differ + ": no further member comes, which would get one of them"}
	}
	if next.Kind == membership.Add && !t.among() {
		return t.listen(ctx, store)
	}
	first, err := t.record(ctx, store, v, next)
	if err != nil || next.Kind == membership.Wait {
		return err
	}
	if first {
		t.Log.WithField("node", next.Node).WithField("why", next.Why).Info("members: " + string(next.Kind))
	}
	if err := t.take(ctx, store, v, next); err != nil {
		return fmt.Errorf("%s %s: %w", next.Kind, next.Node, err)
	}
	t.rouse(t.wake)
	return nil
}

// rouse wakes who waits.
func (k *keeper) rouse(who chan struct{}) {
	select {
	case who <- struct{}{}:
	default: // it is awake already
	}
}

// record records a step before it is taken, and for what the next one waits. It is true for one that was not tried
// before. Another leader that records one at the same time makes it fail.
func (t *tending) record(ctx context.Context, store *state.Store, v view, next membership.Step) (bool, error) {
	steps, waits := v.record.Steps, ""
	if next.Kind == membership.Wait && next.Why != "" {
		waits = next.Why + v.unfit()
	}
	var last state.MemberStep
	if n := len(steps.Steps); n > 0 {
		last = steps.Steps[n-1]
	}
	first := next.Kind != membership.Wait && (last.Kind != string(next.Kind) || last.Node != next.Node)
	if !first && waits == steps.Waits {
		return false, nil
	}
	steps.Waits = waits
	if first {
		m := v.member(next.Node)
		steps.Steps = append(slices.Clone(steps.Steps), state.MemberStep{
			Kind: string(next.Kind), Node: next.Node, Why: next.Why, By: t.Node, At: time.Now().UTC(),
			Failed: next.Kind == membership.Remove && m != nil && m.IsLearner && v.answers[m.ID] == nil,
		})
		steps.Steps = steps.Steps[max(0, len(steps.Steps)-keptSteps):]
	}
	done, err := store.Datastores.Record(ctx, steps, v.record.StepsRev)
	if err == nil && !done {
		err = errors.New("another member recorded a step at the same time")
	}
	return first, err
}

// take takes a step.
func (t *tending) take(ctx context.Context, store *state.Store, v view, next membership.Step) error {
	m := v.member(next.Node)
	if m == nil && next.Kind != membership.Add {
		return errors.New("it is no member")
	}
	switch next.Kind {
	case membership.Add:
		return t.add(ctx, store, v, next.Node)
	case membership.Promote:
		_, err := store.Client.MemberPromote(ctx, m.ID)
		return unless(err, rpctypes.ErrMemberLearnerNotReady)
	case membership.Lead:
		_, err := store.Client.MoveLeader(ctx, m.ID)
		return err
	default:
		if _, err := store.Client.MemberRemove(ctx, m.ID); err != nil {
			return err
		}
		return store.Datastores.Take(ctx, next.Node)
	}
}

// listen has a member that was alone listen to others, before the first of them comes.
func (t *tending) listen(ctx context.Context, store *state.Store) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.freePeer(); err != nil {
		return err
	}
	self := uint64(t.member.server.Server.MemberID())
	if _, err := store.Client.MemberUpdate(ctx, self, []string{t.peerURL()}); err != nil {
		return err
	}
	if err := durable.Replace(t.file(clusterFile), []byte(t.Node+"="+t.peerURL()+"\n")); err != nil {
		return err
	}
	t.Log.WithField("peer", t.peer()).Info("this member listens to others")
	return t.reopen(context.WithoutCancel(ctx))
}

// freePeer says that somebody else listens where this member is to: started anew, it would serve nobody.
func (c Config) freePeer() error {
	l, err := net.Listen("tcp", listening(c.peer()))
	if err != nil {
		return fmt.Errorf("datastore.peer: %w", err)
	}
	return l.Close()
}

// add has a host become a learner.
func (t *tending) add(ctx context.Context, store *state.Store, v view, node string) error {
	offer := v.record.Carriers[node]
	added, err := store.Client.MemberAddAsLearner(ctx, []string{peerURLOf(offer)})
	if err != nil {
		return err
	}
	return t.handTo(ctx, store, offer, node, added.Member.ID, added.Members)
}

// hand tells hosts that are to become members and did not come yet of the members that there are now. It takes what
// others got back: they came, or are members no more.
func (t *tending) hand(ctx context.Context, store *state.Store, v view) error {
	var errs []error
	for _, m := range v.members {
		node := v.node(m)
		if _, has := v.record.Handed[node]; has && m.Name != "" {
			errs = append(errs, store.Datastores.Took(ctx, node))
		}
		if carrier, offers := v.record.Carriers[node]; offers && m.Name == "" {
			errs = append(errs, t.handTo(ctx, store, carrier, node, m.ID, v.members))
		}
	}
	for _, node := range v.left() {
		errs = append(errs, store.Datastores.Take(ctx, node))
	}
	return errors.Join(errs...)
}

// Membership is what a host gets that becomes a member.
type Membership struct {
	Authority string `json:"authority"`      // with its key, in PEM
	Next      string `json:"next,omitempty"` // the next one with its key, where all members learn to believe that
	Cluster   string `json:"cluster"`        // the members with their addresses, as etcd wants to have them
}

// handTo gives a host what it needs, where it does not have that already.
func (t *tending) handTo(
	ctx context.Context, store *state.Store, c state.Carrier, node string, id uint64, members []*pb.Member,
) error {
	m := Membership{Cluster: clusterOf(members, id, node)}
	t.mu.Lock()
	// A host that lost its disk comes with another key.
	knows := m.Cluster + " " + c.Recipient + " " + string(t.keys.authority.Bundle())
	var err error
	m.Authority, m.Next, err = t.keys.handed()
	t.mu.Unlock()
	if err != nil || t.handed[id] == knows {
		return err
	}
	h, err := handed(c.Recipient, id, m)
	if err != nil {
		return err
	}
	if err := store.Datastores.Hand(ctx, node, h); err != nil {
		return err
	}
	t.handed[id] = knows
	return nil
}

// handed is what a member gets, encrypted for its host.
func handed(recipient string, id uint64, m Membership) (state.Handed, error) {
	text, _ := json.Marshal(m) // cannot fail: it is texts
	sealed, err := sealed(recipient, text)
	return state.Handed{Member: id, Sealed: sealed}, err
}

// sealed is a text, encrypted for one recipient.
func sealed(recipient string, text []byte) ([]byte, error) {
	to, err := trust.ParseRecipient(recipient)
	if err != nil {
		return nil, err
	}
	return trust.SealBinary(text, []trust.Recipient{to})
}

// clusterOf are the members for one that comes.
func clusterOf(members []*pb.Member, id uint64, node string) string {
	var out []string
	for _, m := range members {
		name := m.Name
		switch {
		case m.ID == id:
			name = node
		case name == "":
			name = fmt.Sprintf("member-%x", m.ID)
		}
		for _, url := range m.PeerURLs {
			out = append(out, name+"="+url)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// endpoints are where the members answer that count.
func (k *keeper) endpoints(ctx context.Context) ([]string, error) {
	listed, err := k.store.Client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range listed.Members {
		if !m.IsLearner {
			out = append(out, m.ClientURLs...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
