package datastore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// Member is a host that carries the datastore, as its own answer tells.
type Member struct {
	Node     string   `json:"node"` // "": the host did not come yet
	Role     string   `json:"role"` // leader, member or learner: that one gets the record and does not count yet
	Endpoint string   `json:"endpoint,omitempty"`
	Answers  bool     `json:"answers"`
	Size     int64    `json:"size,omitempty"`  // of its file, in bytes
	InUse    int64    `json:"inUse,omitempty"` // of that, in bytes
	Lag      uint64   `json:"lag"`             // how many changes it lacks
	Errors   []string `json:"errors,omitempty"`
}

// Members asks all members how they are. Everybody with a certificate may. Where too few answer, it goes by what one of
// them knows.
func Members(ctx context.Context, client *clientv3.Client) ([]Member, error) {
	listed, err := client.MemberList(ctx)
	if err != nil && state.Unanswered(err) {
		listed, err = client.MemberList(ctx, clientv3.WithSerializable())
	}
	if err != nil {
		return nil, err
	}
	answers := statuses(ctx, client, listed.Members)
	newest := newestOf(answers)
	var out []Member
	for _, m := range listed.Members {
		out = append(out, memberOf(m, answers[m.ID], newest))
	}
	slices.SortFunc(out, func(a, b Member) int { return cmp.Compare(a.Node, b.Node) })
	return out, nil
}

// newestOf is the last change that one of the members has.
func newestOf(answers map[uint64]*clientv3.StatusResponse) (newest uint64) {
	for _, s := range answers {
		newest = max(newest, s.RaftIndex)
	}
	return newest
}

// votersBut are the members that count, without one of them; 0 leaves out none.
func votersBut(members []*pb.Member, id uint64) []*pb.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m *pb.Member) bool { return m.IsLearner || m.ID == id })
}

func memberOf(m *pb.Member, s *clientv3.StatusResponse, newest uint64) Member {
	out := Member{Node: m.Name, Role: "member"}
	if m.IsLearner {
		out.Role = "learner"
	}
	if len(m.ClientURLs) > 0 {
		out.Endpoint = m.ClientURLs[0]
	}
	if s == nil {
		return out
	}
	if s.Leader == m.ID {
		out.Role = "leader"
	}
	out.Answers, out.Size, out.InUse, out.Errors = true, s.DbSize, s.DbSizeInUse, s.Errors
	out.Lag = newest - min(newest, s.RaftAppliedIndex)
	return out
}

// Bears says in a sentence how many of the members answer, and how many more may fail.
func Bears(members []Member) string {
	voters, answer := 0, 0
	for _, m := range members {
		if m.Role != "learner" {
			voters++
			if m.Answers {
				answer++
			}
		}
	}
	more := answer - (voters/2 + 1)
	what := fmt.Sprintf("%d of %d members answer", answer, voters)
	switch {
	case voters == 1:
		return "1 member: the fleet stands still while it is away"
	case more < 0:
		return what + ": too few, nothing is written"
	case more == 0:
		return what + ": none more may fail"
	}
	return what + ": " + strings.Replace(fmt.Sprintf("%d more may fail", more), "1 more may", "one more may", 1)
}
