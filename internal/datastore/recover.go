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
)

// Recovering makes this host the only member of a datastore that lost its quorum.
type Recovering struct {
	Config
	Fleet string
	Node  string // this host
	Force bool   // also where another member that answers has more of the record
}

// Survivor is a member of a datastore as it answers, or for this host as its files tell.
type Survivor struct {
	Node      string
	Endpoint  string // "": it never came
	Here      bool   // it is this host
	Answers   bool
	Learner   bool
	Elsewhere bool // it answers as a member of another cluster

	Term, Index uint64    // of the last entry: here of all that it has, of others of what they know as committed
	Written     time.Time // when it wrote last; zero: only this host tells
}

// has reports a member of whose record something is known.
func (s Survivor) has() bool { return s.Here || s.Answers }

// Survey are the members that this host knows.
type Survey struct {
	Members []Survivor
	Runs    bool // pullet-etcd, on this host
	cluster uint64
}

// Survey looks at the files of this host, and asks the other members how they are. It changes nothing.
func (r Recovering) Survey(ctx context.Context) (s Survey, err error) {
	if err := r.ready(time.Now()); err != nil {
		return s, err
	}
	at, err := r.files()
	if err != nil {
		return s, err
	}
	have, err := at.kept()
	if err != nil {
		return s, fmt.Errorf("the log of the record: %w", err)
	}
	s.cluster = have.cluster
	client, err := r.asKeeper()
	if err != nil {
		return s, err
	}
	defer client.Close()
	members, err := at.members()
	if s.Runs = errors.Is(err, errRuns); s.Runs {
		members, err = listedBy(ctx, client)
	}
	if err != nil {
		return s, err
	}
	itself := func(m *pb.Member) bool { return m.ID == have.member }
	answers := statuses(ctx, client, slices.DeleteFunc(slices.Clone(members), itself))
	for _, m := range members {
		s.Members = append(s.Members, survivor(m, have, answers[m.ID]))
	}
	return s, nil
}

// ready sees to the credentials with which other members are asked.
func (r Recovering) ready(now time.Time) error {
	k, err := readKeys(r.Config, r.Fleet)
	if err == nil {
		err = k.complete(now)
	}
	if err != nil {
		return err
	}
	due, err := k.due(now)
	if err == nil && due {
		err = k.write(now)
	}
	return err
}

// listedBy are the members as the one of this host knows them, which runs and may have no quorum.
func listedBy(ctx context.Context, client *clientv3.Client) ([]*pb.Member, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	listed, err := client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return nil, fmt.Errorf("%w, and does not answer: systemctl stop pullet-etcd, and type it again", errRuns)
	}
	return listed.Members, nil
}

func survivor(m *pb.Member, have kept, a *clientv3.StatusResponse) Survivor {
	out := Survivor{Node: m.Name, Learner: m.IsLearner, Here: m.ID == have.member}
	if len(m.ClientURLs) > 0 {
		out.Endpoint = m.ClientURLs[0]
	}
	switch {
	case out.Here:
		out.Term, out.Index, out.Written = have.term, have.index, have.written
	case a != nil:
		out.Answers, out.Elsewhere = true, a.Header.ClusterId != have.cluster
		out.Term, out.Index = a.RaftTerm, a.RaftIndex
	}
	return out
}

// Best is the member with most of the record, as far as this host knows; this one where others have as much.
func (s Survey) Best() Survivor {
	best := s.here()
	for _, m := range s.Members {
		if m.Answers && !m.Elsewhere && (m.Term > best.Term || m.Term == best.Term && m.Index > best.Index) {
			best = m
		}
	}
	return best
}

func (s Survey) here() Survivor {
	i := slices.IndexFunc(s.Members, func(m Survivor) bool { return m.Here })
	if i < 0 {
		return Survivor{}
	}
	return s.Members[i]
}

// Away are the nodes of the members that do not answer.
func (s Survey) Away() (out []string) {
	for _, m := range s.Members {
		if !m.has() && m.Node != "" {
			out = append(out, m.Node)
		}
	}
	return out
}

// Check says why this host is not made the only member, and what to do instead.
func (r Recovering) Check(s Survey) error {
	voters, there := 0, 0
	for _, m := range s.Members {
		switch {
		case m.Elsewhere:
			return fmt.Errorf("%s goes on already, as another datastore: pullet datastore status; "+
				"start pullet-etcd on this host, too: it puts its record aside when it was recovered there", m.Node)
		case m.Learner:
		case m.has():
			voters, there = voters+1, there+1
		default:
			voters++
		}
	}
	here, best := s.here(), s.Best()
	switch {
	case !here.Here:
		return errors.New("this host is no member of the datastore any more: the others removed it")
	case here.Learner:
		return errors.New("this host was to become a member, and counts for none yet: recover the datastore on another " +
			"one, or restore a backup (docs/datastore.md)")
	case voters == 1:
		return errors.New("this host is the only member, and nothing is lost: systemctl start pullet-etcd")
	case there > voters/2:
		return fmt.Errorf("%d of %d members are there, with this host, which is enough, and nothing is lost: start "+
			"pullet-etcd on all of them, and see pullet datastore status; where they do not find each other, look at "+
			"their peer ports", there, voters)
	case !best.Here && !r.Force:
		return fmt.Errorf("%s has more of the record than this host: type it there; or lose the rest with --force",
			best.Node)
	case s.Runs:
		return errors.New("pullet-etcd runs on this host: systemctl stop pullet-etcd, and type it again")
	}
	return nil
}

// asidePrefix is of directories with the record that a member had before it went on alone.
const asidePrefix = "before-recovery-"

// Recover makes this host the only member, with all that it has of the record, which is another cluster to etcd from
// then on: hosts see that it may have gone back in time. It returns where the files of before are. Who is killed does
// it again.
func (r Recovering) Recover(ctx context.Context, now time.Time) (aside string, err error) {
	s, err := r.Survey(ctx)
	if err == nil {
		err = r.Check(s)
	}
	if err != nil {
		return "", err
	}
	from, back, err := r.setAside(now)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, back())
		}
	}()
	work := memberFiles(r.file(workDir))
	defer func() { err = errors.Join(err, os.RemoveAll(string(work)), os.RemoveAll(r.file(restoringDir))) }()
	if err := errors.Join(os.RemoveAll(string(work)), os.CopyFS(string(work), os.DirFS(string(from)))); err != nil {
		return "", err
	}
	if err := work.commit(); err != nil {
		return "", fmt.Errorf("the log of the record: %w", err)
	}
	if err := r.settle(ctx, work); err != nil {
		return "", err
	}
	return string(from), r.goOn(work, s.cluster, now)
}
