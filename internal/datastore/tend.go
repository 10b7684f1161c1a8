package datastore

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/datastore/membership"
	"github.com/pullet/pullet/state"
)

const (
	tendEvery  = 5 * time.Second
	answerTime = 2 * time.Second // of a member that is asked how it is
	reachTTL   = 30              // seconds: what a member said of the others counts no more when it is gone for so long
)

// tending watches the other members, and changes them where this one leads. One goroutine uses it.
type tending struct {
	*keeper
	lease  clientv3.LeaseID
	said   state.Reach          // what this member says, as it is on record
	away   map[string]time.Time // since when nobody reaches a member, as far as this one knows
	looked time.Time            // at all members, last
	handed map[uint64]string    // by member: what its host was told, and for which key
	noted  string               // the error that was logged last
}

// tend watches the members until ctx ends.
func (k *keeper) tend(ctx context.Context) {
	t := &tending{keeper: k, away: map[string]time.Time{}, handed: map[uint64]string{}}
	every := time.NewTicker(cmp.Or(k.every, tendEvery))
	defer every.Stop()
	for {
		t.log(ctx, errors.Join(t.look(ctx), rotation{t.keeper}.advance(ctx)))
		select {
		case <-every.C:
		case <-t.tended:
		case <-ctx.Done():
			return
		}
	}
}

// log logs an error where it is another one than before: what keeps members from changing may last.
func (t *tending) log(ctx context.Context, err error) {
	text := ""
	if err != nil && ctx.Err() == nil {
		text = err.Error()
	}
	if text != "" && text != t.noted {
		t.Log.WithError(err).Warn("the members of the datastore: tried again in a moment")
	}
	t.noted = text
}

// look looks once at all members, says whom this one does not reach, and where it leads takes the next step.
func (t *tending) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 4*tendEvery)
	defer cancel()
	member, store, err := t.serving()
	if err != nil {
		return err
	}
	listed, err := store.Client.MemberList(ctx)
	if err != nil {
		return err
	}
	noted := t.lives.note(lifeOf(listed))
	all := statuses(ctx, store.Client, listed.Members)
	if err := errors.Join(noted, t.say(ctx, store, listed.Members, all)); err != nil {
		return err
	}
	if !member.leads() || time.Since(t.looked) > reachTTL*time.Second {
		clear(t.away) // nobody looked: this process stood still, or nothing was answered
		clear(t.handed)
	}
	t.looked = time.Now()
	if !member.leads() {
		return nil
	}
	d, err := store.Datastores.All(ctx)
	if err != nil || d.Wanted == nil {
		return err
	}
	now := view{listed.Members, all, d, uint64(member.server.Server.MemberID())}
	return errors.Join(t.hand(ctx, store, now), t.step(ctx, store, now))
}

// statuses asks all members that serve how they are.
func statuses(ctx context.Context, c *clientv3.Client, members []*pb.Member) map[uint64]*clientv3.StatusResponse {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	type answer struct {
		id uint64
		*clientv3.StatusResponse
	}
	answers := make(chan answer)
	for _, m := range members {
		go func() {
			if len(m.ClientURLs) == 0 {
				answers <- answer{m.ID, nil}
				return
			}
			s, err := c.Status(ctx, m.ClientURLs[0])
			if err != nil {
				s = nil
			}
			answers <- answer{m.ID, s}
		}()
	}
	out := map[uint64]*clientv3.StatusResponse{}
	for range members {
		if a := <-answers; a.StatusResponse != nil {
			out[a.id] = a.StatusResponse
		}
	}
	return out
}

// say records whom this member does not reach, what it has of the authority, and what it reads, with its lease.
func (t *tending) say(
	ctx context.Context, store *state.Store, members []*pb.Member, all map[uint64]*clientv3.StatusResponse,
) error {
	t.mu.Lock()
	says, err := rotation{t.keeper}.itself()
	says.Unlike = t.unlike
	t.mu.Unlock()
	if err != nil {
		return err
	}
	says.Away = []string{}
	for _, m := range members {
		if all[m.ID] == nil && m.Name != "" {
			says.Away = append(says.Away, m.Name)
		}
	}
	slices.Sort(says.Away)
	if t.lease != 0 {
		switch _, err := store.Client.KeepAliveOnce(ctx, t.lease); {
		case errors.Is(err, rpctypes.ErrLeaseNotFound):
			t.lease = 0
		case err != nil:
			return err
		case reflect.DeepEqual(says, t.said):
			return nil
		}
	}
	if t.lease == 0 {
		granted, err := store.Client.Grant(ctx, reachTTL)
		if err != nil {
			return err
		}
		t.lease = granted.ID
	}
	t.said = state.Reach{} // until it is on record: what could not be written is said again
	err = store.Datastores.Say(ctx, t.Node, says, t.lease)
	if err == nil {
		t.said = says
	}
	return err
}

// caughtUp is how many entries a learner may lack.
const caughtUp = 1000

// cluster is the view as the decision takes it.
func (t *tending) cluster(v view, now time.Time) membership.Cluster {
	w := v.record.Wanted
	c, failed := membership.Cluster{Count: w.Count, ReplaceAfter: w.ReplaceAfter}, failures(v.record.Steps)
	away := map[string]time.Time{}
	for _, m := range v.members {
		node := v.node(m)
		one := membership.Member{Node: node, Learner: m.IsLearner, Leader: m.ID == v.self, Moving: v.record.Moving[node]}
		if s, leads := v.answers[m.ID], v.answers[v.self]; s != nil && leads != nil {
			one.CaughtUp = s.RaftAppliedIndex+caughtUp >= leads.RaftIndex
		}
		if m.Name == "" || !v.reached(m) {
			since, known := t.away[node]
			if !known {
				since = now
			}
			away[node] = since
			one.Down = max(now.Sub(since), time.Nanosecond)
		}
		c.Members = append(c.Members, one)
	}
	t.away = away
	for _, h := range w.Hosts {
		c.Hosts = append(c.Hosts, membership.Host{
			Node: h.Node, Domain: h.Domain,
			Ready:  v.fits(h.Node) == nil && v.record.Alive[h.Node] && !v.record.Moving[h.Node],
			Failed: slices.Contains(failed, h.Node), At: v.at(h.Node),
		})
	}
	return withoutOldFailures(c, failed)
}

// failures are the hosts that did not come when they were taken last, the latest first.
func failures(steps state.MemberSteps) (out []string) {
	var seen []string
	for _, s := range slices.Backward(steps.Steps) {
		if s.Failed && !slices.Contains(seen, s.Node) {
			out = append(out, s.Node)
		}
		seen = append(seen, s.Node)
	}
	return out
}

// withoutOldFailures forgets that hosts failed when all that could come did, but for the last one: each is tried in
// turn.
func withoutOldFailures(c membership.Cluster, failed []string) membership.Cluster {
	answers := func(node string) bool {
		return slices.ContainsFunc(c.Members, func(m membership.Member) bool { return m.Node == node && m.Down == 0 })
	}
	for _, h := range c.Hosts {
		if h.Ready && !h.Failed && !answers(h.Node) {
			return c
		}
	}
	for i := range c.Hosts {
		h := &c.Hosts[i]
		h.Failed = h.Failed && h.Node == failed[0]
	}
	return c
}
