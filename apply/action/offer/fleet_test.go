package offer_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/render"
)

// TestServiceWaitSays who is missing and why, and is no failure.
func TestServiceWaitSays(t *testing.T) {
	t.Parallel()
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
	closedPort := nobody(t)
	up := render.Service{Name: "web", Node: "web1", Address: host, Port: port, Ready: true}
	down := render.Service{Name: "web", Node: "web2", Address: host, Port: closedPort, Ready: true}
	fresh := render.Service{Name: "web", Node: "web3"}
	for _, c := range []struct {
		params, reason string
		fleet          actiontest.Fleet
	}{
		{"{name: web, timeout: 1ms}", "0 of 1 instances of service web", actiontest.Fleet{}},
		{"{name: web, count: 2, timeout: 1ms}", "1 of 2 instances of service web: web1; not yet web3 (announced, not ready)", actiontest.Fleet{up, fresh}},
		{"{name: web, tag: x, timeout: 1ms}", "0 of 1 instances of service web; not yet web1 (no tag x)", actiontest.Fleet{up}},
		{"{name: web, count: 2, reachable: tcp, timeout: 1ms}", "connection refused", actiontest.Fleet{up, down}},
		{"{name: web, kind: announced, reachable: tcp, timeout: 1ms}", "web3 (no address and port to ask)", actiontest.Fleet{fresh}},
		{"{name: web, reachable: http, timeout: 1ms}", "answers 404 Not Found", actiontest.Fleet{up}},
		{"{name: web, reachable: http, path: /health}", "", actiontest.Fleet{up}},
		{"{name: web, reachable: tcp}", "", actiontest.Fleet{up}},
	} {
		t.Run(c.params, func(t *testing.T) {
			s := actiontest.Example{Fleet: c.fleet}.Scene(t)
			r := s.Run(s.MustBind("service.wait", c.params))
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
	t.Parallel()
	for _, name := range []string{"service.publish", "service.withdraw", "service.wait"} {
		s := actiontest.New(t)
		if r := s.Run(s.MustBind(name, "{name: db}")); r.Outcome != apply.Pending || !strings.Contains(r.Reason, "the fleet's record cannot be reached") {
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
	actiontest.Fleet
}

func (d *deaf) Services(ctx context.Context, name string) ([]render.Service, error) {
	return d.Fleet.Services(ctx, name)
}
func (d *deaf) Announce(ctx context.Context, s render.Service) error { return d.lost.Announce(ctx, s) }
func (d *deaf) Stale() string                                        { return "" }
func (d *deaf) Withdraw(ctx context.Context, name string) error      { return d.lost.Withdraw(ctx, name) }

// TestFleetLost: that the fleet's record goes away in the middle of a run is waited for, and no failure of the step.
func TestFleetLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, action, params string
		fleet                apply.Fleet
	}{
		{"wait", "service.wait", "{name: db, timeout: 5ms, interval: 1ms}", lost{}},
		{"publish", "service.publish", "{name: db, address: 192.0.2.9}", lost{}},
		{"publish, when it announces", "service.publish", "{name: db, address: 192.0.2.9}", &deaf{}},
		{"withdraw", "service.withdraw", "{name: db}", lost{}},
		{"withdraw, when it withdraws", "service.withdraw", "{name: db}", &deaf{Fleet: actiontest.Fleet{{Name: "db", Node: "n1", Address: "192.0.2.9"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := actiontest.New(t)
			o := s.Options()
			o.Host.Fleet = c.fleet
			report, err := s.MustBind(c.action, c.params).Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			want := "the fleet's record cannot be reached, in which services are kept: the next pull looks again (etcdserver: request timed out)"
			if r := s.Only(report); r.Outcome != apply.Pending || r.Reason != want {
				t.Errorf("%s %q, want pending %q", r.Outcome, r.Reason, want)
			}
		})
	}
}
