package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// reactionCounts are how many reactions are at work or want attention.
type reactionCounts struct {
	AtWork  int `json:"atWork"`
	Waiting int `json:"waiting"` // they count occurrences, and are not started yet
	Paused  int `json:"paused"`
	Failed  int `json:"failed"` // their last run did
}

// failedLately is for how long a run that failed wants attention.
const failedLately = 24 * time.Hour

// counts counts reactions by their names; nil where there is nothing to be said. One that is paused is not counted as
// waiting.
func (v *reactionsView) counts() *reactionCounts {
	paused, waits, works, fails := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range v.Paused {
		paused[p.Reaction] = true
	}
	for _, l := range v.Waiting {
		if l.Occurrences > 0 && !paused[l.Reaction] {
			waits[l.Reaction] = true
		}
	}
	for _, r := range v.Runs { // the newest last
		if r.State == state.Running {
			works[r.Reaction] = true
		} else {
			fails[r.Reaction] = r.State == state.Failed
		}
	}
	c := reactionCounts{AtWork: len(works), Waiting: len(waits), Paused: len(paused)}
	for _, failed := range fails {
		if failed {
			c.Failed++
		}
	}
	if c == (reactionCounts{}) {
		return nil
	}
	return &c
}

func (c *reactionCounts) String() string {
	var parts []string
	for _, one := range []struct {
		n    int
		what string
	}{{c.AtWork, "at work"}, {c.Waiting, "wait"}, {c.Paused, "paused"}, {c.Failed, "failed"}} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	return strings.Join(parts, ", ")
}
