package datastore

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

const memberOfParent = "PULLET_TEST_MEMBER"

// asMember is what a test tells a process that is one of its members.
type asMember struct {
	Node   string
	Config Config
}

// TestMemberForParent is a member in a process of its own, which other tests start and kill.
func TestMemberForParent(t *testing.T) {
	text := os.Getenv(memberOfParent)
	if text == "" {
		t.Skip("this is no child of another test")
	}
	var m asMember
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	go func() { // it ends with its parent, however that ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	log := logrus.New()
	log.Out = os.Stderr
	o := Options{
		Config: m.Config, Fleet: fleetName, Node: m.Node, Log: logrus.NewEntry(log), every: 200 * time.Millisecond,
		Invited: func(state.Invitation, *authority.Answer) error { return nil },
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// cluster are hosts of a fleet, each of which can be a member of its datastore. The first one is db1.
type cluster struct {
	*fleet
	hosts map[string]*carrier
}

// carrier is a host that may carry the datastore.
type carrier struct {
	Candidate
	name    string
	log     string
	stopped atomic.Bool // its process stands still
	lost    atomic.Bool // the key that it offered, with its disk
	mu      sync.Mutex  // of what follows
	process *exec.Cmd
	ended   chan struct{} // its process
}

// clustered makes a fleet whose datastore is on db1, with further hosts that pull.
func clustered(t *testing.T, hosts ...string) *cluster {
	t.Helper()
	c := &cluster{made(t), map[string]*carrier{}}
	c.hosts["db1"] = &carrier{Candidate: Candidate{c.Config}, name: "db1", log: filepath.Join(t.TempDir(), "log")}
	c.start("db1")
	c.until("the door is open", func() bool {
		_, err := os.Stat(c.DoorSocket())
		return err == nil
	})
	admin := c.store("admin")
	for _, name := range hosts {
		c.join(admin, name, authority.Node)
		dir, err := os.MkdirTemp("", "ds")
		c.must(err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		c.hosts[name] = &carrier{name: name, log: filepath.Join(t.TempDir(), "log"), Candidate: Candidate{Config{
			Dir:       filepath.Join(dir, "d"),
			Addresses: Addresses{Client: freeAddress(t), Door: freeAddress(t), Peer: freeAddress(t)},
		}}}
	}
	for _, name := range hosts { // when all are known: they ask each other
		c.pulls(name)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for name, h := range c.hosts {
				text, _ := os.ReadFile(h.log)
				t.Logf("--- %s\n%s", name, text)
			}
		}
	})
	return c
}

// start starts the member of a host.
func (c *cluster) start(name string) {
	c.Helper()
	h := c.hosts[name]
	text, err := json.Marshal(asMember{name, h.Config})
	c.must(err)
	log, err := os.OpenFile(h.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	c.must(err)
	_ = os.Remove(h.DoorSocket())
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemberForParent$")
	cmd.Env = append(os.Environ(), memberOfParent+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	_, err = cmd.StdinPipe() // it is closed when this process ends
	c.must(err)
	c.must(cmd.Start())
	ended := make(chan struct{})
	h.mu.Lock()
	h.process, h.ended = cmd, ended
	h.mu.Unlock()
	go func() {
		_ = cmd.Wait()
		_ = log.Close()
		close(ended)
	}()
	c.Cleanup(func() { c.kill(name) })
}

// kill ends the member of a host with no chance to say so.
func (c *cluster) kill(name string) {
	h := c.hosts[name]
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process != nil {
		_ = h.process.Process.Kill()
		<-h.ended
	}
}

// failed reports a member that ended with an error, and that systemd starts again.
func (h *carrier) failed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.process == nil {
		return false
	}
	select {
	case <-h.ended:
		return h.process.ProcessState.Exited() && !h.process.ProcessState.Success()
	default:
		return false
	}
}

// awaitEnd waits until the member of a host ends by itself.
func (c *cluster) awaitEnd(name string) {
	c.Helper()
	c.until(name+" ends", func() bool {
		select {
		case <-c.hosts[name].ended:
			return true
		default:
			return false
		}
	})
}

func (c *cluster) signal(name string, s syscall.Signal) {
	c.Helper()
	c.must(c.hosts[name].process.Process.Signal(s))
}

// pulls does for a host what its pulls do until the test ends: it has a lease, offers to carry the datastore, and
// becomes a member when it may.
func (c *cluster) pulls(name string) {
	store := c.store(name)
	lease, err := store.Client.Grant(c.Context(), 60)
	c.must(err)
	alive := state.Put(store.Presences.AliveKey(name), state.Alive{}, clientv3.WithLease(lease.ID))
	_, err = store.Client.Do(c.Context(), alive)
	c.must(err)
	h := c.hosts[name]
	offer, err := h.Offer(h.Addresses)
	c.must(err)
	c.must(store.Datastores.Offer(c.Context(), name, offer))
	ctx, cancel := context.WithCancel(c.Context())
	done := make(chan struct{})
	c.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for ; ctx.Err() == nil; state.Pause(ctx, 100*time.Millisecond) {
			if h.failed() {
				c.start(name)
			}
			all, err := c.members(ctx)
			if err != nil {
				continue
			}
			store.Client.SetEndpoints(all.endpoints...)
			if handed, err := store.Datastores.HandedTo(ctx, name); err == nil && handed != nil && h.Awaits(*handed) {
				err := h.Accept(*handed, c.believed())
				if err != nil && h.lost.Load() {
					if offer, err = h.Offer(h.Addresses); err == nil {
						err = store.Datastores.Offer(ctx, name, offer)
					}
					if err == nil {
						continue
					}
				}
				if err != nil {
					c.Errorf("%s: %v", name, err)
					return
				}
				c.kill(name) // it may run with what it got before
				c.start(name)
			}
		}
	}()
}

// listed are the members as one that answers sees them.
type listed struct {
	voters, learners, endpoints []string
}

// members asks whichever member answers.
func (c *cluster) members(ctx context.Context) (listed, error) {
	var out listed
	err := os.ErrNotExist
	for _, h := range c.hosts {
		if h.stopped.Load() {
			continue
		}
		if out, err = c.membersAt(ctx, h); err == nil {
			return out, nil
		}
	}
	return out, err
}

func (c *cluster) membersAt(ctx context.Context, h *carrier) (out listed, err error) {
	credentials, err := os.ReadFile(h.file(keeperFile))
	if err != nil {
		return out, err
	}
	client, err := c.connectTo(h.Endpoint(), credentials)
	if err != nil {
		return out, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	got, err := client.MemberList(ctx)
	if err != nil {
		return out, err
	}
	for _, m := range got.Members {
		if m.IsLearner {
			out.learners = append(out.learners, m.Name)
			continue
		}
		out.voters, out.endpoints = append(out.voters, m.Name), append(out.endpoints, m.ClientURLs...)
	}
	slices.Sort(out.voters)
	slices.Sort(out.learners)
	return out, nil
}

// wants tells a host what the repository wants.
func (c *cluster) wants(at string, w state.Wanted) {
	c.Helper()
	c.must(Want(c.Context(), c.hosts[at].Config, w))
}

// wanted are a count of members, of these hosts.
func wanted(seq, count int, hosts ...string) state.Wanted {
	w := state.Wanted{Seq: seq, Count: count, ReplaceAfter: 12 * time.Second}
	for _, h := range hosts {
		w.Hosts = append(w.Hosts, state.Eligible{Node: h})
	}
	return w
}

// becomes waits until these are the voters, and nobody learns.
func (c *cluster) becomes(voters string) {
	c.Helper()
	patience.SucceedsWithin(c.T, 90*time.Second, "the members are "+voters, func() error {
		got, err := c.members(c.Context())
		if err == nil && (strings.Join(got.voters, " ") != voters || len(got.learners) > 0) {
			err = fmt.Errorf("members %v, learners %v", got.voters, got.learners)
		}
		return err
	})
}

// logs waits until a host logs a text.
func (c *cluster) logs(name, text string) {
	c.Helper()
	c.until(name+" logs "+text, func() bool {
		log, err := os.ReadFile(c.hosts[name].log)
		return err == nil && strings.Contains(string(log), text)
	})
}

// TestMembers: a datastore of one host becomes one of three. When a host dies, another one takes its place; when it
// comes back it carries the datastore no more, and its record is put aside. What was written is there all the time.
func TestMembers(t *testing.T) {
	t.Parallel()
	c := clustered(t, "db2", "db3", "db4")
	admin := c.client("admin")
	const key = "/pullet/" + fleetName + "/hold/kept"
	_, err := admin.Put(t.Context(), key, "kept")
	c.must(err)
	c.wants("db1", wanted(1, 3, "db1", "db2", "db3", "db4"))
	c.becomes("db1 db2 db3")
	c.kill("db1")
	c.becomes("db2 db3 db4")
	c.start("db1")
	c.awaitEnd("db1")
	if c.hosts["db1"].Carries() {
		t.Error("db1 still carries the datastore")
	}
	got, err := c.members(t.Context())
	c.must(err)
	admin.SetEndpoints(got.endpoints...)
	if kept, err := admin.Get(t.Context(), key); err != nil || len(kept.Kvs) != 1 {
		t.Error(kept, err)
	}
}
