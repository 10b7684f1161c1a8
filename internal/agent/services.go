package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// services is the fleet's record as steps use it.
type services struct {
	store *state.Store
	node  string
	asked *asked
}

// fleet is what steps may ask: while the store is away, what the node saw last; nil where it never saw a fleet.
func (c *compiler) fleet() apply.Fleet {
	if c.store != nil {
		return services{c.store, c.config.Node.Name, &c.asked}
	}
	if c.cached == nil {
		return nil
	}
	return c.cached
}

func (s services) Services(ctx context.Context, name string) ([]render.Service, error) {
	s.asked.add(name)
	found, err := s.store.Services.Instances(ctx, name)
	return instances(name, found, nil), err
}

func (s services) Stale() string { return "" }

func (s services) Announce(ctx context.Context, one render.Service) error {
	return s.store.Services.Announce(ctx, one.Name, s.node, instance(one), false)
}

func (s services) Withdraw(ctx context.Context, name string) error {
	return s.store.Services.Withdraw(ctx, name, s.node)
}

// instance is a service as the fleet's record has it.
func instance(one render.Service) state.Service {
	return state.Service{Address: one.Address, Addresses: one.Addresses, Port: one.Port, Tags: one.Tags}
}

// instances are a service's, sorted by node, with those nodes marked that do not answer.
func instances(name string, byNode map[string]state.Service, away map[string]bool) []render.Service {
	var out []render.Service
	for node, s := range byNode {
		out = append(out, render.Service{
			Name: name, Node: node, Address: s.Address, Addresses: s.Addresses, Port: s.Port, Tags: s.Tags,
			Ready: !s.Ready.IsZero(), Why: s.Why, Lost: away[node],
		})
	}
	slices.SortFunc(out, func(a, b render.Service) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// asked are the services that a pull read: templates and expressions, steps that wait.
type asked struct {
	mu    sync.Mutex
	names map[string]bool
}

func (a *asked) add(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.names == nil {
		a.names = map[string]bool{}
	}
	a.names[name] = true
}

func (a *asked) sorted() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.names))
}

// cachedFleet is the fleet as the node saw it last, for steps that ask while its record is away.
type cachedFleet struct {
	view render.View
	at   time.Time
}

var errAway = errors.New("etcd is away")

func (k *cachedFleet) Services(_ context.Context, name string) ([]render.Service, error) {
	return k.view.Services[name], nil
}

func (k *cachedFleet) Announce(context.Context, render.Service) error { return errAway }
func (k *cachedFleet) Withdraw(context.Context, string) error         { return errAway }

func (k *cachedFleet) Stale() string {
	return fmt.Sprintf(
		"as this host saw the fleet %s ago, at %s: etcd is away",
		max(0, time.Since(k.at)).Round(time.Second),
		k.at.Format(time.RFC3339),
	)
}

// CachedView is the fleet as a node saw it last, and when that was; the time is zero where it never saw one. It serves
// while the fleet's record is away.
func CachedView(stateDir string) (render.View, time.Time, error) {
	var v render.View
	local, err := state.LoadLocal(stateDir)
	if err != nil {
		return v, time.Time{}, err
	}
	if err := state.LoadView(stateDir, &v); err != nil || v.Nodes == nil {
		return v, time.Time{}, err
	}
	return v, local.LastPull, nil
}

// lastView is what serves while the fleet's record is away, and says so once.
func (c *compiler) lastView() (render.View, error) {
	if c.cached != nil {
		return c.cached.view, nil
	}
	v, at, err := CachedView(c.config.Paths.State)
	if err != nil || at.IsZero() {
		return v, err
	}
	c.cached = &cachedFleet{v, at}
	if !c.quiet && (len(v.Nodes) > 1 || len(v.Services) > 0) {
		c.out.warn(fmt.Errorf("what is read of other nodes and of services is stale: %s", c.cached.Stale()))
	}
	return v, nil
}
