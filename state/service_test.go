package state

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// inDNS is everything below /skydns, as key=value lines.
func inDNS(t *testing.T, s *Store) string {
	t.Helper()
	got, err := s.Client.Get(ctx, dnsPath, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, kv := range got.Kvs {
		lines = append(lines, fmt.Sprintf("%s=%s", kv.Key, kv.Value))
	}
	return strings.Join(lines, "\n")
}

// TestServiceInDNS: what is ready stands in DNS, by the format of CoreDNS's etcd plugin, with its reverse; what is not,
// or is withdrawn, or belongs to a node that is gone, does not.
func TestServiceInDNS(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	db := Service{Address: "192.0.2.1", Port: 5432, Tags: []string{"primary"}}
	must(t, s.Services.Announce(ctx, "db", "DB1.example.org", db, false))
	must(t, s.Services.Announce(ctx, "db", "db2", Service{Address: "2001:db8::a1"}, false))
	must(t, s.Services.Announce(ctx, "db", "db3", Service{Address: "elsewhere.example.org"}, false))
	if got := inDNS(t, s); got != "" {
		t.Errorf("announced, and in DNS already:\n%s", got)
	}
	for _, node := range []string{"DB1.example.org", "db2", "db3"} {
		must(t, s.Services.SetReady(ctx, "db", node, "fleet.example", true, ""))
	}
	want := strings.Join([]string{
		`/skydns/arpa/in-addr/192/0/2/1={"host":"db1.example.org.db.service.fleet.example.","ttl":30}`,
		`/skydns/arpa/ip6/2/0/0/1/0/d/b/8/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/a/1={"host":"db2.db.service.fleet.example.","ttl":30}`,
		`/skydns/example/fleet/service/db/db2={"host":"2001:db8::a1","ttl":30}`,
		`/skydns/example/fleet/service/db/db3={"host":"elsewhere.example.org","ttl":30}`,
		`/skydns/example/fleet/service/db/org/example/db1={"host":"192.0.2.1","port":5432,"ttl":30}`,
	}, "\n")
	if got := inDNS(t, s); got != want {
		t.Errorf("in DNS\n%s\nwant\n%s", got, want)
	}
	db.Port = 5433
	must(t, s.Services.Announce(ctx, "db", "DB1.example.org", db, false))
	if got := inDNS(t, s); strings.Contains(got, "db1") {
		t.Errorf("another port, which nobody has tried:\n%s", got)
	}
	must(t, s.Services.SetReady(ctx, "db", "db2", "other.example", true, ""))
	if got := inDNS(t, s); !strings.Contains(got, "/other/service/db/db2=") || strings.Contains(got, "/fleet/service/db/db2=") {
		t.Errorf("another domain:\n%s", got)
	}
	must(t, s.Services.SetReady(ctx, "db", "db2", "other.example", false, "broken"))
	must(t, s.Services.Withdraw(ctx, "db", "db3"))
	if got := inDNS(t, s); got != "" {
		t.Errorf("nothing is ready:\n%s", got)
	}
}

// TestOneAddressForTwo: one of the two names is that of the address, and the other one takes over when the first is
// gone.
func TestOneAddressForTwo(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	const reverse = "/skydns/arpa/in-addr/192/0/2/1"
	is := func(want string) {
		t.Helper()
		if got := inDNS(t, s); strings.Contains(got, reverse) != (want != "") || want != "" && !strings.Contains(got, reverse+`={"host":"`+want+`.db.service.a.example."`) {
			t.Errorf("want %q:\n%s", want, got)
		}
	}
	for _, node := range []string{"n1", "n2"} {
		must(t, s.Services.Announce(ctx, "db", node, Service{Address: "192.0.2.1"}, false), s.Services.SetReady(ctx, "db", node, "a.example", true, ""))
		is("n1")
	}
	must(t, s.Services.SetReady(ctx, "db", "n1", "a.example", false, ""))
	is("")
	must(t, s.Services.SetReady(ctx, "db", "n2", "a.example", true, "")) // its next pull
	is("n2")
	must(t, s.Services.SetReady(ctx, "db", "n1", "a.example", true, ""), s.Services.Withdraw(ctx, "db", "n1"))
	is("n2")
}

// TestDecommissionedServices leave the record and DNS, and whoever reads them is told.
func TestDecommissionedServices(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Presences.Register(ctx, Node{Name: "db1", LastSeen: time.Now()}, Alive{Owner: "me"}, nil, time.Minute)
	must(t, err)
	must(t, s.Services.Announce(ctx, "db", "db1", Service{Address: "192.0.2.1"}, false))
	must(t, s.Services.SetReady(ctx, "db", "db1", "fleet.example", true, ""))
	before, _, err := s.Services.lastRung(ctx, []string{"db"})
	must(t, err)
	_, err = s.Nodes.Decommission(ctx, "db1", "ada", true)
	must(t, err)
	left, err := s.Services.Instances(ctx, "db")
	if err != nil || len(left) > 0 || inDNS(t, s) != "" {
		t.Errorf("%v, %v, %s", left, err, inDNS(t, s))
	}
	must(t, s.Services.Await(ctx, []string{"db"}, before))
}

// TestServiceStaysReady: what did not change is not written, so that nobody is woken for nothing; what changed is not
// ready any longer.
func TestServiceStaysReady(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	db := Service{Address: "192.0.2.1", Addresses: map[string]any{"eth0": []any{"192.0.2.1"}}, Tags: []string{"a"}}
	must(t, s.Services.Announce(ctx, "db", "n1", db, false))
	must(t, s.Services.SetReady(ctx, "db", "n1", "", true, ""))
	must(t, s.Services.SetReady(ctx, "db", "n1", "", true, ""))
	must(t, s.Services.Announce(ctx, "db", "n1", db, false))
	must(t, s.Services.SetReady(ctx, "db", "unknown", "", true, ""))
	if writes := history(t, s, s.key("service")); len(writes) != 2 {
		t.Errorf("%d writes, want 2: announced and ready", len(writes))
	}
	db.Tags = nil
	must(t, s.Services.Announce(ctx, "db", "n1", db, false))
	all, err := s.Services.Instances(ctx, "db")
	if err != nil || !all["n1"].Ready.IsZero() || all["n1"].Announced.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
	must(t, s.Services.SetReady(ctx, "db", "n1", "", false, "no answer"))
	if all, err = s.Services.Instances(ctx, "db"); err != nil || all["n1"].Why != "no answer" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestAwaitServices: only those who read a service are woken by it, also by what changed before they began to wait, and
// of more services than one transaction reads.
func TestAwaitServices(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	must(t, s.Services.Announce(ctx, "db", "n1", Service{Address: "192.0.2.1"}, false))
	_, seen, err := s.Services.lastRung(ctx, []string{"db"})
	must(t, err)
	many := []string{"web"}
	for i := range 2 * opsAtOnce {
		many = append(many, fmt.Sprint("s", i))
	}
	other, cancel := context.WithCancel(ctx)
	woken, asleep := make(chan error, 1), make(chan error, 1)
	go func() { woken <- s.Services.Await(ctx, many, seen) }()
	go func() { asleep <- s.Services.Await(other, []string{"db", "cache"}, seen) }()
	must(t, s.Services.Announce(ctx, "s150", "n1", Service{Address: "192.0.2.1"}, false))
	if err := <-woken; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-asleep; !errors.Is(err, context.Canceled) {
		t.Errorf("woken by a service that it does not read: %v", err)
	}
	must(t, s.Services.Await(ctx, []string{"cache", "db"}, seen-1)) // it changed before
}

// TestReverseKeys spell the names under which reverse look-ups ask, from the last label to the first.
func TestReverseKeys(t *testing.T) {
	for ip, want := range map[string]string{
		"10.0.0.127": "/skydns/arpa/in-addr/10/0/0/127", "::ffff:10.0.0.127": "/skydns/arpa/in-addr/10/0/0/127",
		"fe80::1%eth0": "/skydns/arpa/ip6/f/e/8/0/" + strings.Repeat("0/", 27) + "1",
	} {
		if got := reverseKey(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %s, want %s", ip, got, want)
		}
	}
}
