package apply

import (
	"cmp"
	"slices"

	"github.com/pullet/pullet/apply/claim"
	"github.com/pullet/pullet/render"
)

// Claimer is implemented by actions that say, before anything runs, what they make of the host. Steps that contradict
// each other are refused when they are bound.
type Claimer interface {
	// Claims returns what the step wants. It is called after Bind, and without Bind for a step whose parameters wait
	// for other steps.
	Claims() []claim.Claim
}

// claimant is a step with what it makes of the host.
type claimant struct {
	*render.Step
	job      *render.Job
	act      any                      // the action; nil: it has mistakes
	instance bool                     // of a forEach
	idle     bool                     // it does not run, whatever a run finds
	needs    func(kind string) string // the steps that it refers to with a kind of requisite

	claims []claim.Claim
	hides  bool // something that it wants is not shown
}

// contradictions finds the steps that contradict each other: one mistake, or warning, for two steps, and at most so
// many.
func contradictions(steps []*claimant, most int) (mistakes, warnings render.ErrorList) {
	claims := make([][]claim.Claim, len(steps))
	for i, s := range steps {
		s.claim()
		claims[i] = s.claims
	}
	found := map[[2]int]bool{}
	all := claim.Find(claims, func(c claim.Contradiction) bool {
		two := [2]int{c.First, c.Second}
		if found[two] {
			return true
		}
		found[two] = true
		if e := contradiction(steps[c.First], steps[c.Second], c); e.Severity == render.Warning {
			warnings = append(warnings, e)
		} else {
			mistakes = append(mistakes, e)
		}
		return len(found) < most
	})
	if !all {
		warnings = append(warnings, &render.Error{
			Pos: steps[0].Pos, Severity: render.Warning,
			Message: "this host has too many steps on the same things: not all of them were compared for contradictions",
		})
	}
	return mistakes, warnings
}

// claim asks the action what it makes of the host, as far as that is known.
func (s *claimant) claim() {
	act, ok := s.act.(Claimer)
	if !ok || s.idle {
		return
	}
	s.claims = act.Claims()
	for i := range s.claims {
		c := &s.claims[i]
		c.Hidden = c.Hidden || s.Sensitive || s.Secret
		s.hides = s.hides || c.Hidden
	}
	if s.Waits() {
		s.claims = claim.Known(s.claims, func(text string) bool {
			_, known := render.Known(text)
			return known
		})
	}
}

// at returns the position of a step in messages.
func (s *claimant) at() render.Position { return s.Params.Position("name", s.Pos) }

// contradiction returns the mistake of two steps, or a warning where something may keep them apart. The source of a
// step that has something to hide is not quoted.
func contradiction(first, second *claimant, c claim.Contradiction) *render.Error {
	e := second.ErrorAt(second.at(), "%s: %s contradicts %s in step %s (%s)",
		c.B.Title(), c.B.Text(), c.Against(), first.ID(), first.at())
	if second.hides {
		e.Excerpt = ""
	}
	if e.Hint = apart(first, second); e.Hint != "" {
		e.Severity = render.Warning
	}
	e.Hint = cmp.Or(e.Hint, "keep one of them")
	return e
}

// apart returns what must hold for two steps never to run in one pull, or "" where nothing can keep them apart.
func apart(a, b *claimant) string {
	related := func(kind string) bool { return a.needs(kind) != b.needs(kind) }
	switch {
	case differ(a, b, a.Conditions.When, b.Conditions.When),
		a.job != b.job && differ(a, b, a.job.Conditions.When, b.job.Conditions.When):
		return "their conditions must exclude each other"
	case !sameHosts(a.Options.Target, b.Options.Target):
		return "their targets must exclude each other"
	case a.runs() != b.runs() || a.runs() == "once",
		slices.ContainsFunc(triggers, related):
		return "they must never run in the same pull"
	}
	return ""
}

// runs returns how often the step runs.
func (s *claimant) runs() string { return cmp.Or(s.Options.Runs, "always") }

// differ reports whether one of two conditions may hold without the other.
func differ(a, b *claimant, one, other *render.Condition) bool {
	switch {
	case one == nil && other == nil:
		return false
	case one == nil || other == nil || one.Expression.Text != other.Expression.Text:
		return true
	}
	return a.instance || b.instance // the conditions may read their items
}

// sameHosts reports whether the same hosts take two steps for all.
func sameHosts(a, b *render.StepTarget) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Limit == b.Limit && a.Hosts.Text == b.Hosts.Text
}
