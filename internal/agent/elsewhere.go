package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/state"
)

// The bounds of what a node compiles for others before it proposes a version.
const (
	elsewhereTime     = 3 * time.Second
	elsewhereNodes    = 1000
	elsewhereSuspects = 100
)

// elsewhereError has the mistakes of a version that compiles here, and not for other nodes of the inventory.
type elsewhereError struct {
	nodes    []string
	mistakes render.ErrorList
}

func (e *elsewhereError) Error() string { return e.mistakes.Error() }

func (e *elsewhereError) Unwrap() error { return e.mistakes }

// notProposed says why this node does not propose a version.
func notProposed(v *state.Version, err error) error {
	if e, ok := errors.AsType[*elsewhereError](err); ok {
		return fmt.Errorf(
			"version %s is not proposed to the fleet, and no host changes: it does not compile for %s:\n%w",
			v,
			e.hosts(),
			err,
		)
	}
	return fmt.Errorf("version %s is not proposed to the fleet:\n%w", v, err)
}

// whyBroken says for whom a version does not compile, with the first of its mistakes.
func whyBroken(err error) string {
	if e, ok := errors.AsType[*elsewhereError](err); ok {
		return "it does not compile for " + e.hosts() + ": " + firstLine(err)
	}
	return "it does not compile: " + firstLine(err)
}

// hosts are the first nodes, and how many there are beside them.
func (e *elsewhereError) hosts() string { return safetext.Some(e.nodes, 3) }

// elsewhere looks for mistakes that other nodes of the inventory meet in a version that compiles here. A mistake
// counts when it is certain: it does not depend on what other hosts say, and the fleet's version compiles for the
// node. What a node registered can only excuse it, so no node can keep the fleet from a commit. It looks at as many
// nodes as the bounds allow.
func (c *compiler) elsewhere(ctx context.Context, current, next *state.Version, here *compiled) error {
	nodes := representatives(here.catalog.Inventory, c.config.Node.Name)
	if len(nodes) == 0 {
		return nil
	}
	j, err := c.forNodes(ctx, next)
	if err != nil {
		return err
	}
	suspects, err := j.suspects(ctx, nodes)
	if len(suspects) == 0 || err != nil {
		return err
	}
	if suspects, err = c.withFacts(ctx, suspects); len(suspects) == 0 || err != nil {
		return err
	}
	if current != nil {
		if suspects, err = c.notBefore(ctx, current, suspects); err != nil {
			return err
		}
	}
	return j.convict(ctx, suspects)
}

// representatives are the other nodes of an inventory in the order in which they are looked at: first one of each
// set of labels, then the rest.
func representatives(inventory render.Inventory, self string) []render.Node {
	var first, rest []render.Node
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(inventory)) {
		if name == self {
			continue
		}
		n := inventory[name]
		if labels := fmt.Sprint(n.Labels); !seen[labels] { // maps are printed in the order of their keys
			seen[labels] = true
			first = append(first, n)
		} else {
			rest = append(rest, n)
		}
	}
	all := append(first, rest...)
	return all[:min(len(all), elsewhereNodes)]
}

// suspect is a node with the mistakes that it seems to meet.
type suspect struct {
	render.Node
	mistakes render.ErrorList
	facts    render.Facts // see withFacts
}

// suspects are the nodes with certain mistakes, as far as there is time.
func (j *nodeCompiler) suspects(ctx context.Context, nodes []render.Node) ([]suspect, error) {
	limited, cancel := context.WithTimeout(ctx, elsewhereTime)
	defer cancel()
	var out []suspect
	for _, n := range nodes {
		mistakes, err := j.certain(limited, n)
		if limited.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if len(mistakes) > 0 {
			out = append(out, suspect{Node: n, mistakes: mistakes})
		}
		if len(out) == elsewhereSuspects {
			break
		}
	}
	return out, nil
}

// withFacts are the suspects with their facts: those that a node registered, or this host's for one that never did.
// Nodes that this one cannot compile for are left out: they have variables of their own, or may have, or were
// decommissioned.
func (c *compiler) withFacts(ctx context.Context, suspects []suspect) ([]suspect, error) {
	names := make([]string, len(suspects))
	for i, s := range suspects {
		names[i] = s.Name
	}
	peers, err := c.store.Nodes.Peers(ctx, names)
	if err != nil {
		return nil, err
	}
	ownVars := false
	for _, peer := range peers {
		ownVars = ownVars || !peer.RepoVars
	}
	var out []suspect
	for _, s := range suspects {
		switch peer, registered := peers[s.Name]; {
		case registered && peer.RepoVars && !peer.Decommissioned:
			s.facts = render.Facts(peer.Facts)
		case !registered && !ownVars:
			s.facts = c.facts()
		default:
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// notBefore leaves the suspects for which the fleet's version compiles. Where that is not known, nobody is one.
func (c *compiler) notBefore(ctx context.Context, current *state.Version, suspects []suspect) ([]suspect, error) {
	j, err := c.forNodes(ctx, current)
	var missing *puller.MissingCommitError
	if errors.As(err, &missing) {
		return nil, nil
	}
	var out []suspect
	for _, s := range suspects {
		var broken render.ErrorList
		if err == nil {
			_, broken, err = j.compile(ctx, s.Node, s.facts)
		}
		if len(broken) == 0 {
			out = append(out, s)
		}
	}
	return out, err
}

// convict leaves the mistakes that no facts of their node excuse: an *elsewhereError, or nil.
func (j *nodeCompiler) convict(ctx context.Context, suspects []suspect) error {
	e := &elsewhereError{}
	for _, s := range suspects {
		_, mistakes, err := j.compile(ctx, s.Node, s.facts)
		if err != nil {
			return err
		}
		e.add(s.Name, both(s.mistakes, mistakes))
	}
	if len(e.nodes) == 0 {
		return nil
	}
	for _, m := range e.mistakes {
		if len(m.Hosts) == len(e.nodes) {
			m.Hosts = nil
		}
	}
	return e
}

// add adds the mistakes of a node. One that several have is one.
func (e *elsewhereError) add(node string, mistakes render.ErrorList) {
	if len(mistakes) > 0 {
		e.nodes = append(e.nodes, node)
	}
	for _, m := range mistakes {
		if i := slices.IndexFunc(e.mistakes, func(o *render.Error) bool { return same(o, m) }); i >= 0 {
			e.mistakes[i].Hosts = append(e.mistakes[i].Hosts, node)
			continue
		}
		one := *m
		one.Hosts = []string{node}
		e.mistakes = append(e.mistakes, &one)
	}
}

// nodeCompiler compiles a version for other nodes than this one.
type nodeCompiler struct {
	store *state.Store
	repo  *render.Repository
	specs []apply.Spec
	here  render.Input // of this host
	view  *render.View // nil: not read
}

func (c *compiler) forNodes(ctx context.Context, v *state.Version) (*nodeCompiler, error) {
	repo, err := c.versions.repository(ctx, v)
	if err != nil {
		return nil, err
	}
	extensions, _ := extension.Load(repo, c.outside.Actions) // what is wrong there is wrong for this node as well
	specs := slices.Concat(c.outside.Actions, extensions.Specs())
	return &nodeCompiler{store: c.store, repo: repo, specs: specs, here: c.input(ctx, v)}, nil
}

// certain are the mistakes that a node meets whichever of two hosts it is: this one, or one that is like it but for
// its names and addresses. None is certain where another depends on the host: it may follow from that.
func (j *nodeCompiler) certain(ctx context.Context, n render.Node) (render.ErrorList, error) {
	cat, one, err := j.compile(ctx, n, j.here.Facts)
	if len(one) == 0 || err != nil || slices.ContainsFunc(one, cat.Hearsay) {
		return nil, err
	}
	_, two, err := j.compile(ctx, n, otherHost(j.here.Facts, n.Name))
	if common := both(one, two); len(common) == len(one) && len(common) == len(two) {
		return common, err
	}
	return nil, err
}

// otherHost are the facts of a host of this name that is like another one.
func otherHost(like render.Facts, name string) render.Facts {
	out := maps.Clone(like)
	for fact, value := range facts.Sample(name) {
		if slices.Contains([]string{"hostname", "machineId", "addresses", "defaultInterface", "address"}, fact) {
			out[fact] = value
		}
	}
	out["fqdn"] = name
	if fqdn, _ := like["fqdn"].(string); !strings.Contains(name, ".") {
		_, domain, _ := strings.Cut(fqdn, ".")
		out["fqdn"] = strings.TrimSuffix(name+"."+domain, ".")
	}
	return out
}

// compile makes the catalog of a node with these facts, with its mistakes.
func (j *nodeCompiler) compile(
	ctx context.Context,
	n render.Node,
	known render.Facts,
) (*render.Catalog, render.ErrorList, error) {
	in := j.here
	in.Context, in.Node, in.Facts = ctx, n, known
	if j.repo.AsksForFleet() && j.view == nil {
		view, err := fleetView(ctx, j.store)
		if err != nil {
			return nil, nil, err
		}
		j.view = &view
	}
	if j.view != nil {
		in.View = *j.view
	}
	asked := j.repo.AsksForFleet()
	cat, err := j.repo.Compile(in)
	if !asked && j.repo.AsksForFleet() {
		return j.compile(ctx, n, known)
	}
	var list, more render.ErrorList
	if err != nil && !errors.As(err, &list) {
		return nil, nil, err
	}
	if _, err := apply.Bind(cat, j.specs); err != nil && !errors.As(err, &more) {
		return nil, nil, err
	}
	return cat, append(list, more...), nil
}

// both are the mistakes that stand in two lists.
func both(one, two render.ErrorList) render.ErrorList {
	return slices.DeleteFunc(slices.Clone(one), func(m *render.Error) bool {
		return !slices.ContainsFunc(two, func(o *render.Error) bool { return same(m, o) })
	})
}

// same reports the same mistake, found twice.
func same(one, two *render.Error) bool { return one.Pos == two.Pos && one.Message == two.Message }
