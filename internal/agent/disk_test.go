package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// before calls do before etcd sees the n-th request from now on, for each n.
func (m *meter) before(do func(n int, kind string)) {
	n := 0
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refuse = func(kind string) bool {
		if !slices.Contains([]string{"Watch", "LeaseKeepAlive", "Status"}, strings.Split(kind, " ")[0]) {
			n++
			do(n, kind)
		}
		return false
	}
}

// record is the file of what the host knows of itself.
func (h *host) record() string { return filepath.Join(h.Paths.State, "node.json") }

// written tells versions of that file apart; "" where there is none.
func (h *host) written() string {
	info, err := os.Stat(h.record())
	if err != nil {
		return ""
	}
	at, _ := inode(h.record())
	return fmt.Sprint(at, info.ModTime())
}

// saves are the requests of a pull behind which it writes that file.
func (h *host) saves(m *meter, o Options) (out []int) {
	h.t.Helper()
	was, last := "", 0
	looks := func(n int) {
		if now := h.written(); n > 1 && now != was {
			out = append(out, n-1)
		}
		was, last = h.written(), n
	}
	m.before(func(n int, _ string) { looks(n) })
	_, err := h.with(o)
	m.denies("")
	if looks(last + 1); err != nil {
		h.t.Log(err)
	}
	return out
}

// spoils has the pull fail to write that file behind its n-th request, and no later.
func (h *host) spoils(m *meter, n int) (over func()) {
	kept, broken := h.record()+".kept", false
	must := func(err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			h.t.Error(err)
		}
	}
	fix := func() {
		if broken {
			must(os.Remove(h.record()))
			must(os.Rename(kept, h.record()))
			broken = false
		}
	}
	m.before(func(at int, _ string) {
		fix()
		if at == n {
			must(os.Rename(h.record(), kept))
			must(os.Mkdir(h.record(), 0o700)) // no file can be renamed to it
			broken = true
		}
	})
	return func() { m.denies(""); fix() }
}

// pulling is a pull of a host in some situation.
type pulling struct {
	first map[string]string // files of the commit that ran before; nil is none
	then  map[string]string // files of the commit that is offered now
	does  func(h *host, s *state.Store) error
	code  int // of the pull
	known int // writes that another situation has as well
}

// at brings a new host of a fleet to the situation.
func (c pulling) at(m *meter, repo *host, fleet, endpoint string) *host {
	repo.t.Helper()
	h := repo.member(fleet, "web1", "web", endpoint)
	if c.first != nil {
		repo.git("reset", "-q", "--hard", "first")
		h.pull()
	}
	repo.git("reset", "-q", "--hard", "then")
	if c.does != nil {
		if err := c.does(h, state.Over(m.store.Client, fleet, nil)); err != nil {
			repo.t.Fatal(err)
		}
	}
	return h
}

// repository has both commits of the situation.
func (c pulling) repository(t *testing.T) *host {
	h := newHost(t, job("zero", "true"))
	h.write("repo/jobs/check.yaml", "steps: [{name: works, action: cmd.run, parameters: {cmd: test ! -e etc/invalid}}]\n")
	h.write("repo/nodes/web.yaml", "nodes: {web1: {labels: {role: web}}}\n")
	for _, one := range []struct {
		tag   string
		files map[string]string
	}{{"first", c.first}, {"then", c.then}} {
		if one.files == nil { // nothing new
			h.git("tag", one.tag)
			continue
		}
		for name, text := range one.files {
			h.write("repo/"+name, text)
		}
		h.git("add", "-A")
		h.git("commit", "-qm", one.tag, "--allow-empty")
		h.git("tag", one.tag)
	}
	return h
}

// knows is what a host knows of itself, but for times and places.
func (h *host) knows() string {
	l := h.known()
	return fmt.Sprintln(l.Running, l.Validated, l.Through, l.Held != nil, l.Parked, l.Upgrading, l.Failed, l.Queued, l.Labels, l.Offers,
		l.RolledBack != nil, l.Frozen != nil, len(l.Troubles), l.Store.Revision > 0, l.LastPull.IsZero())
}

// TestNoFailedSaveIsSilent: whichever write of what the host knows of itself fails, the pull says so, and the next one
// finishes the work.
func TestNoFailedSaveIsSilent(t *testing.T) {
	t.Parallel()
	m, _ := newMeter(t)
	site := func(text string) map[string]string { return map[string]string{"jobs/site.yaml": text} }
	one := site(job("one", "true"))
	services := rich["repo/base/services.yaml"]
	up := "- {name: up, action: cmd.run, parameters: {cmd: 'true'}, conditions: {when: {condition: \"len(services('db')) > 0\", retry: {interval: 1h, limit: 0}}}}\n"
	for name, c := range map[string]pulling{
		"first":     {then: map[string]string{"jobs/site.yaml": strings.TrimPrefix(rich["repo/jobs/site.yaml"], "onFailure: restore\n"), "base/services.yaml": services}},
		"failure":   {first: one, then: map[string]string{"jobs/site.yaml": "onFailure: restore\n" + job("two", "exit 3"), "nodes/web.yaml": "nodes: {web1: {labels: {role: front}}}\n"}, code: ExitError, known: 1},
		"wait":      {first: one, then: site(job("two", "true") + up), code: ExitWaiting, known: 3},
		"frozen":    {first: one, code: ExitWaiting, does: freezes, known: 1},
		"back":      {first: one, then: site(job("two", "true")), does: goesBack, known: 1},
		"invalid":   {first: one, code: ExitError, does: breaks, known: 1},
		"withdrawn": {first: map[string]string{"base/services.yaml": services}, then: map[string]string{"base/services.yaml": "services: {}\n"}, known: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, endpoint := meterOver(t, m.store)
			repo := c.repository(t)
			sound := c.at(m, repo, name, endpoint)
			windows := sound.saves(m, Options{})
			if len(windows) <= c.known {
				t.Fatalf("it writes behind requests %v", windows)
			}
			for _, n := range windows[c.known:] {
				h := c.at(m, repo, fmt.Sprint(name, n), endpoint)
				fix := h.spoils(m, n)
				out, err := h.with(Options{})
				fix()
				if said := saidBy(out, err); !strings.Contains(said, "node.json cannot be written") {
					t.Errorf("a write behind request %d of %v failed, and nothing says so: exit %d\n%s", n, windows, out.ExitCode(), said)
				}
				out, err = h.with(Options{})
				if got, want := h.knows(), sound.knows(); err != nil || out.ExitCode() != c.code || got != want {
					t.Errorf("behind request %d of %v: the next pull exits %d %v, and knows\n%s, want\n%s", n, windows, out.ExitCode(), err, got, want)
				}
			}
		})
	}
}

// freezes has no host change at all.
func freezes(h *host, s *state.Store) error {
	return s.Switches.Set(h.t.Context(), state.GlobalScope(), &state.Switch{AllChanges: true, At: time.Now()}, nil, time.Hour)
}

// goesBack has the fleet come back to the version that the host runs.
func goesBack(h *host, s *state.Store) error {
	h.member(h.Fleet, "web2", "db", h.Etcd.Endpoints[0]).pull()
	current, rev, err := s.Versions.Current(h.t.Context())
	if err == nil {
		_, err = s.Versions.Undo(h.t.Context(), current, rev, "ada", "bad", 0)
	}
	return err
}

// breaks has the validation fail.
func breaks(h *host, _ *state.Store) error {
	return os.WriteFile(filepath.Join(h.Root, "etc/invalid"), nil, 0o600)
}
