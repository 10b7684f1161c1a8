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

// isRefusal reports that verification refused what a repository offers: an operator or another commit has to end that.
// Everything else that keeps a node from following its repository may end by itself.
func isRefusal(err error) bool {
	_, unusable := errors.AsType[*puller.UnusableError](err)
	_, unverified := errors.AsType[*puller.UnverifiedError](err)
	return isRewrite(err) || unusable || unverified
}

// isRewrite reports that a repository offers a branch that was rewritten.
func isRewrite(err error) bool {
	_, rewritten := errors.AsType[*puller.RewrittenError](err)
	return rewritten
}

// noteProblems files why repositories could not be followed, in the outcome and in the node's own record, which says
// since when.
func (a *agreement) noteProblems(own []puller.Head) {
	a.local.OnlyTroubles(repositoriesOf(own))
	for _, h := range own {
		if h.LeftOut != nil {
			a.out.warn(h.LeftOut)
		}
		if h.Problem == nil {
			a.local.NoTrouble(h.Repo)
			continue
		}
		a.out.problem(h.Problem)
		t := troubleOf(h.Problem)
		if t.Kind == state.WaitStale {
			t.Why += "; the node goes on with commit " + state.Short(h.Commit)
		}
		a.local.Trouble(h.Repo, t)
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

// nothingFetched files why a repository has no commit at all that a node could go on with. What verification refused is
// an outcome, and anything else an error.
func (a *agreement) nothingFetched(err error) error {
	unusable, isUnusable := errors.AsType[*puller.UnusableError](err)
	unverified, isUnverified := errors.AsType[*puller.UnverifiedError](err)
	switch {
	case isUnusable:
		a.out.refuse(unusable)
		a.local.Trouble(unusable.Repo, troubleOf(unusable))
	case isUnverified:
		a.out.refuse(unverified)
		a.local.Trouble(unverified.Repo, troubleOf(unverified))
	default:
		return err
	}
	return nil
}
