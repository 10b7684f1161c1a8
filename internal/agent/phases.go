package agent

import (
	"sync"
	"time"
)

// Phase is a part of a pull. Phases come one after another and leave nothing out: each begins when the one before ends.
type Phase struct {
	Name         PhaseName
	Began, Ended time.Time
}

// PhaseName says what a pull does in a phase. A pull may come to the same one several times.
type PhaseName string

// The phases, in the order in which a pull comes to them. Not every pull comes to all.
const (
	PhaseJoin    PhaseName = "join"    // the fleet: its record is opened, this host registers
	PhaseFetch   PhaseName = "fetch"   // the repositories
	PhaseAgree   PhaseName = "agree"   // with the fleet on a version
	PhaseCompile PhaseName = "compile" // the version for this host
	PhaseWait    PhaseName = "wait"    // for this host's turn
	PhaseApply   PhaseName = "apply"   // steps and validations, with their waits
	PhasePublish PhaseName = "publish" // what came of it
)

// phases are those of one pull. Its methods may be called by several goroutines.
type phases struct {
	watch func(PhaseName) // sees each as it begins; may be nil
	beats func(PhaseName) // the same, also each time that a phase goes on; may be nil

	mu   sync.Mutex
	past []Phase
	now  Phase // without a name: none yet
}

// begin ends the phase before; a phase that goes on is still the same one.
func (p *phases) begin(name PhaseName) {
	p.mu.Lock()
	now, same := time.Now(), name == p.now.Name
	if !same {
		p.past, p.now = p.until(now), Phase{Name: name, Began: now}
	}
	p.mu.Unlock()
	if p.beats != nil && name != "" {
		p.beats(name)
	}
	if p.watch != nil && name != "" && !same {
		p.watch(name)
	}
}

// until are the phases up to now; p.mu is held.
func (p *phases) until(now time.Time) []Phase {
	if p.now.Name == "" {
		return p.past
	}
	return append(p.past, Phase{p.now.Name, p.now.Began, now})
}

// soFar are the phases up to now.
func (p *phases) soFar() []Phase {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until(time.Now())
}

// end ends the last one, and returns all.
func (p *phases) end() []Phase {
	p.begin("")
	return p.past
}
