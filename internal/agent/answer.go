package agent

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pullet/pullet/internal/event"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// answering is what an agent, as the reactor, knows of the reactions of the version that it works on.
type answering struct {
	at    atomic.Pointer[knownVersion]
	pulls chan struct{} // there was a pull: the version may be another one, and the store
}

// knownVersion is a version with its repository.
type knownVersion struct {
	version   *state.Version
	repo      *render.Repository
	inventory render.Inventory
	nodes     int // that are registered
	sinks     []render.Sink
}

// knows notes the version that a pull works on.
func (a *answering) knows(v *state.Version, c *compiled, nodes int) {
	a.at.Store(&knownVersion{v, c.repo, c.catalog.Inventory, nodes, c.catalog.Fleet.Sinks})
	select {
	case a.pulls <- struct{}{}:
	default:
	}
}

// labels are those of the registered nodes, by name. The inventory goes before what nodes say of themselves.
func (k *knownVersion) labels(view render.View) map[string]map[string]string {
	out := map[string]map[string]string{}
	for name, node := range view.Nodes {
		if listed, ok := k.inventory[name]; ok {
			node = listed
		}
		out[name] = node.Labels
	}
	return out
}

// reactions are those of the version; none where it has mistakes, which validate names.
func (a *answering) reactions(ctx context.Context) (*knownVersion, []*render.Reaction) {
	known := a.at.Load()
	if known == nil {
		return nil, nil
	}
	all, err := known.repo.Reactions(ctx)
	if err != nil {
		return nil, nil
	}
	return known, all
}

// hears reports that a reaction answers events of a name, or a sink takes them.
func (a *answering) hears(name string) bool {
	known := a.at.Load()
	if known == nil {
		return false
	}
	_, all := a.reactions(context.Background())
	return slices.ContainsFunc(all, func(r *render.Reaction) bool { return r.Matches(name) }) ||
		slices.ContainsFunc(known.sinks, func(s render.Sink) bool { return s.Takes(name) })
}

// answerer is an agent's part in the election of the reactor.
type answerer struct{ *Agent }

// answerEvents takes part in the election of the reactor until ctx ends, on whatever store is open. A fleet without
// reactions and sinks has no reactor.
func (a answerer) answerEvents(ctx context.Context) {
	var on *state.Store
	end := func() {}
	for {
		select {
		case <-ctx.Done():
			end()
			return
		case <-a.answering.pulls:
		}
		store := a.connection.store()
		if !a.answering.needsReactor(ctx) {
			store = nil
		}
		if store == on {
			continue
		}
		end()
		if on, end = store, func() {}; store != nil {
			end = a.reactWith(ctx, store)
		}
	}
}

// reactWith takes part in the election on a store until end is called.
func (a answerer) reactWith(ctx context.Context, store *state.Store) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var atWork sync.WaitGroup
	atWork.Go(func() { a.reactor(store).Run(ctx) })
	return func() {
		cancel()
		atWork.Wait()
	}
}

// reactor is the host's part in the election of the reactor.
func (a answerer) reactor(store *state.Store) *event.Reactor {
	nodes := 0
	if known := a.answering.at.Load(); known != nil {
		nodes = known.nodes
	}
	return &event.Reactor{
		Store: store, Node: a.config.Node.Name, Log: a.logger.WithField("reactor", true), NewID: event.NewID,
		Observes: func() bool { return slices.ContainsFunc(event.FoundInRecord(), a.answering.hears) },
		Hesitate: a.outside.Chance(min(5*time.Second, spread(nodes))),
		Rules:    func(ctx context.Context) (event.Rules, error) { return a.rules(ctx, store) },
		Beside:   func(ctx context.Context, since int64, follow bool) { a.sendEvents(ctx, store, since, follow) },
	}
}

// rules are the reactions of the fleet's version, if this host is at it.
func (a answerer) rules(ctx context.Context, store *state.Store) (event.Rules, error) {
	known, all := a.answering.reactions(ctx)
	current, _, err := store.Versions.Current(ctx)
	if err != nil {
		return event.Rules{}, err
	}
	if known == nil || !known.version.Same(current) {
		return event.Rules{}, event.ErrBehind
	}
	fleet := &fleetSeen{}
	fleet.look = sync.OnceValues(func() (view render.View, err error) {
		view, fleet.unseen = fleetView(ctx, store)
		return view, fleet.unseen
	})
	out := event.Rules{Version: current.ID, Find: fleet.find, Unseen: func() error { return fleet.unseen }}
	for _, r := range all {
		out.Reactions = append(out.Reactions, a.reactionOf(r, known, fleet))
	}
	return out, nil
}

// reactionOf is a reaction of the repository as the reactor takes it.
func (a answerer) reactionOf(r *render.Reaction, known *knownVersion, fleet *fleetSeen) *event.Reaction {
	l := r.Limiter
	return &event.Reaction{
		Name: r.Name, OnChange: r.OnChange, PerHost: r.PerHost(), Matches: r.Matches,
		Limiter: event.Limiter{
			MinOccurrences: l.MinOccurrences, Window: l.Window, Delay: l.ReReactDelay, Timeout: l.Timeout,
			Reset: l.ResetTimeoutOnMore, Max: l.Max,
		},
		Hosts: func(about []string) []string {
			view, err := fleet.look()
			if err != nil { // Unseen says so
				return nil
			}
			return r.Hosts(known.labels(view), about)
		},
		Holds: func(ctx context.Context, e state.Reacted) (bool, error) {
			view, err := fleet.look()
			if err != nil {
				return false, err
			}
			return r.Holds(render.Input{
				Context: ctx, View: view, Event: eventOf(e),
				Version: known.version.ID, Release: known.version.Release, Agent: a.build,
			})
		},
	}
}

// fleetSeen is the fleet as one step of the reactor sees it. It is read when something asks for it.
type fleetSeen struct {
	look    func() (render.View, error)
	unseen  error             // of look
	byOther map[string]string // names of nodes by their addresses and fully qualified names
}

// find is a node by its name, an address or its fully qualified name. A name goes before what nodes say of themselves.
func (f *fleetSeen) find(host string) (node string, known bool) {
	view, err := f.look()
	if err != nil { // Unseen says so
		return "", false
	}
	if _, is := view.Nodes[host]; is {
		return host, true
	}
	if f.byOther == nil {
		f.byOther = map[string]string{}
		for name, facts := range view.Facts {
			f.learn(name, facts)
		}
	}
	node = f.byOther[plainAddress(host)]
	return node, node != ""
}

// learn files under what else a node is known. What two nodes say of themselves is no name of either.
func (f *fleetSeen) learn(node string, facts render.Facts) {
	for _, other := range otherNames(facts) {
		if had, said := f.byOther[other]; said && had != node {
			f.byOther[other] = ""
			continue
		}
		f.byOther[other] = node
	}
}

// otherNames are a node's fully qualified name and its addresses.
func otherNames(facts render.Facts) (out []string) {
	if fqdn, ok := facts["fqdn"].(string); ok {
		out = append(out, fqdn)
	}
	addresses, _ := facts["addresses"].(map[string]any)
	for _, of := range addresses {
		list, _ := of.([]any)
		for _, one := range list {
			if text, ok := one.(string); ok {
				if at := plainAddress(text); !hereOnly(at) {
					out = append(out, at)
				}
			}
		}
	}
	return out
}

// plainAddress is one way to write an address; another text stays as it is.
func plainAddress(text string) string {
	if ip, err := netip.ParseAddr(text); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return text
}

func hereOnly(text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && (ip.IsLoopback() || ip.IsLinkLocalUnicast())
}

// Answers are the reactions of the fleet's version as a reactor takes them, for people.
func (a *Agent) Answers(ctx context.Context, store *state.Store) (event.Rules, error) {
	current, _, err := store.Versions.Current(ctx)
	if err != nil {
		return event.Rules{}, err
	}
	if current == nil {
		return event.Rules{}, state.ErrNoVersion
	}
	p := a.pull(ctx, Options{})
	p.opened(store)
	program, err := p.compiler.compile(ctx, current)
	if err != nil {
		return event.Rules{}, err
	}
	if _, err := program.repo.Reactions(ctx); err != nil {
		return event.Rules{}, err
	}
	a.answering.knows(current, program, 0)
	return answerer{a}.rules(ctx, store)
}
