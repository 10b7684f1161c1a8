package membership

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// realEtcd is a cluster of members in this process.
type realEtcd struct {
	t       *testing.T
	members []*embed.Etcd
	ends    []func() // of each member
	peers   []string // NAME=URL of each
}

// join starts another member: of a new cluster as long as it is told all peers before.
func (r *realEtcd) join(state string) {
	r.t.Helper()
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogOutputs, c.LogLevel = fmt.Sprint("n", len(r.members)), r.t.TempDir(), []string{"/dev/null"}, "fatal"
	_, address, _ := strings.Cut(r.peers[len(r.members)], "=")
	c.ListenPeerUrls = parsed(r.t, address)
	c.AdvertisePeerUrls = c.ListenPeerUrls
	c.ListenClientUrls = parsed(r.t, "http://127.0.0.1:0")
	c.InitialCluster, c.ClusterState, c.MaxLearners = strings.Join(r.peers, ","), state, MaxLearners
	member, err := embed.StartEtcd(c)
	if err != nil {
		r.t.Fatal(err)
	}
	end := sync.OnceFunc(member.Close)
	r.t.Cleanup(end)
	r.members, r.ends = append(r.members, member), append(r.ends, end)
}

func parsed(t *testing.T, text string) []url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return []url.URL{*u}
}

// peer names a further member, at an address at which nobody listens.
func (r *realEtcd) peer() (address string) {
	r.t.Helper()
	at, err := freeport.Address()
	if err != nil {
		r.t.Fatal(err)
	}
	address = "http://" + at
	r.peers = append(r.peers, fmt.Sprintf("n%d=%s", len(r.peers), address))
	return address
}

// leader waits for one, and connects to it.
func (r *realEtcd) leader() (int, *clientv3.Client) {
	r.t.Helper()
	leads := -1
	patience.UntilWithin(r.t, time.Minute, "a member leads", func() bool {
		leads = slices.IndexFunc(r.members, func(m *embed.Etcd) bool { return m.Server.Leader() == m.Server.MemberID() })
		return leads >= 0
	})
	at := []string{r.members[leads].Clients[0].Addr().String()}
	client, err := clientv3.New(clientv3.Config{Endpoints: at, Logger: zap.NewNop()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = client.Close() })
	return leads, client
}

// eventually waits for what etcd says once it saw its members for some seconds.
func (r *realEtcd) eventually(what string, done func() error) {
	r.t.Helper()
	patience.SucceedsWithin(r.t, time.Minute, what, done)
}

// TestEtcdPromotesWhoIsDead holds the model against etcd: it promotes a learner that has the record and is dead.
func TestEtcdPromotesWhoIsDead(t *testing.T) {
	tier.Long(t, "etcd takes its time until it calls a learner ready")
	t.Parallel()
	r := &realEtcd{t: t}
	r.peer()
	r.join("new")
	_, client := r.leader()
	added, err := client.MemberAddAsLearner(t.Context(), []string{r.peer()})
	if err != nil {
		t.Fatal(err)
	}
	r.join("existing")
	r.eventually("the record at the learner", func() error {
		if has, all := r.members[1].Server.AppliedIndex(), r.members[0].Server.AppliedIndex(); has < all {
			return fmt.Errorf("it has %d of %d", has, all)
		}
		return nil
	})
	r.ends[1]()
	r.eventually("its promotion", func() error {
		_, err := client.MemberPromote(t.Context(), added.Member.ID)
		return err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, "a", "b"); err == nil {
		t.Error("one of two voters has a quorum")
	}
}
