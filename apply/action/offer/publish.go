package offer

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// Publish tells the fleet that this host offers a service, for services "NAME" in templates and for service.wait. That
// it is announced and that it is ready are two facts: the step announces it; it is ready from the end of the first run
// in which the host is validated, and no longer when a validation fails.
//
// Example:
//
//	steps:
//	  - name: offer db
//	    action: service.publish
//	    parameters: {name: db, port: 5432, tags: [primary]}
type Publish struct {
	Name string `yaml:"name,required"` // of the service: letters, digits and dashes
	Port int    `yaml:"port"`          // on which it answers
	// whose first address is the one to use; default: that of the default route
	Interface string         `yaml:"interface"`
	Address   string         `yaml:"address"` // the one to use, instead of an interface's
	Tags      render.Strings `yaml:"tags"`    // words for those who choose among instances

	service render.Service
}

// Bind works the addresses out.
func (a *Publish) Bind(b apply.Binding) error {
	if !render.ValidServiceName(a.Name) {
		return apply.BadParam("name", "%q: a service is named with letters, digits and dashes", a.Name)
	}
	if a.Port < 0 || a.Port > 65535 {
		return apply.BadParam("port", "%d is no port", a.Port)
	}
	if a.Address != "" && !safetext.Address(a.Address) {
		return apply.BadParam("address", "%q is neither an IP address nor the name of a host", a.Address)
	}
	if a.Address != "" && a.Interface != "" {
		return apply.BadParam("interface", "address and interface exclude each other: keep one")
	}
	address, addresses := b.Catalog.Addresses(a.Interface)
	if a.Address != "" {
		address = a.Address
	}
	a.service = render.Service{
		Name: a.Name, Node: b.Catalog.Node.Name, Address: address, Addresses: addresses, Port: a.Port,
		Tags: slices.Clone(a.Tags),
	}
	return nil
}

// Manages is the instance of the service.
func (a *Publish) Manages() []apply.Resource {
	return []apply.Resource{
		{ID: "service " + a.Name, Absent: "service.withdraw", Params: map[string]any{"name": a.Name}},
	}
}

// Check compares the fleet's record.
func (a *Publish) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	if a.Interface != "" && a.service.Address == "" {
		return apply.Change{}, fmt.Errorf("interface %s has no address on this host", a.Interface)
	}
	have, err := ownService(ctx, h, a.Name, a.service.Node)
	switch {
	case err != nil:
		return apply.Change{}, err
	case have == nil:
		return apply.Change{Summary: "announce " + at(a.service)}, nil
	}
	want := a.service
	want.Ready, want.Why = have.Ready, have.Why
	if reflect.DeepEqual(plainService(want), plainService(*have)) {
		return apply.Change{State: serviceState(*have)}, nil
	}
	return apply.Change{Summary: "announce " + at(want) + " instead of " + at(*have)}, nil
}

// plainService makes what came from YAML and what came from JSON comparable.
func plainService(s render.Service) render.Service {
	s.Addresses = nil // what else the host has is no matter of this step
	if len(s.Tags) == 0 {
		s.Tags = nil
	}
	return s
}

func serviceState(s render.Service) string {
	if s.Ready {
		return "ready"
	}
	return "announced"
}

func at(s render.Service) string {
	if s.Port == 0 {
		return s.Address
	}
	return fmt.Sprintf("%s:%d", s.Address, s.Port)
}

// Apply announces it.
func (a *Publish) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	if h.Fleet == nil {
		return apply.Output{}, errNoFleet
	}
	return apply.Output{State: "announced"}, away(h.Fleet.Announce(ctx, a.service))
}

// errNoFleet: what is said of services needs etcd. That it is away is no fault of the step.
var errNoFleet = &apply.PendingError{
	Reason: "the fleet's record cannot be reached, in which services are kept: the next pull looks again",
}

// away makes an error of the fleet's record what it is: nothing that the step can help.
func away(err error) error {
	if err == nil {
		return nil
	}
	return &apply.PendingError{Reason: errNoFleet.Reason + " (" + err.Error() + ")"}
}

// ownService is the node's instance; nil where there is none.
func ownService(ctx context.Context, h *apply.Host, name, node string) (*render.Service, error) {
	if h.Fleet == nil {
		return nil, errNoFleet
	}
	all, err := h.Fleet.Services(ctx, name)
	if err != nil {
		return nil, away(err)
	}
	for _, s := range all {
		if s.Node == node {
			return &s, nil
		}
	}
	return nil, nil
}

// Withdraw takes back that this host offers a service.
//
// Example:
//
//	steps:
//	  - name: no db any longer
//	    action: service.withdraw
//	    parameters: {name: db}
type Withdraw struct {
	Name string `yaml:"name,required"` // of the service

	node string
}

// Bind checks the name.
func (a *Withdraw) Bind(b apply.Binding) error {
	if !render.ValidServiceName(a.Name) {
		return apply.BadParam("name", "%q: a service is named with letters, digits and dashes", a.Name)
	}
	a.node = b.Catalog.Node.Name
	return nil
}

// Check looks whether the fleet knows the instance.
func (a *Withdraw) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	have, err := ownService(ctx, h, a.Name, a.node)
	if have == nil || err != nil {
		return apply.Change{}, err
	}
	return apply.Change{Summary: "withdraw " + at(*have)}, nil
}

// Apply withdraws it.
func (a *Withdraw) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	return apply.Output{}, away(h.Fleet.Withdraw(ctx, a.Name))
}
