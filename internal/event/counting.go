package event

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/state"
)

// counting counts an event in a group.
type counting struct {
	*state.Group
	changed
	now  time.Time // by the fleet's clock
	most int       // about how many bytes the group has at most
}

const (
	// plenty is the number of hosts from which on a group says little of each: 10,000 have to fit into a request.
	plenty = 500
	// judged is about how many bytes a tally gets when it is judged.
	judged = 40
)

// tally counts an event in a tally. A group that is full takes no further hosts: it says how many occurrences it left.
func (c *counting) tally(host string, e state.Event, nodes, unknown []string) {
	at, has := slices.BinarySearchFunc(c.Tallies, host, func(t state.Tally, host string) int {
		return strings.Compare(t.Host, host)
	})
	full := c.size > c.most
	if !has && full && c.full && host != "" {
		c.Dropped++
		return
	}
	if !has {
		c.Tallies = slices.Insert(c.Tallies, at, state.Tally{Host: host})
		c.size += sizeOf(c.Tallies[at]) + judged
	}
	was := c.Tallies[at]
	t := Count(was, c.now, 1) // and not at e.Time: the clock of its host may be wrong
	t.Hosts, t.Unknown = add(t.Hosts, maxFrom, nodes...), add(t.Unknown, maxFrom, unknown...)
	brief := host != "" && (c.size > c.most/4 || len(c.Tallies) > plenty)
	if brief {
		t.Seen = coarse(t.Seen, full)
	} else if len(t.IDs) < state.MaxIDs {
		t.IDs = append(slices.Clone(t.IDs), e.ID)
	}
	t.Last = last(t.Last, e, brief)
	c.Tallies[at] = t
	c.size += sizeOf(t) - sizeOf(was)
}

// coarse says when something happened to the second; in a group that is full, all at the time of the last: none goes
// out of the window too early.
func coarse(seen []state.Seen, full bool) (out []state.Seen) {
	for _, s := range seen {
		s.At = s.At.Truncate(time.Second)
		if n := len(out); n > 0 && (full || s.At.Equal(out[n-1].At)) {
			s.N += out[n-1].N
			out = out[:n-1]
		}
		out = append(out, s)
	}
	return out
}

// last is the last occurrence: of those that reactions caused, the one with the longest chain, so that no loop goes on
// behind an event from elsewhere. In brief an occurrence without a chain is left out.
func last(have *state.Event, e state.Event, brief bool) *state.Event {
	switch {
	case have != nil && len(e.Chain) < len(have.Chain), brief && len(e.Chain) == 0:
		return have
	case brief:
		e.Data, e.Hosts, e.Dedupe = nil, nil, ""
	}
	return &e
}

// sizeOf is how many bytes a record has.
func sizeOf(v any) int {
	data, _ := json.Marshal(v) // it came from JSON
	return len(data)
}
