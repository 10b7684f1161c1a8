package datastore

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/authority"
	"github.com/pullet/pullet/state"
)

// TestPeersAlone: the port of the members answers a member, and nobody else: no certificate of a host, an operator or
// the keeper, none of another authority, and none at all.
func TestPeersAlone(t *testing.T) {
	t.Parallel()
	c := clustered(t, "db2")
	c.wants("db1", wanted(1, 3, "db1", "db2"))
	at := "https://" + c.hosts["db1"].peer() + "/members"
	server, err := os.ReadFile(c.file(serverFile))
	c.must(err)
	c.until("the members answer each other", func() bool { return asPeer(t, at, server) == nil })
	other, err := authority.Create(fleetName, time.Now())
	c.must(err)
	k, err := readKeys(c.Config, fleetName)
	c.must(err)
	keeper, err := os.ReadFile(c.file(keeperFile))
	c.must(err)
	signed := func(name string, kind authority.Kind) []byte {
		return c.signed(k.authority, authority.Subject{Fleet: fleetName, Name: name, Kind: kind}, time.Hour)
	}
	for what, credentials := range map[string][]byte{
		"nobody":            nil,
		"a host":            signed("db2", authority.Node),
		"an operator":       signed("admin", authority.Operator),
		"the keeper":        keeper,
		"another authority": c.memberOf(other),
	} {
		if asPeer(t, at, credentials) == nil {
			t.Errorf("the port of the members answers %s", what)
		}
	}
}

// memberOf is a key with a certificate of a member of another datastore.
func (c *cluster) memberOf(a *authority.Authority) []byte {
	c.Helper()
	key, csr, err := authority.Request()
	c.must(err)
	who := authority.Subject{Fleet: fleetName, Name: authority.ServerName, Kind: authority.Server}
	chain, err := a.Issue(csr, who, []string{"127.0.0.1"}, time.Hour, time.Now())
	c.must(err)
	return append(key, chain...)
}

// asPeer asks the port of a member for the members; an error is that it does not answer.
func asPeer(t *testing.T, at string, credentials []byte) error {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a stranger does not care
	if credentials != nil {
		pair, err := tls.X509KeyPair(credentials, credentials)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	got, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	return got.Body.Close()
}

// TestAccept: a host becomes a member of the authority that it believes alone, and of what was encrypted for it.
func TestAccept(t *testing.T) {
	t.Parallel()
	own, err := authority.Create(fleetName, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := authority.Create(fleetName, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for what, one := range map[string]struct {
		authority *authority.Authority
		to        string // whose key it is encrypted for
		wrong     string
	}{
		"its own":           {own, "db2", ""},
		"another authority": {foreign, "db2", "authority that it does not believe: " + foreign.Fingerprint()},
		"for another host":  {own, "db3", "what this host got to carry the datastore"},
	} {
		hosts := map[string]Config{"db2": {Dir: t.TempDir()}, "db3": {Dir: t.TempDir()}}
		key, err := hosts[one.to].recipient()
		if err != nil {
			t.Fatal(err)
		}
		h, err := handed(key.Recipient().String(), 1, Membership{string(one.authority.Encode()), "db1=https://127.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		host := hosts["db2"]
		if _, err := host.recipient(); err != nil {
			t.Fatal(err)
		}
		err = host.Accept(h, own.Bundle())
		if one.wrong != "" {
			wantError(t, what, err, one.wrong)
		} else if err != nil {
			t.Error(what, err)
		}
		if host.Carries() != (one.wrong == "") {
			t.Errorf("%s: it carries the datastore: %v", what, host.Carries())
		}
	}
}

// TestLeft: a host that was a member once, and is none, is told from one that lost the key of the authority.
func TestLeft(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir()}
	if c.Left() {
		t.Error("it never was a member")
	}
	for _, file := range []string{authorityFile, memberDir} {
		if err := os.WriteFile(c.file(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.putAside(time.Now()); err != nil {
		t.Fatal(err)
	}
	if !c.Left() {
		t.Error("it was removed")
	}
	if err := os.WriteFile(c.file(memberDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Left() {
		t.Error("it has a record, and no key of the authority")
	}
}

// TestRotateAlone: the other members would go on with the authority of before.
func TestRotateAlone(t *testing.T) {
	t.Parallel()
	c := clustered(t, "db2")
	c.wants("db1", wanted(1, 3, "db1", "db2"))
	c.until("a second member comes", func() bool {
		got, err := c.members(t.Context())
		return err == nil && len(got.voters)+len(got.learners) == 2
	})
	_, err := Rotate(t.Context(), c.Config, false)
	wantError(t, "rotate", err, "several hosts carry the datastore, and a rotation reaches one: commit count: 1 first")
}

// TestReached: what members say of each other can keep a member, and not have one replaced that the leader reaches.
func TestReached(t *testing.T) {
	t.Parallel()
	var members []*pb.Member
	for i, name := range []string{"db1", "db2", "db3"} {
		members = append(members, &pb.Member{ID: uint64(i + 1), Name: name})
	}
	for what, one := range map[string]struct {
		said map[string]state.Reach
		want bool // the leader db1 takes db3, which does not answer it, for one that is reached
	}{
		"nobody says anything":  {nil, false},
		"db2 does not reach it": {map[string]state.Reach{"db2": {Away: []string{"db3"}}}, false},
		"db2 reaches it":        {map[string]state.Reach{"db2": {}}, true},
		"it says so itself":     {map[string]state.Reach{"db3": {}}, false},
		"a stranger reaches it": {map[string]state.Reach{"web1": {}}, false},
		"it does not reach db2": {map[string]state.Reach{"db3": {Away: []string{"db2"}}}, false},
	} {
		answers := map[uint64]*clientv3.StatusResponse{1: {}, 2: {}}
		v := view{members, answers, state.Datastore{Reach: one.said}, 1}
		if got := v.reached(members[2]); got != one.want {
			t.Errorf("%s: db3 is reached: %v", what, got)
		}
		if !v.reached(members[1]) {
			t.Errorf("%s: db2 answers the leader, and counts as away", what)
		}
	}
}
