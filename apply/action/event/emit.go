// Package emit tells the fleet that something happened, for reactions that answer it.
package emit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// Actions lists the actions of this package.
func Actions() []apply.Spec {
	return []apply.Spec{{
		Name: "event.emit", Summary: "an event, which reactions of the fleet answer", NoFiles: true, KeepsHost: true,
		New: func() apply.Action { return &Emit{} },
		Shows: apply.Shown{
			Params: []string{"name", "data", "dedupe", "hosts"}, Where: "all hosts of the fleet read its events",
			Instead: "let the job of the reaction read the secret itself: it is compiled for the host that it runs on",
		},
	}}
}

// Emit tells the fleet that something happened: reactions (reactions/**.yaml) that answer the event's name count it. It
// changes nothing on the host. The host keeps the event until the fleet has it, and says itself when that was and which
// reaction caused it.
//
// All hosts of the fleet read it, so that a step with a secret, or with sensitive: true, is refused.
//
// It is told once for each version and set of parameters, and again when something changes that the step watches.
//
// Example:
//
//	steps:
//	  - name: ask for a backup
//	    action: event.emit
//	    parameters:
//	      name: backup/wanted
//	      data: {directory: /srv, why: "{{ server.name }} was installed"}
//	      dedupe: "{{ server.name }}"
type Emit struct {
	Name string         `yaml:"name,required"` // of the event, a path such as backup/failed
	Data map[string]any `yaml:"data"`          // what is known of it: texts, numbers, lists and maps
	// Names what happened. Of events with the same name and dedupe one counts within a day.
	Dedupe string         `yaml:"dedupe"`
	Hosts  render.Strings `yaml:"hosts"` // that it is about, by name or address; default: this host

	event apply.EmittedEvent
}

// The bounds of what an event may say, which the fleet's record has, too.
const (
	maxData   = 16 << 10 // bytes of JSON
	maxHosts  = 200
	maxDedupe = 200
)

// Bind checks the parameters.
func (a *Emit) Bind(b apply.Binding) error {
	if !safetext.EventName(a.Name) {
		return apply.BadParam("name", "%q is no name of an event: write a path such as backup/failed", a.Name)
	}
	if len(a.Dedupe) > maxDedupe || safetext.Obeyed(a.Dedupe) {
		return apply.BadParam("dedupe", "is not one line of %d bytes at most", maxDedupe)
	}
	if len(a.Hosts) > maxHosts {
		return apply.BadParam("hosts", "names %d hosts, of %d at most", len(a.Hosts), maxHosts)
	}
	for _, host := range a.Hosts {
		if !safetext.Host(host) && !safetext.Address(host) {
			return apply.BadParam("hosts", "%q is neither a name nor an address of a host", host)
		}
	}
	if b.Step.Sensitive {
		return apply.BadParam("data", "a sensitive step tells no event: all hosts of the fleet read it")
	}
	data, err := json.Marshal(a.Data)
	if err != nil {
		return apply.BadParam("data", "is not what JSON can say: %v", err)
	}
	if len(data) > maxData {
		return apply.BadParam("data", "has %d bytes, of %d at most", len(data), maxData)
	}
	a.event = apply.EmittedEvent{Name: a.Name, Data: a.Data, Dedupe: a.Dedupe, Hosts: a.Hosts}
	if len(a.Hosts) == 0 {
		a.event.Hosts = []string{b.Catalog.Node.Name}
	}
	return nil
}

// Unchecked is true: whether an event was told cannot be seen on the host.
func (a *Emit) Unchecked() bool { return true }

// Check always finds an event to tell.
func (a *Emit) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "tell " + a.Name}, nil
}

// errNobody: who runs the steps keeps no events.
var errNobody = errors.New("nobody here tells the fleet of events: it is told by pullet pull and by the agent")

// Apply has the event kept, and told.
func (a *Emit) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	if h.Emit == nil {
		return apply.Output{}, errNobody
	}
	if err := h.Emit(ctx, a.event); err != nil {
		return apply.Output{}, fmt.Errorf("the event cannot be kept: %w", err)
	}
	return apply.Output{}, nil
}

// Reaction is what React does.
func (a *Emit) Reaction() string { return "tell again" }

// React tells of the event again because something that it watches changed.
func (a *Emit) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	return a.Apply(ctx, h, apply.Change{})
}
