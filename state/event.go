package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// Event is something that happened in the fleet, or outside of it: a step failed, an expression of a trigger became
// true, a monitoring system sent an alert.
type Event struct {
	ID   string    `json:"id"`   // unique in the fleet; ids sort by the time at which they were made
	Name string    `json:"name"` // a path: pullet/step/failed
	By   string    `json:"by"`   // the host that told the fleet of it
	Time time.Time `json:"time"` // when it happened, by the clock of that host
	// Hosts are what it is about: names, addresses or fully qualified names of nodes. None: it is about no host.
	Hosts []string       `json:"hosts,omitempty"`
	Data  map[string]any `json:"data,omitempty"` // what is known of it: plain data as JSON has it
	// Dedupe names what happened: of events with the same name and the same Dedupe one counts within DedupeTime.
	Dedupe string `json:"dedupe,omitempty"`
	// Chain are the runs of reactions that caused it, the first one first.
	Chain []Cause `json:"chain,omitempty"`
}

// Cause is a run of a reaction that caused an event.
type Cause struct {
	Run      string `json:"run"`      // its id
	Reaction string `json:"reaction"` // its name
}

// The bounds of an event.
const (
	MaxEventName = 200      // bytes of a name
	MaxEventData = 16 << 10 // bytes of data as JSON
	maxEventDeep = 8        // lists and objects in each other in data: other records have it deeper
	maxEvent     = 32 << 10 // bytes of all of it as JSON
	MaxChain     = 8        // runs of reactions that cause each other
	maxAbout     = 200      // hosts of an event
)

// DedupeTime is how long an event keeps others with the same Dedupe from counting.
const DedupeTime = 24 * time.Hour

// CheckEventName says what is wrong with the name of an event; nil: nothing.
func CheckEventName(name string) error {
	if !safetext.EventName(name) {
		return fmt.Errorf("%s is no name of an event: expected a path such as backup/failed, of letters, digits and "+
			"_ . : - in words between slashes, and %d bytes at most", quoted(name), MaxEventName)
	}
	return nil
}

// Check says what is wrong with an event; nil: nothing.
func (e *Event) Check() error {
	var c checks
	c.unless(e.ID != "" && safetext.Word(e.ID) && len(e.ID) <= 80, "%s is no id of an event", quoted(e.ID))
	c.also(CheckEventName(e.Name))
	c.node(e.By)
	c.times(e.Time)
	c.unless(len(e.Hosts) <= maxAbout, "it is about %d hosts, of %d at most", len(e.Hosts), maxAbout)
	for _, host := range e.Hosts {
		c.unless(safetext.Address(host) || safetext.Host(host), "%s is neither a name nor an address of a host", quoted(host))
	}
	data, err := json.Marshal(e.Data)
	c.unless(err == nil && len(data) <= MaxEventData, "its data has %d bytes, of %d at most", len(data), MaxEventData)
	c.unless(depth(data) <= maxEventDeep, "its data is deeper than %d levels", maxEventDeep)
	c.unless(len(e.Dedupe) <= MaxEventName && !safetext.Obeyed(e.Dedupe), "dedupe: %s is not one line of %d bytes at most",
		quoted(e.Dedupe), MaxEventName)
	c.unless(len(e.Chain) <= MaxChain, "its chain has %d runs of reactions, of %d at most", len(e.Chain), MaxChain)
	for _, cause := range e.Chain {
		c.unless(cause.Run != "" && safetext.Word(cause.Run), "%s is no run of a reaction", quoted(cause.Run))
		c.unless(len(cause.Reaction) <= MaxEventName && !safetext.Obeyed(cause.Reaction), "%s is no reaction",
			quoted(cause.Reaction))
	}
	c.unless(c.err != nil || e.Size() <= maxEvent, "it has %d bytes, of %d at most", e.Size(), maxEvent)
	return c.err
}

// Size is about how many bytes the event has as JSON.
func (e Event) Size() int {
	data, _ := json.Marshal(e) // it was checked
	return len(data)
}

// EventWord makes a word of an event's name of any text, such as the name of an alert.
func EventWord(text string) string {
	word := strings.Map(func(r rune) rune {
		if safetext.EventName("x"+string(r)+"x") && r != '/' {
			return r
		}
		return '_'
	}, safetext.Cut(text, 100))
	if word = strings.Trim(word, " .:-"); word == "" {
		return "_"
	}
	return word
}
