package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// member is a further host of a fleet: it pulls from h's repository, and its fleet's record is behind endpoint.
func (h *host) member(fleet, name, role, endpoint string) *host {
	h.t.Helper()
	m := &host{t: h.t, home: h.home, Config: h.Config}
	m.Fleet, m.Etcd.Endpoints, m.Etcd.Timeout = fleet, []string{endpoint}, render.Duration(time.Minute) // a machine under load may be slow
	m.Node.Node = render.Node{Name: name, Labels: map[string]string{"role": role}}
	at := filepath.Join(fleet, name)
	h.write(filepath.Join(at, "root/etc/keep"), "")
	m.Root, m.Paths = filepath.Join(h.home, at, "root"), Paths{State: filepath.Join(h.home, at, "state"), HostVars: filepath.Join(h.home, at, "vars.d")}
	return m
}

// open is the fleet's record.
func (h *host) open() *state.Store {
	h.t.Helper()
	s, err := h.OpenStore(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = s.Close() })
	return s
}

// overview is what the fleet's record says.
func (h *host) overview() *state.Overview {
	h.t.Helper()
	s, err := h.OpenStore(context.Background())
	if err != nil {
		h.t.Fatal(err)
	}
	defer s.Close()
	o, err := s.Views.Fleet(context.Background(), true)
	if err != nil {
		h.t.Fatal(err)
	}
	return o
}

// with pulls once, as an agent of its own.
func (h *host) with(o Options) (*Outcome, error) {
	h.t.Helper()
	a, err := New(h.Config, "test", h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	if o.Waiting == nil {
		o.Waiting = func(*lock.Wait) {}
	}
	out, err := a.Pull(context.Background(), o)
	return out, errors.Join(err, a.Close())
}

// file is the text of a file below the host's root; "" where there is none.
func (h *host) file(name string) string {
	text, err := os.ReadFile(filepath.Join(h.Root, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Fatal(err)
	}
	return string(text)
}

// started waits for a file that a command makes.
func (h *host) started(name string) {
	h.t.Helper()
	patience.UntilWithin(h.t, time.Minute, "a command makes "+name, func() bool {
		_, err := os.Stat(filepath.Join(h.Root, name))
		return err == nil
	})
}

// exits pulls and checks the exit code, and what the node then waits for or fails by.
func (h *host) exits(code int, want string) *Outcome {
	h.t.Helper()
	out := h.pull()
	if said := saidBy(out, nil); out.ExitCode() != code || !strings.Contains(said, want) {
		h.t.Errorf("%s: exit %d, want %d with %q:\n%s", h.Node.Name, out.ExitCode(), code, want, said)
	}
	return out
}

// saidBy is all that a pull says went wrong.
func saidBy(out *Outcome, err error) string {
	var b strings.Builder
	for _, one := range append(append(append([]error{err}, out.Refused...), out.Failures...), out.Warnings...) {
		if one != nil {
			fmt.Fprintln(&b, one)
		}
	}
	if out.Wait != nil {
		fmt.Fprintln(&b, out.Wait)
	}
	if out.Report != nil {
		fmt.Fprintln(&b, out.Report.Why(), out.Report.Stopped)
	}
	return b.String()
}
