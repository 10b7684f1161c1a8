package state

import (
	"errors"
	"fmt"
	"time"
)

// Begun are the signed commands with which a node began. It runs each once, also where the fleet's record no longer
// says that it did: who can write there could give a signed command again.
type Begun struct {
	Until map[string]time.Time `json:"until,omitempty"` // by id, when the command ends
	Over  time.Time            `json:"over,omitzero"`   // the latest end of those that were forgotten
}

// Again says why a node does not begin with a command: it did before. What ended before a command that is forgotten may
// be forgotten, too; it counts again where the clock of the host went back.
func (b Begun) Again(c Command) error {
	if _, known := b.Until[c.ID]; known {
		return errors.New("this host began with it before, and a command runs once: to give it again: pullet run")
	}
	if !c.Until.After(b.Over) {
		return fmt.Errorf("it ended at %s, and the clock of this host went back since: pullet doctor looks at the clock; "+
			"to give it again: pullet run", c.Until.UTC().Format(time.RFC3339))
	}
	return nil
}

// With are those and one more. What ended long enough ago that no signature counts is forgotten.
func (b Begun) With(c Command, now time.Time) Begun {
	next := Begun{map[string]time.Time{c.ID: c.Until}, b.Over}
	for id, until := range b.Until {
		if (Command{At: now, Until: until}).counts(now) == nil {
			next.Until[id] = until
		} else if until.After(next.Over) {
			next.Over = until
		}
	}
	return next
}
