package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stormHost is one host: a state directory, a root, and a way to etcd of its own. It runs the agent, or single pulls
// one after another, as cron does.
type stormHost struct {
	*process
	*link
	s          *storm
	node, role string
	cron       bool
	home       string
	old        string // a copy of its state directory, "" for none
	disk       bool   // its state directory is on a small disk of its own
}

// cronLoop pulls again and again, each time as a process of its own. $0 is the host's directory, $1 pullet.
const cronLoop = `while :; do "$1" pull --wait 5s --config "$0/pullet.yaml" --root "$0/root"; sleep 1; done`

// host makes a host of a node, which nothing runs on yet.
func (s *storm) host(name, node, role string, cron bool) *stormHost {
	h := &stormHost{s: s, node: node, role: role, cron: cron, home: filepath.Join(s.dir, name), link: newLink()}
	var endpoints []string
	for _, member := range s.cluster.clients {
		endpoints = append(endpoints, s.scheme()+"://"+h.proxy(s.t, member))
	}
	s.write(name+"/pullet.yaml", s.config(name, node, role, endpoints))
	s.write(name+"/root/etc/machine-id", fmt.Sprintf("%032x\n", name))
	h.process = &process{name: name, log: h.home + "/pullet.log", env: []string{"PULLET_TEST_CLOCK=" + h.home + "/clock"}, args: []string{s.kind.pullet, "agent", "--config", h.home + "/pullet.yaml", "--root", h.home + "/root"}}
	if cron {
		h.process.args = []string{"sh", "-c", cronLoop, h.home, s.kind.pullet}
	}
	return h
}

const stormConfig = `node: {name: %[1]s, labels: {role: %[2]s}}
repositories: [%[3]s]
etcd: {endpoints: ['%[4]s']%[5]s}
agent: {interval: 2s, splay: 0s, wait: 5s, allowRun: true}
paths: {state: %[6]s/state, hostVars: %[6]s/vars.d}
`

// config is a configuration of pullet.
func (s *storm) config(name, node, role string, endpoints []string) string {
	var repos []string
	for _, repo := range s.repos {
		repos = append(repos, fmt.Sprintf("{name: %s, url: %q, ref: main}", repo, filepath.Join(s.dir, repo+".git")))
	}
	return fmt.Sprintf(stormConfig, node, role, strings.Join(repos, ", "), strings.Join(endpoints, "', '"), s.credentials(), filepath.Join(s.dir, name))
}

// up starts what the host runs.
func (h *stormHost) up() { h.start(h.s.t) }

// down ends it as a power failure does, steps included.
func (h *stormHost) down() {
	f := h.stop(true)
	h.s.gone(f.children)
	f.signal(syscall.SIGKILL)
	<-h.done
}

// orphan kills pullet and leaves the commands of its steps alone. It returns how to start it again.
func (h *stormHost) orphan() (again func()) {
	if !h.cron {
		h.kill(false)
		return h.up
	}
	for _, pull := range children(h.cmd.Process.Pid) {
		_ = syscall.Kill(pull, syscall.SIGKILL) // the loop starts the next one
	}
	return func() {}
}

// restartEnded starts agents again that ended by themselves, as their unit does: one whose state directory was removed
// may notice it much later.
func (s *storm) restartEnded() {
	for _, h := range s.hosts {
		if !h.busy.TryLock() { // who does something to it starts it again
			continue
		}
		select {
		case <-h.process.done:
			s.did("agent restarted", "%s", h.name)
			h.up()
		default:
		}
		h.busy.Unlock()
	}
}

// killSteps kills the commands of the host's steps, and lets pullet live: a fault of the host, as when it runs out of
// memory. It reports that there was one.
func (h *stormHost) killSteps() bool {
	pullets := []int{h.cmd.Process.Pid}
	if h.cron {
		pullets = children(pullets[0])
	}
	var found []int
	for _, p := range pullets {
		found = append(found, children(p)...)
	}
	for i := 0; i < len(found); i++ {
		_ = syscall.Kill(found[i], syscall.SIGSTOP)
		found = append(found, children(found[i])...)
	}
	if len(found) > 0 {
		h.s.log.say("sick %s", h.node)
	}
	h.s.gone(found)
	for _, pid := range found {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return len(found) > 0
}

// gone tells the judge that these processes do nothing any more: they are stopped, and killed next.
func (s *storm) gone(pids []int) {
	if len(pids) > 0 {
		s.log.say("gone %s", strings.Trim(fmt.Sprint(pids), "[]"))
	}
}

// copyState keeps a copy of the state directory of a host that is down, as a backup or the disk of a cloned machine
// does. Without etcd of its own there are only files.
func copyState(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(to, 0o700)
	}
	out, err := exec.Command("cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

func (h *stormHost) state() string { return filepath.Join(h.home, "state") }

// emptied removes what is in the state directory.
func (h *stormHost) emptied() error {
	entries, err := os.ReadDir(h.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(h.state(), e.Name())))
	}
	return err
}

// smallDisk puts the state directory on a disk of its own, with room for what a fetch keeps free.
func (h *stormHost) smallDisk() error {
	if err := os.MkdirAll(h.state(), 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", h.state(), "tmpfs", 0, "size=192m,mode=700"); err != nil {
		return err
	}
	h.disk = true
	h.s.t.Cleanup(func() {
		for range 50 { // what was killed may not have ended
			if syscall.Unmount(h.state(), 0) == nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		h.s.t.Errorf("%s is still mounted", h.state())
	})
	return nil
}

// fillDisk takes all the room of a small disk, until free is called.
func (h *stormHost) fillDisk() (free func() error, err error) {
	path := filepath.Join(h.state(), "filler")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for block := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return nil, err
	}
	return func() error { return os.Remove(path) }, nil
}
