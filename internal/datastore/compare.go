package datastore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

const (
	compareEvery = 10 * time.Minute
	compareTries = 5 // at one revision, with a second between two: others may lack it, or forget their history just then
)

// comparing compares the record of this member with those of the others.
type comparing struct{ *keeper }

// compare compares the record of this member with those of the others, when it starts and every ten minutes until ctx
// ends. etcd itself would have all members refuse service where one of them differs, and a member that starts again
// refuses it although another one is wrong. Here the one that most members contradict ends, with an *endedError.
func (k comparing) compare(ctx context.Context, end context.CancelCauseFunc) {
	every := time.NewTicker(compareEvery)
	defer every.Stop()
	for {
		found, err := k.records(ctx)
		if err != nil && ctx.Err() == nil {
			k.Log.WithError(err).Warn("the record could not be compared with those of the other members")
		}
		if err == nil && k.differs(found) {
			end(&endedError{fmt.Sprintf("its record at revision %d is not that of %s: look at its disk and memory",
				found.revision, strings.Join(found.unlike(), " and "))})
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
	}
}

// differs notes which records differ, for people, and reports that this member's is wrong.
func (k comparing) differs(found records) bool {
	unlike := found.unlike()
	k.mu.Lock()
	k.unlike = unlike
	k.mu.Unlock()
	if len(unlike) > 0 {
		k.Log.WithField("revision", found.revision).Error("this record differs from that of " + strings.Join(unlike, ", "))
	}
	return found.wrong()
}

// records are the hashes of the members' records at one revision.
type records struct {
	revision int64
	voters   int
	own      uint32
	others   map[string]uint32 // by node: of those that could be compared
}

// unlike are the members whose record differs from this one's.
func (r records) unlike() (out []string) {
	for node, hash := range r.others {
		if hash != r.own {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}

// wrong reports that most members have one record, and this one has another.
func (r records) wrong() bool {
	same := map[uint32]int{}
	for _, hash := range r.others {
		if same[hash]++; hash != r.own && same[hash] > r.voters/2 {
			return true
		}
	}
	return false
}

// records asks all members that vote for the hash of what they have. A member alone has nothing to compare.
func (k comparing) records(ctx context.Context) (out records, err error) {
	member, store, err := k.serving()
	if err != nil {
		return out, err
	}
	listed, err := store.Client.MemberList(ctx)
	if err != nil {
		return out, err
	}
	self := &pb.Member{ID: uint64(member.server.Server.MemberID()), ClientURLs: []string{k.loopback()}}
	others := votersBut(listed.Members, self.ID)
	for range compareTries {
		again := false
		if out, again, err = hashes(ctx, store.Client, self, others); err != nil || !again {
			return out, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
	return out, nil
}

// hashes asks each member once, and reports that it may help to ask again. The hash is of the keys and values from the
// oldest revision that is kept to this one's last; versions of etcd may make it in their own ways.
func hashes(
	ctx context.Context, c *clientv3.Client, self *pb.Member, others []*pb.Member,
) (out records, again bool, err error) {
	out = records{voters: len(others) + 1, others: map[string]uint32{}}
	if len(others) == 0 {
		return out, false, nil
	}
	answers := statuses(ctx, c, append(slices.Clone(others), self))
	own := answers[self.ID]
	if own == nil {
		return out, false, errors.New("the member of this host does not answer")
	}
	mine, err := hashAt(ctx, c, self, 0)
	if err != nil {
		return out, false, err
	}
	out.own, out.revision = mine.Hash, mine.HashRevision
	for _, m := range others {
		if a := answers[m.ID]; a == nil || a.Version != own.Version {
			continue
		}
		h, err := hashAt(ctx, c, m, out.revision)
		if err == nil && h.CompactRevision == mine.CompactRevision {
			out.others[cmp.Or(m.Name, fmt.Sprintf("member-%x", m.ID))] = h.Hash
		} else { // it is behind, or forgot its history just then
			again = true
		}
	}
	return out, again, nil
}

// hashTime is how long a member takes at most to read its whole record.
const hashTime = time.Minute

func hashAt(ctx context.Context, c *clientv3.Client, m *pb.Member, revision int64) (*clientv3.HashKVResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, hashTime)
	defer cancel()
	return c.HashKV(ctx, m.ClientURLs[0], revision)
}

// Unlike says which members found that their records differ, and stay because too few answer to tell which is wrong;
// "": none did.
func Unlike(d state.Datastore) string {
	var out []string
	for _, node := range slices.Sorted(maps.Keys(d.Reach)) {
		if others := d.Reach[node].Unlike; len(others) > 0 {
			out = append(out, fmt.Sprintf("the record of %s differs from that of %s", node, strings.Join(others, " and ")))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "; ") + ", and no majority says which is right"
}
