package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/state"
)

// memberOf is the etcd of a script that runs by itself: nil is none.
type memberOf struct {
	*state.Store
	socket  atomic.Value // string: where it listens
	address string       // of the network, where nodes reach it
}

// listen lets nodes reach the member over the network, at one address however often it starts: one behind a socket
// serves a single host.
func (m *memberOf) listen(ts *testscript.TestScript) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { ts.Check(l.Close()) })
	m.address = "http://" + l.Addr().String()
	go func() {
		for {
			from, err := l.Accept()
			if err != nil { // the script ended
				return
			}
			go func() {
				defer from.Close()
				to, err := net.Dial("unix", m.socket.Load().(string))
				if err != nil { // it is stopped
					return
				}
				defer to.Close()
				go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
				_, _ = io.Copy(from, to) // until either ends
			}()
		}
	}()
}

// member start|stop|calm runs the etcd of a script by itself, as a fleet's is run, and stops it; $ETCD is its address,
// which configurations of nodes name. Calm ends the grace time, as its lease does.
func runMember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: member start|stop|calm")
	}
	m := ts.Value(memberOf{}).(*memberOf)
	var err error
	switch args[0] {
	case "start":
		m.Store, err = state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
		ts.Check(err)
		running := m.Store
		ts.Defer(func() {
			if m.Store == running {
				ts.Check(running.Close())
			}
		})
		m.socket.Store(strings.TrimPrefix(m.Client.Endpoints()[0], "unix://"))
		if m.address == "" {
			m.listen(ts)
		}
		ts.Setenv("ETCD", m.address)
	case "stop":
		ts.Check(m.Close())
		m.Store = nil
	case "calm":
		_, err = m.Client.Delete(context.Background(), m.Doubts.GraceKey())
		ts.Check(err)
	}
}

// calm ADDRESS DIR ends the grace time of the fleet's datastore in a directory, as its lease does.
func runCalm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: calm ADDRESS DIR")
	}
	dir := ts.MkAbs(args[1])
	s, err := state.Open(context.Background(), state.Config{
		Fleet: "default", Endpoints: []string{"https://" + args[0]},
		TLS: state.TLS{CA: dir + "/ca.pem", Cert: dir + "/keeper.pem", Key: dir + "/keeper.pem"},
	})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	_, err = s.Client.Delete(context.Background(), s.Doubts.GraceKey())
	ts.Check(err)
}

// lose NODE ends the lease of a node, as its silence does after a while.
func loseNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lose NODE")
	}
	s, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	got, err := s.Client.Get(context.Background(), s.Presences.AliveKey(args[0]))
	ts.Check(err)
	if len(got.Kvs) == 0 {
		ts.Fatalf("%s does not live", args[0])
	}
	_, err = s.Client.Revoke(context.Background(), clientv3.LeaseID(got.Kvs[0].Lease))
	ts.Check(err)
}

// etcd PREFIX prints the keys below a prefix of the store that the nodes of a script share, with their values.
func showEtcd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: etcd PREFIX")
	}
	s, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	got, err := s.Client.Get(context.Background(), args[0], clientv3.WithPrefix())
	ts.Check(err)
	out := ts.Stdout() // what was there before is gone, also where there is nothing to print
	for _, kv := range got.Kvs {
		fmt.Fprintf(out, "%s %s\n", kv.Key, kv.Value)
	}
}

// damage KEY [VALUE] removes a record of the fleet, or writes a value into it, as whoever can write there may.
func damageRecord(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: damage KEY [VALUE]")
	}
	s, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: s.Client.Endpoints()}) // the store writes nothing that it cannot read
	ts.Check(err)
	defer func() { ts.Check(etcd.Close()) }()
	key := "/pullet/default/" + args[0]
	if len(args) == 2 {
		_, err = etcd.Put(context.Background(), key, args[1])
	} else {
		_, err = etcd.Delete(context.Background(), key)
	}
	ts.Check(err)
}

// nospace on|off makes the store that the nodes of a script share refuse what needs room, as it does when its quota is
// used up.
func runNoSpace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nospace on|off")
	}
	s, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	req := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	if args[0] == "off" {
		req.Action = etcdserverpb.AlarmRequest_DEACTIVATE
	}
	_, err = etcdserverpb.NewMaintenanceClient(s.Client.ActiveConnection()).Alarm(context.Background(), req)
	ts.Check(err)
}

// forge REPO REV [ID] sets the fleet's version to a commit, held, as whoever can write into the fleet's record may;
// with the id of another version.
func forgeVersion(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: forge REPO REV [ID]")
	}
	s, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: ts.MkAbs("etcd")})
	ts.Check(err)
	defer func() { ts.Check(s.Close()) }()
	current, _, err := s.Versions.Current(context.Background())
	ts.Check(err)
	commit := runGit(ts, args[0], "rev-parse", args[1]+"^{commit}")
	forged := *current
	forged.ID, forged.Release, forged.By, forged.Held, forged.Seq = commit, "", "intruder", true, current.Seq+1
	forged.Commits = []state.Commit{{Repo: "main", Commit: commit, Tag: args[1]}}
	if len(args) == 3 {
		forged.ID = runGit(ts, args[0], "rev-parse", args[2]+"^{commit}")
	}
	_, err = s.Client.Do(context.Background(), state.Put(s.Versions.CurrentKey(), forged))
	ts.Check(err)
}

// fill DIR CLIENT KEY writes records below a key with the certificate of the host whose configuration is in a
// directory, until the datastore at an address takes no more. They are so small that nearly all of its file is in use
// then.
func fillDatastore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: fill DIR CLIENT KEY")
	}
	file := filepath.Join(ts.MkAbs(args[0]), "fleet", "host.pem")
	pair, err := tls.LoadX509KeyPair(file, file)
	ts.Check(err)
	ca, err := os.ReadFile(filepath.Join(ts.MkAbs(args[0]), "fleet", "ca.pem"))
	ts.Check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + args[1]}, DialTimeout: time.Minute, Logger: zap.NewNop(),
		TLS: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12},
	})
	ts.Check(err)
	defer func() { ts.Check(etcd.Close()) }()
	// What the keeper can free it frees when it looks, each half a minute: until then it is not known whether it is full.
	full := time.Now()
	i := 0
	stays := patience.Wait(context.Background(), 10*time.Minute, func() bool {
		for {
			key := fmt.Sprintf("/pullet/default/%s/%d", args[2], i)
			if _, err = etcd.Put(context.Background(), key, strings.Repeat("x", 64<<10)); err != nil {
				break
			}
			i, full = i+1, time.Now()
		}
		if errors.Is(err, rpctypes.ErrTooManyRequests) || errors.Is(err, rpctypes.ErrTimeout) {
			return false // the disk is slower than the writes
		}
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			ts.Fatalf("the datastore refuses more, and not because it is full: %v", err)
		}
		return time.Since(full) > 35*time.Second
	})
	if !stays {
		ts.Fatalf("the datastore took %d records, and is still not full", i)
	}
}
