package datastore

import (
	"cmp"
	"context"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pullet/pullet/state"
)

// progress is how far the rotation is, and who is waited for.
func (k rotation) progress(ctx context.Context) (Rotated, error) {
	x, err := k.look(ctx)
	if err != nil {
		return Rotated{}, err
	}
	said, err := x.said(ctx)
	if err != nil {
		return Rotated{}, err
	}
	c, err := x.store.Identities.All(ctx)
	if err != nil {
		return Rotated{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if said[k.Node], err = k.itself(); err != nil {
		return Rotated{}, err
	}
	return Rotated{
		Phase: x.record.Phase, Waiting: k.keys.former(c.Identities), Members: lacking(x.record, named(x.members), said),
	}, nil
}

// itself is what this member says of itself.
func (k rotation) itself() (state.Reach, error) {
	own, err := Candidate{k.Config}.recipient()
	if err != nil {
		return state.Reach{}, err
	}
	by, err := k.keys.presents()
	return state.Reach{
		Recipient: own.Recipient().String(), Believes: fingerprintsOf(k.believes), Presents: by, Format: state.Format,
	}, err
}

func named(members []*pb.Member) (out []string) {
	for _, m := range members {
		out = append(out, m.Name)
	}
	return out
}

// lacking are the members for which a phase waits, by what they say. Of one that says nothing it is not known that it
// has what the phase is about; when the rotation ended it had.
func lacking(r state.Rotation, members []string, said map[string]state.Reach) (out []string) {
	for _, node := range slices.Sorted(slices.Values(members)) {
		s, says := said[node]
		waits := false
		switch r.Phase {
		case state.RotationBelieve:
			waits = !slices.Contains(s.Believes, r.Authority)
		case state.RotationPresent:
			waits = s.Presents != r.Authority
		case state.RotationEnd:
			waits = says && len(s.Believes) > 1 && slices.Contains(s.Believes, r.Authority)
		}
		if waits && node == "" {
			node = "a host that comes"
		}
		if waits {
			out = append(out, node)
		}
	}
	return out
}

// Exchanging says in a sentence how far the members exchange the authority; "" where they do not.
func Exchanging(d state.Datastore, members []Member) string {
	var nodes []string
	for _, m := range members {
		nodes = append(nodes, m.Node)
	}
	left := strings.Join(lacking(d.Rotation, nodes, d.Reach), ", ")
	waits := "waits for " + cmp.Or(left, "the leading member, which takes the next step")
	switch d.Rotation.Phase {
	case state.RotationBelieve:
		return "the members learn to believe the next authority: " + waits
	case state.RotationSign:
		return "hosts and people get certificates of the new authority: pullet fleet rotate, on a member, names who has none"
	case state.RotationPresent:
		return "the members get certificates of the new authority: " + waits
	case state.RotationEnd:
		if left != "" {
			return "the former authority counts no more, but on " + left + ": each starts anew when all others answer"
		}
	}
	return ""
}
