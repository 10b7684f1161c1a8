package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// operates is an operator who does one thing: it puts right what halted, or holds the fleet up for a while.
func (s *storm) operates(x *rand.Rand) {
	does := []func(*rand.Rand){s.resumes, s.resumes, s.resumes, s.pauses, s.disables, s.disables, s.undoes, s.commands, s.decommissions, s.fails}
	does[x.IntN(len(does))](x)
}

// operatorOn runs a command of pullet as a person on a host does.
func (s *storm) operatorOn(h *stormHost, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.kind.pullet, append([]string{"--config", h.home + "/pullet.yaml", "--root", h.home + "/root"}, args...)...).CombinedOutput()
	s.log.say("operator on %s, %s: %v", h.name, strings.Join(args, " "), err)
	return string(out), err
}

// resumes goes on after a halt, as who believes that it was the host.
func (s *storm) resumes(*rand.Rand) {
	if s.anyHalted() {
		s.did("resume", "")
		_, _ = s.operator("rollout", "resume") // etcd may be away
	}
}

func (s *storm) pauses(x *rand.Rand) {
	s.did("pause", "")
	_, _ = s.operator("rollout", "pause", "--reason", "storm")
	sleepFor(x, time.Second, 6*time.Second)
	s.insist("rollout", "resume")
}

// insist does until it is done: who disabled something enables it again.
func (s *storm) insist(args ...string) {
	for range 30 {
		if _, err := s.operator(args...); err == nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// disables switches a host, a role or everything off for a while, and sometimes a host of it on again.
func (s *storm) disables(x *rand.Rand) {
	h := s.hosts[x.IntN(len(s.hosts))]
	scope := [][]string{{"--host", h.node}, {"--role", h.role}, {"--global"}}[x.IntN(3)]
	s.did("disable", "%s", strings.Join(scope, " "))
	_, _ = s.operator(append([]string{"disable", "--reason", "storm"}, scope...)...)
	sleepFor(x, 0, 4*time.Second)
	if scope[0] != "--host" && x.IntN(2) == 0 {
		s.did("enable", "%s", h.node)
		s.insist("enable", "--host", h.node)
		sleepFor(x, 0, 4*time.Second)
	}
	s.insist(append([]string{"enable"}, scope...)...)
}

// undoes goes back to the last good version, and lets the fleet follow again after a while.
func (s *storm) undoes(x *rand.Rand) {
	s.did("undo", "")
	if _, err := s.operator("rollout", "undo", "--reason", "storm"); err == nil {
		sleepFor(x, 2*time.Second, 10*time.Second)
	}
	s.insist("rollout", "follow")
}

func (s *storm) fails(x *rand.Rand) {
	s.did("fail", "")
	_, _ = s.operator("rollout", "fail", "--reason", "storm")
	sleepFor(x, time.Second, 4*time.Second)
	s.insist("rollout", "resume")
}

// decommissions gives a host up that is down; it comes back later.
func (s *storm) decommissions(x *rand.Rand) {
	s.whileDown(x, "host decommissioned", between(x, time.Second, 5*time.Second), func(h *stormHost) error {
		s.giveUp(h)
		return nil
	})
}

// giveUp tells the fleet that nobody waits for a host any more, or that the one that comes under its name is another.
func (s *storm) giveUp(h *stormHost) {
	s.log.say("decommission %s", h.node)
	for range 30 {
		if out, err := s.operator("decommission", "--force", h.node); err == nil || strings.Contains(out, "there is no node") {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// commands has nodes run a command: db before the others, two at a time.
func (s *storm) commands(*rand.Rand) {
	s.mu.Lock()
	s.counts["commands"]++
	name := fmt.Sprint("run", s.counts["commands"])
	s.mu.Unlock()
	s.did("run", "%s: two at a time, role=db first", name)
	_, _ = s.operator("run", "--target", "role", "--max", "2", "--stage", "role=db", "--expires", "2m", "--", s.dir+"/step", name, "0.3", "-")
}

// heal ends what an operator or a fault may have left.
func (s *storm) heal(x *rand.Rand) {
	s.etcd.Lock()
	defer s.etcd.Unlock()
	s.makeRoom()
	for _, h := range s.hosts {
		h.set(linkOpen)
		if s.kind.secure && s.kind.clocks { // a clock that is far off takes etcd's certificate for one that has ended; all else stands it
			s.write(h.name+"/clock", "0")
		}
	}
	s.calm(x)
}

// calm does what the reasons in status ask for: enable, resume, follow, accept.
func (s *storm) calm(x *rand.Rand) {
	scopes := [][]string{{"--global"}}
	seen := []string{}
	for _, h := range s.hosts {
		scopes = append(scopes, []string{"--host", h.node})
		if !slices.Contains(seen, h.role) {
			seen = append(seen, h.role)
			scopes = append(scopes, []string{"--role", h.role})
		}
	}
	out, _ := s.operator("status", "-o", "wide")
	for _, scope := range scopes {
		if strings.Contains(out, "disabled") {
			_, _ = s.operator(append([]string{"enable"}, scope...)...)
		}
	}
	if strings.Contains(out, "--store") {
		s.accept()
	}
	_, _ = s.operator("rollout", "resume")
	_, _ = s.operator("rollout", "follow")
	if strings.Contains(out, "accept-rewind") {
		s.acceptRewind(x)
	}
}
