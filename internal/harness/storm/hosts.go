package storm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/link"
	"github.com/pullet/pullet/internal/harness/process"
)

// hosts are the hosts of a storm and their faults.
type hosts struct {
	*notes
	dir        string
	program    string // pullet
	long       bool   // hosts may stop for longer than a lease
	datastore  *datastore
	repository *repository
	operator   *operator
	list       []*host
}

// hostConfig is the configuration of pullet on a host.
const hostConfig = `node: {name: %[1]s, labels: {role: %[2]s}}
repositories: [%[3]s]
etcd: {%[4]s}
agent: {interval: 2s, splay: 0s, wait: 5s, allowRun: true}
paths: {state: %[5]s/state, hostVars: %[5]s/vars.d}
`

// configure writes the configuration of a host, which reaches etcd at these addresses.
func (s *hosts) configure(name, node, role string, addresses []string) {
	var repos []string
	for _, repo := range s.repository.names {
		repos = append(repos, fmt.Sprintf("{name: %s, url: %q, ref: main}", repo, s.repository.url(repo)))
	}
	home, etcd := filepath.Join(s.dir, name), s.datastore.settings(addresses)
	text := fmt.Sprintf(hostConfig, node, role, strings.Join(repos, ", "), etcd, home)
	write(s.t, filepath.Join(home, "pullet.yaml"), text)
}

// add makes a host of a node. Nothing runs on it yet.
func (s *hosts) add(name, node, role string, cron bool) *host {
	h := &host{notes: s.notes, node: node, role: role, cron: cron, home: filepath.Join(s.dir, name), link: link.New()}
	var addresses []string
	for _, member := range s.datastore.cluster.Addresses() {
		addresses = append(addresses, h.link.Proxy(s.t, member))
	}
	s.configure(name, node, role, addresses)
	write(s.t, filepath.Join(h.home, "root/etc/machine-id"), fmt.Sprintf("%032x\n", name))
	h.Process = &process.Process{
		Name: name, Log: filepath.Join(h.home, hostLog), Env: []string{clockEnv + "=" + h.clock()},
		Args: []string{s.program, "agent", "--config", h.home + "/pullet.yaml", "--root", h.home + "/root"},
	}
	if cron {
		h.Args = []string{"sh", "-c", cronLoop, h.home, s.program}
	}
	return h
}

// clock returns the file with the seconds that processes on the host add to the time of day.
func (h *host) clock() string { return filepath.Join(h.home, "clock") }

// restartEnded starts agents that ended by themselves, as their unit does. An agent whose state directory was removed
// may notice that much later.
func (s *hosts) restartEnded() {
	for _, h := range s.list {
		if !h.Busy.TryLock() { // its fault starts it again
			continue
		}
		select {
		case <-h.Done():
			s.did("agent restarted", "%s", h.Name)
			h.up()
		default:
		}
		h.Busy.Unlock()
	}
}

// lock returns a host without a fault, or nil, and a function that ends the fault of the caller.
func (s *hosts) lock(x *rand.Rand) (h *host, unlock func()) {
	if h = s.list[x.IntN(len(s.list))]; !h.Busy.TryLock() {
		return nil, nil
	}
	return h, h.Busy.Unlock
}

// whileDown stops a host, calls do, and starts the host again after a time.
func (s *hosts) whileDown(x *rand.Rand, fault string, lasts time.Duration, do func(h *host) error) {
	h, unlock := s.lock(x)
	if h == nil {
		return
	}
	defer unlock()
	s.did(fault, "%s for %s", h.Name, lasts)
	h.down()
	if err := do(h); err != nil {
		s.t.Error(err)
	}
	time.Sleep(lasts)
	h.up()
}

// kill stops a host for a moment, as a power failure does.
func (s *hosts) kill(x *rand.Rand) {
	lasts := chance.Between(x, 0, 3*time.Second)
	s.whileDown(x, "host killed", lasts, func(*host) error { return nil })
}

// killPullet kills pullet on a host, and leaves the command of its step running.
func (s *hosts) killPullet(x *rand.Rand) {
	lasts := chance.Between(x, 0, 2*time.Second)
	h, unlock := s.lock(x)
	if h == nil {
		return
	}
	defer unlock()
	s.did("pullet killed", "%s for %s", h.Name, lasts)
	restart := h.killPullet()
	time.Sleep(lasts)
	restart()
}

// killSteps kills the commands of the steps of a host in half of the cases, because a group tolerates few such faults.
func (s *hosts) killSteps(x *rand.Rand) {
	h, unlock := s.lock(x)
	if h == nil {
		return
	}
	defer unlock()
	if x.IntN(2) != 0 && h.killSteps() {
		s.did("commands killed", "%s", h.Name)
	}
}

// freeze stops the processes of a host, with or without its steps. Sometimes it lasts longer than the lease of an
// agent.
func (s *hosts) freeze(x *rand.Rand) {
	lasts, steps := chance.Between(x, 500*time.Millisecond, 8*time.Second), x.IntN(2) == 0
	if x.IntN(12) == 0 && s.long {
		lasts = 70 * time.Second
	}
	h, unlock := s.lock(x)
	if h == nil {
		return
	}
	defer unlock()
	s.did("host stopped", "%s for %s, with its steps: %v", h.Name, lasts, steps)
	frozen := h.Freeze(steps)
	time.Sleep(lasts)
	frozen.Thaw()
}

// reinstall empties the state directory of a host. An operator tells the fleet that the host behind the name is new.
func (s *hosts) reinstall(x *rand.Rand) {
	if h, unlock := s.lock(x); h != nil {
		defer unlock()
		s.reinstallHost(h)
	}
}

// reinstallHost empties the state directory of a host that the caller has locked.
func (s *hosts) reinstallHost(h *host) {
	s.did("host reinstalled", "%s", h.Name)
	h.down()
	s.say("reverted %s", h.Name)
	s.operator.decommission(h)
	if err := h.emptyState(); err != nil {
		s.t.Error(err)
	}
	h.up()
}

// removeState removes the state directory of a host while pullet runs. An agent ends then, and its unit starts it
// again.
func (s *hosts) removeState(x *rand.Rand) {
	h, unlock := s.lock(x)
	if h == nil {
		return
	}
	defer unlock()
	if h.smallDisk || x.IntN(2) == 0 {
		return
	}
	s.did("state directory removed", "%s, which runs", h.Name)
	s.say("reverted %s", h.Name)
	if err := os.RemoveAll(h.state()); err != nil { // pullet may write there at the same moment
		_ = os.RemoveAll(h.state())
	}
	chance.Sleep(x, time.Second, 5*time.Second)
	s.operator.decommission(h)
}

// revert restores the state directory of a host from an older copy. The first time it makes the copy.
func (s *hosts) revert(x *rand.Rand) {
	s.whileDown(x, "host reverted", 0, func(h *host) error {
		if h.smallDisk {
			return nil
		}
		if h.oldState == "" {
			h.oldState = filepath.Join(h.home, "old")
			return process.CopyDir(h.state(), h.oldState)
		}
		s.say("reverted %s", h.Name)
		return process.CopyDir(h.oldState, h.state())
	})
}

// clone runs a copy of a host with its name for a while.
func (s *hosts) clone(x *rand.Rand) {
	h, unlock := s.lock(x)
	if h == nil {
		return
	}
	defer unlock()
	if h.smallDisk {
		return
	}
	name := fmt.Sprintf("%s-clone%d", h.Name, s.number("clones"))
	clone := s.add(name, h.node, h.role, false)
	h.down()
	if err := process.CopyDir(h.state(), clone.state()); err != nil {
		s.t.Error(err)
	}
	s.did("host cloned", "%s as %s", h.Name, name)
	h.up()
	clone.up()
	chance.Sleep(x, 3*time.Second, 15*time.Second)
	clone.down()
	s.did("clone removed", "%s", name)
}

// cut cuts, delays or loses the connections of a host to etcd.
func (s *hosts) cut(x *rand.Rand) {
	way, lasts := x.IntN(5), chance.Between(x, 200*time.Millisecond, 9*time.Second)
	h := s.list[x.IntN(len(s.list))]
	if !h.link.Busy.TryLock() {
		return
	}
	defer h.link.Busy.Unlock()
	name := []string{"link cut", "link stalled", "answers lost", "requests lost", "link slow"}[way]
	s.did(name, "%s for %s", h.Name, lasts)
	h.link.Set([]link.Mode{link.Cut, link.Stall, link.Deaf, link.Mute, link.Slow}[way])
	time.Sleep(lasts)
	h.link.Set(link.Open)
}

// revoke ends the lease of a host.
func (s *hosts) revoke(x *rand.Rand) { s.datastore.revoke(s.list[x.IntN(len(s.list))].node) }

// setClock sets the time of day of a host: by seconds, hours or years, forward or back.
func (s *hosts) setClock(x *rand.Rand) {
	h := s.list[x.IntN(len(s.list))]
	by := []int{-3, 40, -90, 3600, -7200, 86400, -100000, 40000000}[x.IntN(8)]
	s.did("clock set", "%s by %d s", h.Name, by)
	write(s.t, h.clock(), fmt.Sprint(by))
}

// fillDisk fills the state directory of the one host with a small disk.
func (s *hosts) fillDisk(x *rand.Rand) {
	h := s.list[len(s.list)-1]
	if !h.smallDisk || !h.Busy.TryLock() {
		return
	}
	defer h.Busy.Unlock()
	lasts := chance.Between(x, time.Second, 10*time.Second)
	s.did("disk full", "%s for %s", h.Name, lasts)
	s.say("sick %s", h.node)
	defer s.say("sick %s", h.node)
	free, err := h.fillDisk()
	if err != nil {
		s.t.Error(err)
		return
	}
	time.Sleep(lasts)
	if err := free(); err != nil {
		s.t.Error(err)
	}
}
