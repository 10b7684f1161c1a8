package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// skippedHead is the newest commit that a node saw and that the fleet does not take.
type skippedHead struct {
	state.Skipped
	Why string `json:"why"`
	state.Remedy
}

// skippedOf says why the fleet is not at the newest commit; nil where it is, or where none is known.
func skippedOf(o *state.Overview) *skippedHead {
	if o.Skipped == nil || o.Current == nil { // without a version there is nothing that it is newer than
		return nil
	}
	out := &skippedHead{Skipped: *o.Skipped, Why: o.Skipped.Reason}
	switch current := o.Current; o.Skipped.Kind {
	case state.SkipBad:
		out.Why, out.Remedy = "it halted or was undone before (pullet rollout history)", state.Itself(
			"a newer commit is followed",
		)
		if current.Previous == out.ID {
			out.Why = "undone by " + current.By + reasonSuffix(current.Reason)
		}
		if o.Held {
			out.Remedy = state.Act(out.Clear + " after: pullet rollout follow")
		}
	case state.SkipHeld:
		out.Why = "the fleet is held at " + current.String() + " by " + current.By + until(
			current.Until,
		) + reasonSuffix(current.Reason)
		out.Remedy = state.Act("pullet rollout follow")
	case state.SkipCanaries:
		out.Why, out.Remedy = "newer commits wait for the canaries of "+current.String(), lock.RemedyOf(o, render.CanaryGroup)
		if !out.Itself() {
			out.Remedy = state.Act(out.Clear + "; to let newer commits through at once: pullet rollout fail")
		}
	case state.SkipLacking:
		out.Remedy = state.Act("start a host that offers it, by base/services.yaml or service.publish")
	case state.SkipElsewhere: // rollout start compiles it for the host on which it is typed
		out.Remedy = state.Act(
			"push a commit that fixes it, or roll it out anyway, on " + out.By + ": pullet rollout start " + out.revisions(),
		)
	case state.SkipHost:
		out.Remedy = state.Act("fix it on " + out.By + ", or pull on another host")
	default:
		out.Remedy = state.Act("push a commit that fixes it")
	}
	return out
}

// revisions name the commits as rollout start takes them.
func (s *skippedHead) revisions() string {
	if len(s.Commits) == 1 {
		return state.Short(s.Commits[0].Commit)
	}
	var out []string
	for _, c := range s.Commits {
		out = append(out, c.Repo+"="+state.Short(c.Commit))
	}
	return strings.Join(out, " ")
}

// print says which commit is skipped, who saw it, why, and what helps.
func (s *skippedHead) print(w io.Writer) {
	if s == nil {
		return
	}
	name := ""
	if s.Release != "" {
		name = s.Release + ", "
	}
	fmt.Fprintf(
		w,
		"not followed: %s%s\n  seen by %s %s: %s; %s\n",
		name,
		strings.Join(s.Described(), "; "),
		s.By,
		when(w, s.At),
		s.Why,
		s.Clear,
	)
}
