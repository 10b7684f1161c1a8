package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/freeport"
)

// cluster is an etcd whose members are processes.
type cluster struct {
	t       *testing.T
	scheme  string
	tls     *tls.Config // of who may do all
	count   int         // members that there are when all is well
	members []*process  // and those that may become one
	clients []string    // addresses
	tended  bool        // a member that ends is started by somebody else
}

// newCluster starts a cluster: the scheme of its clients is http or https, and it takes so many bytes, 0 for etcd's own
// quota.
func newCluster(t *testing.T, dir string, size int, scheme string, quota int64) *cluster {
	c := &cluster{t: t, scheme: scheme, count: size}
	var peers, all []string
	for i := range size {
		c.clients, peers = append(c.clients, freePort(t)), append(peers, freePort(t))
		all = append(all, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	for i := range size {
		name := fmt.Sprint("m", i)
		args := []string{etcdMember, name, filepath.Join(dir, name), scheme + "://" + c.clients[i], "http://" + peers[i], strings.Join(all, ","), strconv.FormatInt(quota, 10)}
		p := &process{name: name, args: args, log: filepath.Join(dir, name+".log"), mustLive: true}
		c.members = append(c.members, p)
		p.start(t)
		t.Cleanup(func() { p.kill(false) })
	}
	return c
}

// freePort is an address on which nobody listens, also while who listened there is down.
func freePort(t *testing.T) string {
	t.Helper()
	at, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// endpoints are the members without anything in between.
func (c *cluster) endpoints() (out []string) {
	for _, address := range c.clients {
		out = append(out, c.scheme+"://"+address)
	}
	return out
}

// client reaches the cluster without anything in between.
func (c *cluster) client() *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.endpoints(), TLS: c.tls, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { client.Close() })
	return client
}

// leader is the member that leads, or any where that cannot be told.
func (c *cluster) leader(client *clientv3.Client) int {
	for i, endpoint := range c.endpoints() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		got, err := client.Status(ctx, endpoint)
		cancel()
		if err == nil && got.Leader == got.Header.MemberId {
			return i
		}
	}
	return 0
}

// again starts a member that was killed, where nobody else does.
func (c *cluster) again(m *process) {
	if !c.tended {
		m.start(c.t)
	}
}

// whole is an error as long as not all members are there, and vote.
func (c *cluster) whole(ctx context.Context, client *clientv3.Client) error {
	listed, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range listed.Members {
		if m.IsLearner || m.Name == "" {
			return errors.New("a member of the datastore comes")
		}
		voters++
	}
	if voters != c.count {
		return fmt.Errorf("the datastore has %d members of %d", voters, c.count)
	}
	answer := 0
	for _, endpoint := range c.endpoints() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		if _, err := client.Status(ctx, endpoint); err == nil {
			answer++
		}
		cancel()
	}
	if answer != c.count {
		return fmt.Errorf("%d of %d members of the datastore answer", answer, c.count)
	}
	return nil
}

// same is an error where members do not have the same record.
func (c *cluster) same(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now, err := client.Get(ctx, "/")
	if err != nil {
		return err
	}
	hashes := map[uint32][]string{}
	for _, endpoint := range c.endpoints() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		if got, err := client.HashKV(ctx, endpoint, now.Header.Revision); err == nil {
			hashes[got.Hash] = append(hashes[got.Hash], endpoint)
		}
		cancel()
	}
	if len(hashes) != 1 {
		return fmt.Errorf("at revision %d members do not have the same record: %v", now.Header.Revision, hashes)
	}
	return nil
}
