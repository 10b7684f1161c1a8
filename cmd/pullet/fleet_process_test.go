package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// process is a child that can be killed, stopped and started again. It ends with the test, whatever becomes of that.
type process struct {
	name string
	args []string
	env  []string // beside the test's own
	log  string   // file that its outputs are appended to

	busy sync.Mutex // held while a fault is done to it
	cmd  *exec.Cmd
	done chan struct{}
}

func (p *process) start(t *testing.T) {
	t.Helper() // and no Fatal: faults start it again beside the test
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	cmd, done := p.cmd, make(chan struct{})
	p.done = done
	go func() {
		_ = cmd.Wait() // it is killed
		close(done)
	}()
}

// kill ends the process as kill -9 does: alone, or with all that it started.
func (p *process) kill(whole bool) {
	p.stop(whole).signal(syscall.SIGKILL)
	<-p.done
}

// stop freezes the process, alone or with all that it started, and returns who that is.
func (p *process) stop(whole bool) frozen {
	f := frozen{p.cmd.Process, nil}
	if p.cmd.Process.Signal(syscall.SIGSTOP) != nil || !whole { // it has ended: its number may be another's
		return f
	}
	f.children = children(p.cmd.Process.Pid) // from here on it starts none, and forgets none that ends
	for i := 0; i < len(f.children); i++ {
		_ = syscall.Kill(f.children[i], syscall.SIGSTOP)
		f.children = append(f.children, children(f.children[i])...)
	}
	return f
}

// frozen is a process that was stopped, with what it started.
type frozen struct {
	process  *os.Process
	children []int
}

func (f frozen) signal(s syscall.Signal) {
	for _, pid := range f.children {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	_ = f.process.Signal(s)
}

// children are the processes that a process started and that have not ended.
func children(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, one := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(one); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// etcdMember is the name under which the test binary is a member of an etcd cluster: NAME DIR CLIENT PEER CLUSTER
// QUOTA. An https CLIENT has its certificate in the directory above its own.
const etcdMember = "etcd-member"

func runEtcdMember() {
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = os.Args[1], os.Args[2], os.Args[5]
	client, peer := mustURL(os.Args[3]), mustURL(os.Args[4])
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	if client.Scheme == "https" {
		home := filepath.Dir(c.Dir)
		c.ClientTLSInfo = transport.TLSInfo{CertFile: home + "/cert.pem", KeyFile: home + "/key.pem"}
	}
	var err error
	if c.QuotaBackendBytes, err = strconv.ParseInt(os.Args[6], 10, 64); err != nil {
		panic(err)
	}
	c.LogLevel = "warn"
	c.UnsafeNoFsync = true // a kill leaves what the kernel has
	e, err := embed.StartEtcd(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, <-e.Err())
	os.Exit(1)
}

func mustURL(s string) url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return *u
}

// cluster is an etcd whose members are processes.
type cluster struct {
	t       *testing.T
	scheme  string
	members []*process
	clients []string // addresses
}

// newCluster starts a cluster: the scheme of its clients is http or https, and it takes so many bytes, 0 for etcd's own
// quota.
func newCluster(t *testing.T, dir string, size int, scheme string, quota int64) *cluster {
	c := &cluster{t: t, scheme: scheme}
	var peers, all []string
	for i := range size {
		c.clients, peers = append(c.clients, freePort(t)), append(peers, freePort(t))
		all = append(all, fmt.Sprintf("m%d=http://%s", i, peers[i]))
	}
	for i := range size {
		name := fmt.Sprint("m", i)
		args := []string{etcdMember, name, filepath.Join(dir, name), scheme + "://" + c.clients[i], "http://" + peers[i], strings.Join(all, ","), strconv.FormatInt(quota, 10)}
		p := &process{name: name, args: args, log: filepath.Join(dir, name+".log")}
		c.members = append(c.members, p)
		p.start(t)
		t.Cleanup(func() { p.kill(false) })
	}
	return c
}

// freePort is an address on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// client reaches the cluster without anything in between.
func (c *cluster) client() *clientv3.Client {
	c.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.clients, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { client.Close() })
	return client
}

// leader is the member that leads, or any where that cannot be told.
func (c *cluster) leader(client *clientv3.Client) int {
	for i, address := range c.clients {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		got, err := client.Status(ctx, c.scheme+"://"+address)
		cancel()
		if err == nil && got.Leader == got.Header.MemberId {
			return i
		}
	}
	return 0
}
