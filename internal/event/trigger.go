package event

import (
	"time"

	"github.com/pullet/pullet/internal/durable"
)

// Edge is what a host knows of the expression of a trigger.
type Edge struct {
	Since  time.Time `json:"since,omitzero"` // since when it is true, in a row; zero: it is not
	Raised bool      `json:"raised,omitempty"`
}

// Judge takes in whether the expression is true at a time, and reports that the event is raised: when it has been true
// for so long, once until it is false.
func (e Edge) Judge(holds bool, now time.Time, lasts time.Duration) (Edge, bool) {
	if !holds {
		return Edge{}, false
	}
	if e.Since.IsZero() || e.Since.After(now) { // the clock went back
		e.Since = now
	}
	raises := !e.Raised && now.Sub(e.Since) >= lasts
	e.Raised = e.Raised || raises
	return e, raises
}

// Edges are what a host knows of expressions, by name.
type Edges map[string]Edge

// ReadEdges reads what the host knows. What is damaged begins anew: where an expression is true, its event is raised
// again.
func ReadEdges(file string) Edges {
	out := Edges{}
	if err := durable.ReadJSON(file, &out); err != nil || out == nil {
		return Edges{}
	}
	return out
}

// Save writes what the host knows.
func (e Edges) Save(file string) error { return durable.WriteJSON(file, e) }
