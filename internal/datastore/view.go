package datastore

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/state"
)

// view is what a leader sees of the datastore.
type view struct {
	members []*pb.Member
	answers map[uint64]*clientv3.StatusResponse
	record  state.Datastore
	self    uint64
}

// node is the host of a member; "" where nobody knows it.
func (v view) node(m *pb.Member) string {
	if m.Name != "" {
		return m.Name
	}
	for _, node := range slices.Sorted(maps.Keys(v.record.Handed)) {
		if v.record.Handed[node].Member == m.ID {
			return node
		}
	}
	return ""
}

// member is the member of a host.
func (v view) member(node string) *pb.Member {
	for _, m := range v.members {
		if v.node(m) == node {
			return m
		}
	}
	return nil
}

// reached reports a member that one of the others reaches. Members that say nothing are no witnesses.
func (v view) reached(m *pb.Member) bool {
	if v.answers[m.ID] != nil || m.ID == v.self {
		return true
	}
	for _, other := range v.members {
		said, lives := v.record.Reach[other.Name]
		if lives && other.ID != m.ID && other.ID != v.self && !slices.Contains(said.Away, m.Name) {
			return true
		}
	}
	return false
}

// at is the host of the member that has the address which a host offers; "": none.
func (v view) at(node string) string {
	for _, m := range v.members {
		if offer, offers := v.record.Carriers[node]; offers && slices.Contains(m.PeerURLs, peerURLOf(offer)) {
			return v.node(m)
		}
	}
	return ""
}

// fits says why a host cannot become a member with what it offers. It wrote that itself.
func (v view) fits(node string) error {
	offer, offers := v.record.Carriers[node]
	if !offers {
		return errors.New("it did not pull since the repository names it")
	}
	if _, err := trust.ParseRecipient(offer.Recipient); err != nil {
		return fmt.Errorf("its recipient: %w", err)
	}
	return nil
}

// unfit says of the hosts that cannot become members with what they offer why.
func (v view) unfit() (out string) {
	for _, h := range v.record.Wanted.Hosts {
		if _, offers := v.record.Carriers[h.Node]; !offers || v.member(h.Node) != nil {
			continue
		}
		if err := v.fits(h.Node); err != nil {
			out += fmt.Sprintf("; %s: %s", h.Node, err)
		} else if at := v.at(h.Node); at != "" {
			out += fmt.Sprintf("; %s offers the address of %s", h.Node, at)
		}
	}
	return out
}

// left are hosts of which the record says that they become members, or are moved away from, and that are none: who
// removed them ended before it wrote that.
func (v view) left() (out []string) {
	nodes := slices.AppendSeq(slices.Collect(maps.Keys(v.record.Handed)), maps.Keys(v.record.Moving))
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		if v.member(node) == nil {
			out = append(out, node)
		}
	}
	return out
}
