package apply

import (
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// The ordering modes: how a step stands to the others of its file beside what it refers to.
const (
	oneByOne = "ansible"  // after the step before it; the default
	atOnce   = "justdoit" // after nothing else
	implied  = "genius"   // after what it obviously needs: its directory, its package, its user
)

// fileOrder is why a step comes after the one before it in its file.
const fileOrder = "order of the file"

// behindJob is why a step comes after the conditions of a job before its own.
const behindJob = "continue of the job"

func (s *boundStep) ordering() string {
	if s.Options.Ordering == "" {
		return oneByOne
	}
	return s.Options.Ordering
}

// sort puts the steps into an order in which each comes after all that it has to, and otherwise as they stand in the
// files: jobs first, then validations. It returns the loop instead when steps have to come after each other.
func (p *Program) sort() (loop []*boundStep) {
	p.imply()
	p.behindJobs()
	if p.steps, loop = order(p.steps); loop != nil {
		return loop
	}
	last := map[*render.Job]*boundStep{}
	for i, s := range p.steps {
		s.index = i
		if s.ordering() != oneByOne {
			continue
		}
		if before := last[s.job]; before != nil {
			s.after = append(s.after, edge{before, fileOrder})
		}
		last[s.job] = s
	}
	return nil
}

// behindJobs adds the edges of steps whose jobs come after one with a continue, which holds all that follows.
func (p *Program) behindJobs() {
	var closing []*boundStep
	for _, s := range p.steps {
		for _, c := range closing {
			if c.job != s.job {
				s.after = append(s.after, edge{c, behindJob})
			}
		}
		if s.ClosesJob() && s.Conditions.Continue != nil {
			closing = append(closing, s)
		}
	}
}

// order is a depth-first sort along the edges.
func order(steps []*boundStep) (sorted, loop []*boundStep) {
	done := map[*boundStep]bool{}
	var path []*boundStep
	var visit func(s *boundStep) bool
	visit = func(s *boundStep) bool {
		if i := slices.Index(path, s); i >= 0 {
			loop = append(slices.Clone(path[i:]), s)
			return false
		}
		if done[s] {
			return true
		}
		path = append(path, s)
		for _, e := range s.after {
			if !visit(e.step) {
				return false
			}
		}
		path, done[s] = path[:len(path)-1], true
		sorted = append(sorted, s)
		return true
	}
	for _, s := range steps {
		if !visit(s) {
			return nil, loop
		}
	}
	return sorted, nil
}

// cycleError shows a loop of steps with the place of each.
func cycleError(loop []*boundStep) *render.Error {
	parts := make([]string, len(loop))
	for i, s := range loop {
		parts[i] = s.ID() + " (" + s.Pos.String() + ")"
	}
	return loop[0].ErrorAt(loop[0].Pos, "these steps require each other: %s", strings.Join(parts, " -> "))
}

// imply adds the edges of steps whose order is left to what they obviously need. An edge against what the files say is
// left out.
func (p *Program) imply() {
	provided := map[string][]*boundStep{}
	for _, s := range p.steps {
		for _, what := range s.spec.Provides.of(s.Params) {
			provided[what] = append(provided[what], s)
		}
	}
	for _, s := range p.steps {
		if s.ordering() != implied {
			continue
		}
		for _, need := range s.spec.Needs.of(s.Params) {
			for _, t := range provided[need] {
				if t != s && t.job.Validation == s.job.Validation && !t.comesAfter(s) {
					s.after = append(s.after, edge{t, "implied: " + need})
				}
			}
		}
	}
}

// comesAfter reports that a step has to come after another, directly or not.
func (s *boundStep) comesAfter(other *boundStep) bool {
	seen := map[*boundStep]bool{}
	var visit func(s *boundStep) bool
	visit = func(s *boundStep) bool {
		if seen[s] {
			return false
		}
		seen[s] = true
		return slices.ContainsFunc(s.after, func(e edge) bool { return e.step == other || visit(e.step) })
	}
	return visit(s)
}

// Edge is one reason why a step comes after another.
type Edge struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Why    string `json:"why"`
}

// Graph is what runs after what and why, and the steps in the order in which they run one by one.
func (p *Program) Graph() (steps []string, edges []Edge) {
	for _, s := range p.steps {
		steps = append(steps, s.ID())
		for _, e := range s.after {
			edges = append(edges, Edge{e.step.ID(), s.ID(), e.why})
		}
	}
	return steps, edges
}
