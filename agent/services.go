package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// services is the fleet's record as steps use it.
type services struct {
	store *state.Store
	node  string
}

// fleet is what steps may ask; nil while the store is away.
func (p *pull) fleet() apply.Fleet {
	if p.store == nil {
		return nil
	}
	return services{p.store, p.config.Node.Name}
}

func (s services) Services(ctx context.Context, name string) ([]render.Service, error) {
	found, err := s.store.Services(ctx, name)
	return instances(name, found), err
}

func (s services) Announce(ctx context.Context, one render.Service) error {
	return s.store.Announce(ctx, one.Name, s.node, state.Service{
		Address: one.Address, Addresses: one.Addresses, Port: one.Port, Tags: one.Tags, Announced: time.Now().UTC(),
	})
}

func (s services) Withdraw(ctx context.Context, name string) error {
	return s.store.Withdraw(ctx, name, s.node)
}

// instances are a service's, sorted by node.
func instances(name string, byNode map[string]state.Service) []render.Service {
	var out []render.Service
	for node, s := range byNode {
		out = append(out, render.Service{
			Name: name, Node: node, Address: s.Address, Addresses: s.Addresses, Port: s.Port, Tags: s.Tags, Ready: !s.Ready.IsZero(),
		})
	}
	slices.SortFunc(out, func(a, b render.Service) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// setReady tells the fleet whether what this node offers works: when its last run was validated.
func (p *pull) setReady(ctx context.Context, ready bool) error {
	var errs []error
	for id := range p.journal.Managed().Things {
		if name, ok := strings.CutPrefix(id, "service "); ok {
			errs = append(errs, p.store.SetReady(ctx, name, p.config.Node.Name, ready))
		}
	}
	return errors.Join(errs...)
}
