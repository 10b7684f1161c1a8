package agent

import (
	"errors"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// problem is an error that says apart what is wrong and what helps.
type problem interface {
	error
	What() string
	Clear() string
}

// isRefusal reports that verification refused what a repository offers: an operator or another commit has to end that. Everything else that keeps
// a node from following its repository may end by itself.
func isRefusal(err error) bool {
	_, rewritten := errors.AsType[*puller.RewrittenError](err)
	_, unusable := errors.AsType[*puller.UnusableError](err)
	return rewritten || unusable
}

// noteProblems files why repositories could not be followed, in the outcome and in the node's own record, which says since when.
func (p *pull) noteProblems(own []puller.Head) {
	var repos []string
	for _, h := range own {
		repos = append(repos, h.Repo)
	}
	p.local.OnlyTroubles(repos)
	for _, h := range own {
		if h.Problem == nil {
			p.local.NoTrouble(h.Repo)
			continue
		}
		p.out.problem(h.Problem)
		t := troubleOf(h.Problem)
		if t.Kind == state.WaitStale {
			t.Why += "; the node goes on with commit " + state.Short(h.Commit)
		}
		p.local.Trouble(h.Repo, t)
	}
}

// troubleOf is what the node's record says of an error that keeps it from following a repository.
func troubleOf(err error) state.Trouble {
	t := state.Trouble{Kind: state.WaitStale, Why: firstLine(err)}
	if isRefusal(err) {
		t.Kind = state.WaitRefused
	}
	if says, ok := errors.AsType[problem](err); ok {
		t.Why, t.Clear = says.What(), says.Clear()
	}
	return t
}

// nothingFetched files why a repository has no commit at all that a node could go on with. What verification refused is an outcome, and anything else
// an error.
func (p *pull) nothingFetched(err error) error {
	unusable, ok := errors.AsType[*puller.UnusableError](err)
	if !ok {
		return err
	}
	p.out.Refused = append(p.out.Refused, unusable)
	p.local.Trouble(unusable.Repo, troubleOf(unusable))
	return nil
}

// saysTrouble puts into a status why the node does not follow its repositories.
func (p *pull) saysTrouble(st *state.Status) {
	if t, ok := p.local.WorstTrouble(); ok {
		st.Kind, st.Reason, st.Remedy, st.Since = t.Kind, t.Why, state.Act(t.Clear), t.Since
	}
}
