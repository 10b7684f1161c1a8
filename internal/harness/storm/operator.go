package storm

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// operator runs commands of pullet as a person does.
type operator struct {
	*notes
	program string
	config  string // of a host without faults
}

// run runs a command on a host without faults.
func (o *operator) run(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, o.program, append([]string{"--config", o.config}, args...)...).CombinedOutput()
	result := "ok"
	if err != nil {
		result = strings.Join(strings.Fields(string(out)), " ")
	}
	o.say("operator %s: %s", strings.Join(args, " "), result)
	return string(out), err
}

// runOn runs a command on a host.
func (o *operator) runOn(h *host, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	on := []string{"--config", filepath.Join(h.home, "pullet.yaml"), "--root", filepath.Join(h.home, "root")}
	out, err := exec.CommandContext(ctx, o.program, append(on, args...)...).CombinedOutput()
	o.say("operator on %s, %s: %v", h.Name, strings.Join(args, " "), err)
	return string(out), err
}

// insist runs a command until it succeeds, up to 30 times.
func (o *operator) insist(args ...string) {
	for range 30 {
		if _, err := o.run(args...); err == nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// accept accepts a restore of etcd. It waits until no host is in the middle of an upgrade.
func (o *operator) accept() {
	for range 20 {
		out, err := o.run("rollout", "resume", "--store", "--force")
		if err == nil || !strings.Contains(out, "unreachable") {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	o.say("accepted")
}

// decommission decommissions a host that is down. A host that comes back with its name is another one.
func (o *operator) decommission(h *host) {
	o.say("decommission %s", h.node)
	for range 30 {
		out, err := o.run("decommission", "--force", h.node)
		if err == nil || strings.Contains(out, "there is no node") {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}
