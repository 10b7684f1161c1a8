package storm

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/harness/chance"
)

// operations are the things that operators and authors of commits do to a storm.
type operations struct {
	*notes
	dir        string
	operator   *operator
	hosts      *hosts
	datastore  *datastore
	repository *repository
}

// operate does one thing as an operator: it resumes after a halt, or holds the fleet up for a while.
func (o *operations) operate(x *rand.Rand) {
	does := []func(*rand.Rand){
		o.resume, o.resume, o.resume, o.pause, o.disable, o.disable, o.undo, o.command, o.decommission, o.fail,
	}
	does[x.IntN(len(does))](x)
}

// resume resumes after a halt, as if the host was the cause.
func (o *operations) resume(*rand.Rand) {
	if o.datastore.isHalted() {
		o.did("resume", "")
		_, _ = o.operator.run("rollout", "resume") // etcd may be unreachable
	}
}

// pause pauses all rollouts for some seconds.
func (o *operations) pause(x *rand.Rand) {
	o.did("pause", "")
	_, _ = o.operator.run("rollout", "pause", "--reason", "storm")
	chance.Sleep(x, time.Second, 6*time.Second)
	o.operator.insist("rollout", "resume")
}

// disable disables a host, a role or everything for a while, and sometimes enables a host of that.
func (o *operations) disable(x *rand.Rand) {
	h := o.hosts.list[x.IntN(len(o.hosts.list))]
	scope := [][]string{{"--host", h.node}, {"--role", h.role}, {"--global"}}[x.IntN(3)]
	o.did("disable", "%s", strings.Join(scope, " "))
	_, _ = o.operator.run(append([]string{"disable", "--reason", "storm"}, scope...)...)
	chance.Sleep(x, 0, 4*time.Second)
	if scope[0] != "--host" && x.IntN(2) == 0 {
		o.did("enable", "%s", h.node)
		o.operator.insist("enable", "--host", h.node)
		chance.Sleep(x, 0, 4*time.Second)
	}
	o.operator.insist(append([]string{"enable"}, scope...)...)
}

// undo goes back to the last good version, and lets the fleet follow again after a while.
func (o *operations) undo(x *rand.Rand) {
	o.did("undo", "")
	if _, err := o.operator.run("rollout", "undo", "--reason", "storm"); err == nil {
		chance.Sleep(x, 2*time.Second, 10*time.Second)
	}
	o.operator.insist("rollout", "follow")
}

// fail halts the current rollout for some seconds.
func (o *operations) fail(x *rand.Rand) {
	o.did("fail", "")
	_, _ = o.operator.run("rollout", "fail", "--reason", "storm")
	chance.Sleep(x, time.Second, 4*time.Second)
	o.operator.insist("rollout", "resume")
}

// decommission decommissions a host that is down. It comes back later.
func (o *operations) decommission(x *rand.Rand) {
	lasts := chance.Between(x, time.Second, 5*time.Second)
	o.hosts.whileDown(x, "host decommissioned", lasts, func(h *host) error {
		o.operator.decommission(h)
		return nil
	})
}

// command has hosts run a command: db before the others, two at a time.
func (o *operations) command(*rand.Rand) {
	name := fmt.Sprint("run", o.number("commands"))
	o.did("run", "%s: two at a time, role=db first", name)
	_, _ = o.operator.run("run", "--target", "role", "--max", "2", "--stage", "role=db", "--expires", "2m", "--",
		filepath.Join(o.dir, "step"), name, "0.3", "-")
}

// push commits and pushes the next version. Sometimes it rewrites the branch.
func (o *operations) push(x *rand.Rand) {
	chance.Sleep(x, 3*time.Second, 10*time.Second)
	if len(o.repository.names) > 1 && x.IntN(4) == 0 {
		o.did("second repository pushed", "")
		o.repository.pushExtra(x.Int())
		return
	}
	rewrite := x.IntN(12) == 0
	o.repository.rules = o.repository.rules.Change(x)
	o.repository.reshape()
	if rewrite {
		o.did("branch rewritten", "")
	}
	o.did("push", "")
	o.repository.push(rewrite)
	if rewrite {
		o.acceptRewind(x)
	}
}

// acceptRewind accepts a rewritten branch on a host. The agent of the host is down meanwhile, because a second pull
// does not wait for it.
func (o *operations) acceptRewind(x *rand.Rand) {
	for range 20 {
		h, unlock := o.hosts.lock(x)
		if h == nil {
			time.Sleep(300 * time.Millisecond)
			continue
		}
		h.down()
		out, err := o.operator.runOn(h, "pull", "--accept-rewind", "--wait", "0s")
		h.up()
		unlock()
		if err == nil || strings.Contains(out, "waiting for ") { // for its slot
			return
		}
	}
}

// calm runs the commands that the reasons in status name: enable, resume, follow, accept.
func (o *operations) calm(x *rand.Rand) {
	scopes := [][]string{{"--global"}}
	seen := []string{}
	for _, h := range o.hosts.list {
		scopes = append(scopes, []string{"--host", h.node})
		if !slices.Contains(seen, h.role) {
			seen = append(seen, h.role)
			scopes = append(scopes, []string{"--role", h.role})
		}
	}
	out, _ := o.operator.run("status", "-o", "wide")
	for _, scope := range scopes {
		if strings.Contains(out, "disabled") {
			_, _ = o.operator.run(append([]string{"enable"}, scope...)...)
		}
	}
	if strings.Contains(out, "--store") {
		o.operator.accept()
	}
	_, _ = o.operator.run("rollout", "resume")
	_, _ = o.operator.run("rollout", "follow")
	if strings.Contains(out, "accept-rewind") {
		o.acceptRewind(x)
	}
}
