package action_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

func init() {
	db1 := render.Service{Name: "db", Node: "db1", Address: "192.0.2.1", Port: 5432, Tags: []string{"primary"}, Ready: true}
	db2 := render.Service{Name: "db", Node: "db2", Address: "192.0.2.2", Port: 5432}
	own := render.Service{Name: "db", Node: "n1", Address: "192.0.2.9", Port: 5432}
	maps.Copy(examples, map[string][]example{
		"service.publish": {
			{name: "announce", params: "{name: db, port: 5432, address: 192.0.2.9}", fleet: fleet{db1}, want: "announce 192.0.2.9:5432", unseen: true},
			{name: "announced already", params: "{name: db, port: 5432, address: 192.0.2.9}", fleet: fleet{db1, own}},
			{name: "another port", params: "{name: db, port: 5433, address: 192.0.2.9}", fleet: fleet{own}, want: "announce 192.0.2.9:5433 instead of 192.0.2.9:5432", unseen: true},
			{name: "of the default route", params: "{name: db, tags: [a, b]}", fleet: fleet{}, want: "announce 192.0.2.7", unseen: true},
			{name: "of an interface", params: "{name: db, interface: eth1}", fleet: fleet{}, want: "announce 198.51.100.7", unseen: true},
			{name: "of an interface without an address", params: "{name: db, interface: eth9}", fleet: fleet{}, fails: "interface eth9 has no address on this host"},
		},
		"service.withdraw": {
			{name: "not announced", params: "{name: db}", fleet: fleet{db1}},
			{name: "announced", params: "{name: db}", fleet: fleet{db1, own}, want: "withdraw 192.0.2.9:5432", unseen: true},
		},
		"service.wait": {
			{name: "enough", params: "{name: db}", fleet: fleet{db1}},
			{name: "announced is enough", params: "{name: db, kind: announced, count: 2}", fleet: fleet{db1, db2}},
			{name: "with a tag", params: "{name: db, tag: primary}", fleet: fleet{db1, db2}},
		},
	})
	mistakes = append(mistakes, []mistake{
		{"service.publish", "{name: 'a b'}", `jobs/a.yaml:4:22: name: "a b": a service is named with letters, digits and dashes`},
		{"service.publish", "{name: a, port: 70000}", "jobs/a.yaml:4:31: port: 70000 is no port"},
		{"service.publish", "{name: a, address: x, interface: y}", "jobs/a.yaml:4:48: interface: address and interface exclude each other"},
		{"service.withdraw", "{name: -a}", `jobs/a.yaml:4:22: name: "-a": a service is named with letters, digits and dashes`},
		{"service.wait", "{name: ''}", `jobs/a.yaml:4:22: name: "": a service is named`},
		{"service.wait", "{name: a, count: -1}", "jobs/a.yaml:4:32: count: -1 is no number of instances"},
		{"service.wait", "{name: a, path: /x}", "jobs/a.yaml:4:31: path: path is for reachable: http"},
		{"service.wait", "{name: a, kind: up}", `jobs/a.yaml:4:31: kind: expected announced or ready, found "up"`},
	}...)
}

// fleet is the services that a fleet knows, without the fleet.
type fleet []render.Service

func (f *fleet) Services(_ context.Context, name string) ([]render.Service, error) {
	var out []render.Service
	for _, s := range *f {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out, nil
}

func (f *fleet) Stale() string { return "" }

func (f *fleet) Announce(ctx context.Context, s render.Service) error {
	err := f.Withdraw(ctx, s.Name)
	*f = append(*f, s)
	return err
}

func (f *fleet) Withdraw(_ context.Context, name string) error {
	var out fleet
	for _, s := range *f {
		if s.Name != name || s.Node != "n1" {
			out = append(out, s)
		}
	}
	*f = out
	return nil
}

// TestServiceWaitSays who is missing and why, and is no failure.
func TestServiceWaitSays(t *testing.T) {
	answer := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			w.WriteHeader(answer)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	host, text, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedPort := closed.Addr().(*net.TCPAddr).Port
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	up := render.Service{Name: "web", Node: "web1", Address: host, Port: port, Ready: true}
	down := render.Service{Name: "web", Node: "web2", Address: host, Port: closedPort, Ready: true}
	fresh := render.Service{Name: "web", Node: "web3"}
	for _, c := range []struct {
		params, reason string
		fleet          fleet
	}{
		{"{name: web, timeout: 1ms}", "0 of 1 instances of service web", fleet{}},
		{"{name: web, count: 2, timeout: 1ms}", "1 of 2 instances of service web: web1; not yet web3 (announced, not ready)", fleet{up, fresh}},
		{"{name: web, tag: x, timeout: 1ms}", "0 of 1 instances of service web; not yet web1 (no tag x)", fleet{up}},
		{"{name: web, count: 2, reachable: tcp, timeout: 1ms}", "connection refused", fleet{up, down}},
		{"{name: web, kind: announced, reachable: tcp, timeout: 1ms}", "web3 (no address and port to ask)", fleet{fresh}},
		{"{name: web, reachable: http, timeout: 1ms}", "answers 404 Not Found", fleet{up}},
		{"{name: web, reachable: http, path: /health}", "", fleet{up}},
		{"{name: web, reachable: tcp}", "", fleet{up}},
	} {
		t.Run(c.params, func(t *testing.T) {
			s := example{fleet: c.fleet}.scene(t)
			r := s.run(s.mustBind("service.wait", c.params))
			want := apply.Pending
			if c.reason == "" {
				want = apply.OK
			}
			if r.Outcome != want || !strings.Contains(r.Reason, c.reason) {
				t.Errorf("%s %q, want %s %q", r.Outcome, r.Reason, want, c.reason)
			}
		})
	}
}

// TestServicesWithoutFleet: that the fleet's record is away is no fault of the step.
func TestServicesWithoutFleet(t *testing.T) {
	for _, name := range []string{"service.publish", "service.withdraw", "service.wait"} {
		s := newScene(t)
		if r := s.run(s.mustBind(name, "{name: db}")); r.Outcome != apply.Pending || !strings.Contains(r.Reason, "the fleet's record cannot be reached") {
			t.Errorf("%s: %s %q", name, r.Outcome, r.Reason)
		}
	}
}

// lost is a fleet whose record went away after the pull began.
type lost struct{}

func (lost) Services(context.Context, string) ([]render.Service, error) { return nil, errLost }
func (lost) Announce(context.Context, render.Service) error             { return errLost }
func (lost) Stale() string                                              { return "" }
func (lost) Withdraw(context.Context, string) error                     { return errLost }

var errLost = errors.New("etcdserver: request timed out")

// deaf is one that answers and takes nothing.
type deaf struct {
	lost
	fleet
}

func (d *deaf) Services(ctx context.Context, name string) ([]render.Service, error) {
	return d.fleet.Services(ctx, name)
}
func (d *deaf) Announce(ctx context.Context, s render.Service) error { return d.lost.Announce(ctx, s) }
func (d *deaf) Stale() string                                        { return "" }
func (d *deaf) Withdraw(ctx context.Context, name string) error      { return d.lost.Withdraw(ctx, name) }

// TestFleetLost: that the fleet's record goes away in the middle of a run is waited for, and no failure of the step.
func TestFleetLost(t *testing.T) {
	for _, c := range []struct {
		name, action, params string
		fleet                apply.Fleet
	}{
		{"wait", "service.wait", "{name: db, timeout: 5ms, interval: 1ms}", lost{}},
		{"publish", "service.publish", "{name: db, address: 192.0.2.9}", lost{}},
		{"publish, when it announces", "service.publish", "{name: db, address: 192.0.2.9}", &deaf{}},
		{"withdraw", "service.withdraw", "{name: db}", lost{}},
		{"withdraw, when it withdraws", "service.withdraw", "{name: db}", &deaf{fleet: fleet{{Name: "db", Node: "n1", Address: "192.0.2.9"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			o := s.options()
			o.Host.Fleet = c.fleet
			report, err := s.mustBind(c.action, c.params).Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			want := "the fleet's record cannot be reached, in which services are kept: the next pull looks again (etcdserver: request timed out)"
			if r := s.only(report); r.Outcome != apply.Pending || r.Reason != want {
				t.Errorf("%s %q, want pending %q", r.Outcome, r.Reason, want)
			}
		})
	}
}
