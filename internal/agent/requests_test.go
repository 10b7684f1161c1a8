package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// meter stands before an etcd, passes everything on, and counts what it is asked: each unary request and each watch,
// whoever's client sent it.
type meter struct {
	store *state.Store // the etcd itself
	etcd  *grpc.ClientConn

	mu     sync.Mutex
	kinds  map[string]int
	refuse func(kind string) bool // a request that etcd never sees; nil: none
	with   error                  // its answer; nil: that the right is missing
}

// newMeter runs an embedded etcd behind a meter. It returns the URL of the meter.
func newMeter(t *testing.T) (*meter, string) {
	t.Helper()
	store, err := state.Open(t.Context(), state.Config{Fleet: "default", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return meterOver(t, store)
}

// meterOver is a further meter before an etcd that runs.
func meterOver(t *testing.T, store *state.Store) (*meter, string) {
	t.Helper()
	etcd, err := grpc.NewClient(store.Client.Endpoints()[0], grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(raw{}), grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{store: store, etcd: etcd, kinds: map[string]int{}}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(m.pass), grpc.MaxRecvMsgSize(1<<30))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // ends with Stop
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, "http://" + l.Addr().String()
}

// raw is a codec that leaves messages as they are.
type raw struct{}

func (raw) Name() string                       { return "proto" }
func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }

// pass passes one call on, in both directions.
func (m *meter) pass(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	head, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancelCause(metadata.NewOutgoingContext(client.Context(), head))
	defer cancel(nil)
	etcd, err := m.etcd.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	go func() {
		for message := new([]byte); client.RecvMsg(message) == nil; {
			if !m.admits(kindOf(method, *message)) {
				cancel(cmp.Or(m.with, rpctypes.ErrGRPCPermissionDenied))
				return
			}
			if etcd.SendMsg(message) != nil {
				break
			}
		}
		_ = etcd.CloseSend() // a client that went away took its context with it
	}()
	for {
		message := new([]byte)
		if err := etcd.RecvMsg(message); err == io.EOF {
			return nil
		} else if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		if err := client.SendMsg(message); err != nil {
			return err
		}
	}
}

// admits counts a message, and reports that it is passed on.
func (m *meter) admits(kind string) bool {
	if kind == "" {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[kind]++
	return m.refuse == nil || !m.refuse(kind)
}

// kindOf names a message by its method, and by the first words of the keys that it writes, or reads where it writes
// none; "" is not counted.
func kindOf(method string, message []byte) string {
	kind := method[strings.LastIndexByte(method, '/')+1:]
	var keys []string
	switch kind {
	case "Watch":
		var r pb.WatchRequest
		if proto.Unmarshal(message, &r) != nil || r.GetCreateRequest() == nil {
			return ""
		}
		keys = append(keys, string(r.GetCreateRequest().Key))
	case "Range":
		var r pb.RangeRequest
		if proto.Unmarshal(message, &r) == nil {
			keys = append(keys, string(r.Key))
		}
	case "Txn":
		var r pb.TxnRequest
		if proto.Unmarshal(message, &r) == nil {
			kind, keys = describe(&r)
		}
	case "Put":
		var r pb.PutRequest
		if proto.Unmarshal(message, &r) == nil {
			keys = append(keys, string(r.Key))
		}
	case "DeleteRange":
		var r pb.DeleteRangeRequest
		if proto.Unmarshal(message, &r) == nil {
			keys = append(keys, string(r.Key))
		}
	}
	for i, key := range keys {
		parts := strings.Split(key, "/")
		keys[i] = parts[min(3, len(parts)-1)]
		if keys[i] == "rollout" && len(parts) > 5 {
			keys[i] += "." + parts[5]
		}
	}
	slices.Sort(keys)
	return strings.TrimSpace(kind + " " + strings.Join(slices.Compact(keys), ","))
}

// describe are the keys that a transaction writes, or those that it reads.
func describe(r *pb.TxnRequest) (kind string, keys []string) {
	var reads []string
	for _, op := range r.Success {
		switch {
		case op.GetRequestPut() != nil:
			keys = append(keys, string(op.GetRequestPut().Key))
		case op.GetRequestDeleteRange() != nil:
			keys = append(keys, string(op.GetRequestDeleteRange().Key))
		case op.GetRequestRange() != nil:
			reads = append(reads, string(op.GetRequestRange().Key))
		}
	}
	if len(keys) == 0 {
		return "Txn reads", reads
	}
	return "Txn writes", keys
}

// take is how many requests there were since the last time, renewals of leases aside, and a list of them.
func (m *meter) take() (n int, list string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, kind := range slices.SortedFunc(maps.Keys(m.kinds), func(a, b string) int { return m.kinds[b] - m.kinds[a] }) {
		list += fmt.Sprintf("%6d %s\n", m.kinds[kind], kind)
		if kind != "LeaseKeepAlive" {
			n += m.kinds[kind]
		}
	}
	m.kinds = map[string]int{}
	return n, list
}

// fleet is n hosts that pull from one repository and share an etcd behind a meter.
func (h *host) fleet(endpoint string, n int) []Config {
	nodes := make([]Config, n)
	for i := range nodes {
		c := h.Config
		c.Node.Name, c.Etcd.Endpoints = fmt.Sprintf("web%02d", i), []string{endpoint}
		home := filepath.Join(h.home, c.Node.Name)
		h.write(filepath.Join(c.Node.Name, "root/etc/keep"), "")
		c.Root, c.Paths = filepath.Join(home, "root"), Paths{State: filepath.Join(home, "state"), HostVars: filepath.Join(home, "vars.d")}
		c.Agent.Wait = render.Duration(5 * time.Minute)
		nodes[i] = c
	}
	return nodes
}

// pullOnce is pullet pull: a process of its own, which opens the fleet's record and closes it.
func pullOnce(t *testing.T, c Config) {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	a, err := New(c, "test", logrus.NewEntry(log))
	if err != nil {
		t.Error(err)
		return
	}
	out, err := a.Pull(t.Context(), Options{Wait: c.Agent.Wait.Std()})
	if err = errors.Join(err, a.Close()); err != nil || out.ExitCode() != ExitOK || len(out.Warnings) > 0 {
		t.Errorf("%s: %v %+v", c.Node.Name, err, out)
	}
}

func pullAll(t *testing.T, nodes []Config) {
	t.Helper()
	var all sync.WaitGroup
	for _, c := range nodes {
		all.Go(func() { pullOnce(t, c) })
	}
	all.Wait()
}

// budgets are how many requests a node may make in each kind of pull: the rows of the first table of docs/scale.md.
func budgets(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## A whole pull\n")
	text, _, _ = strings.Cut(text, "\n## ")
	out := map[string]int{}
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		if most, err := strconv.Atoi(strings.TrimSpace(cells[2])); err == nil {
			out[strings.TrimSpace(cells[1])] = most
		}
	}
	return out
}

// TestPullBudget: what single pulls ask of etcd, everything included, stays within what docs/scale.md says.
func TestPullBudget(t *testing.T) {
	t.Parallel()
	n := 40
	if testing.Short() {
		n = 10
	}
	h := newHost(t, job("one", "true"))
	h.write("repo/pullet.yaml", "rollout: {rollingRules: {global: 5}}\n")
	h.commit(job("one", "true"))
	m, endpoint := newMeter(t)
	nodes, allowed := h.fleet(endpoint, n), budgets(t)
	pullAll(t, nodes[:1])
	m.within(t, allowed, "the first pull of a fleet", 1)
	pullAll(t, nodes[:1])
	m.within(t, allowed, "a pull without a change", 1)
	pullAll(t, nodes)
	m.take()
	h.commit(job("one", "true; true"))
	pullAll(t, nodes)
	m.within(t, allowed, "a new version, 40 nodes at once, 5 at a time", n)
	m.protect(t)
	h.write("password", "secret\n")
	nodes[0].Etcd.Username, nodes[0].Etcd.PasswordFile = "root", filepath.Join(h.home, "password")
	pullAll(t, nodes[:1])
	m.within(t, allowed, "a pull without a change, with a user and a password", 1)
	if len(allowed) > 0 {
		t.Errorf("docs/scale.md has rows that nothing is held against: %v", allowed)
	}
}

// protect makes etcd ask everybody for a user and a password.
func (m *meter) protect(t *testing.T) {
	t.Helper()
	_, err := m.store.Client.UserAdd(t.Context(), "root", "secret")
	if err == nil {
		_, err = m.store.Client.UserGrantRole(t.Context(), "root", "root")
	}
	if err == nil {
		_, err = m.store.Client.AuthEnable(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// within holds what was asked since the last time, by so many nodes, against one row of the page, and strikes the row
// out.
func (m *meter) within(t *testing.T, allowed map[string]int, what string, nodes int) {
	t.Helper()
	n, list := m.take()
	t.Logf("%s: %.1f requests a node\n%s", what, float64(n)/float64(nodes), list)
	most, found := allowed[what]
	if !found {
		t.Errorf("docs/scale.md has no row %q", what)
	} else if n > nodes*most {
		t.Errorf("%s: %.1f requests a node, %d at most", what, float64(n)/float64(nodes), most)
	}
	delete(allowed, what)
}
