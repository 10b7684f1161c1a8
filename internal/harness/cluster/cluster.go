// Package cluster runs an etcd whose members are processes that a test kills, freezes and restores. Tests only.
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/freeport"
	"github.com/pullet/pullet/internal/harness/process"
)

// Cluster is an etcd whose members are processes.
type Cluster struct {
	t       testing.TB
	scheme  string      // of the addresses of clients
	tls     *tls.Config // of a client that may do everything
	size    int         // number of members of the whole cluster
	members []*process.Process
	clients []string // addresses, by member
	tended  bool     // the test does not start members that it killed
}

// Options describe a cluster that Start starts.
type Options struct {
	Dir   string // for the data and logs of the members
	Size  int    // number of members
	TLS   bool   // clients connect with TLS
	Quota int64  // bytes that etcd stores; 0 is the default of etcd
}

// Start starts a cluster, which ends with the test. It runs Program, which calls Main.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c := &Cluster{t: t, scheme: "http", size: o.Size}
	if o.TLS {
		c.scheme = "https"
		c.tls = writeCertificate(t, o.Dir)
	}
	var peers, all []string
	for i := range o.Size {
		c.clients, peers = append(c.clients, freeport.AddressFor(t)), append(peers, freeport.AddressFor(t))
		all = append(all, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	for i := range o.Size {
		name := fmt.Sprint("m", i)
		p := &process.Process{
			Name: name, Log: filepath.Join(o.Dir, name+".log"), MustLive: true,
			Args: []string{
				Program, name, filepath.Join(o.Dir, name), c.scheme + "://" + c.clients[i], "http://" + peers[i],
				strings.Join(all, ","), strconv.FormatInt(o.Quota, 10),
			},
		}
		c.members = append(c.members, p)
		p.Start(t)
		t.Cleanup(func() { p.Kill(false) })
	}
	return c
}

// Adopt returns a cluster of size members that clients reach with TLS. Its members are added with Add, and the caller
// starts them.
func Adopt(t testing.TB, size int) *Cluster {
	return &Cluster{t: t, scheme: "https", size: size, tended: true}
}

// Add adds a process that is or may become a member, and its address for clients.
func (c *Cluster) Add(member *process.Process, client string) {
	c.members, c.clients = append(c.members, member), append(c.clients, client)
}

// UseTLS sets the credentials of the clients that Connect returns.
func (c *Cluster) UseTLS(config *tls.Config) { c.tls = config }

// Members returns the processes of all members, and of those that may become one.
func (c *Cluster) Members() []*process.Process { return c.members }

// Member returns the process of the member with this name, or nil.
func (c *Cluster) Member(name string) *process.Process {
	i := slices.IndexFunc(c.members, func(m *process.Process) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return c.members[i]
}

// Scheme returns the scheme of the endpoints: http or https.
func (c *Cluster) Scheme() string { return c.scheme }

// Addresses returns the host and port of each member for clients.
func (c *Cluster) Addresses() []string { return c.clients }

// Endpoints returns the URL of each member, which clients reach without a link.
func (c *Cluster) Endpoints() (out []string) {
	for _, address := range c.clients {
		out = append(out, c.scheme+"://"+address)
	}
	return out
}

// Config returns the configuration of a client without a link.
func (c *Cluster) Config() clientv3.Config {
	return clientv3.Config{Endpoints: c.Endpoints(), TLS: c.tls, Logger: zap.NewNop(), DialTimeout: 5 * time.Second}
}

// Connect returns a client without a link, which is closed when the test ends.
func (c *Cluster) Connect() *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(c.Config())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { client.Close() })
	return client
}

// AwaitWrite waits until etcd accepts a write. A single member that is killed before its first write waits for a leader
// forever.
func (c *Cluster) AwaitWrite(client *clientv3.Client) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		_, err := client.Put(ctx, "/begin", "")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("etcd accepts no write in its first minute: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Leader returns the index of the member that leads, or 0 if none says so.
func (c *Cluster) Leader(client *clientv3.Client) int {
	for i, endpoint := range c.Endpoints() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		got, err := client.Status(ctx, endpoint)
		cancel()
		if err == nil && got.Leader == got.Header.MemberId {
			return i
		}
	}
	return 0
}

// Restart starts a member that was killed, unless the members of the cluster were adopted.
func (c *Cluster) Restart(m *process.Process) {
	if !c.tended {
		m.Start(c.t)
	}
}

// KillAll kills all members.
func (c *Cluster) KillAll() {
	for _, m := range c.members {
		m.Kill(false)
	}
}

// StartAll starts all members.
func (c *Cluster) StartAll() {
	for _, m := range c.members {
		m.Start(c.t)
	}
}

// CopyData copies the data of all members, which are down, from one directory to another. One of them is the directory
// of the cluster.
func (c *Cluster) CopyData(from, to string) error {
	var failed error
	for _, m := range c.members {
		failed = errors.Join(failed, process.CopyDir(filepath.Join(from, m.Name), filepath.Join(to, m.Name)))
	}
	return failed
}

// CheckWhole returns an error unless all members exist, vote and answer.
func (c *Cluster) CheckWhole(ctx context.Context, client *clientv3.Client) error {
	listed, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	voters := 0
	for _, m := range listed.Members {
		if m.IsLearner || m.Name == "" {
			return errors.New("a member of the datastore is joining")
		}
		voters++
	}
	if voters != c.size {
		return fmt.Errorf("the datastore has %d members, expected %d", voters, c.size)
	}
	answer := 0
	for _, endpoint := range c.Endpoints() {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		if _, err := client.Status(ctx, endpoint); err == nil {
			answer++
		}
		cancel()
	}
	if answer != c.size {
		return fmt.Errorf("%d of %d members of the datastore answer", answer, c.size)
	}
	return nil
}

// CheckSame returns an error if members that answer have different data.
func (c *Cluster) CheckSame(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	now, err := client.Get(ctx, "/")
	if err != nil {
		return err
	}
	hashes := map[uint32][]string{}
	for _, endpoint := range c.Endpoints() {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		if got, err := client.HashKV(ctx, endpoint, now.Header.Revision); err == nil {
			hashes[got.Hash] = append(hashes[got.Hash], endpoint)
		}
		cancel()
	}
	if len(hashes) != 1 {
		return fmt.Errorf("at revision %d members have different data: %v", now.Header.Revision, hashes)
	}
	return nil
}
