package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// compiled is a program with the catalog that it came from.
type compiled struct {
	*apply.Program
	catalog *render.Catalog
	repo    *render.Repository // that it was made of

	rollout    render.Rollout  // see rules
	instructed json.RawMessage // the instructions that rollout has
	decoded    bool            // rollout is there
}

// rules are the rules of a version's rollout: its instructions in the place of the repository's. They are decoded once.
func (c *compiled) rules(v *state.Version) (render.Rollout, error) {
	if c.decoded && bytes.Equal(c.instructed, v.Instructions) {
		return c.rollout, nil
	}
	rollout, err := instructed(c.catalog, v)
	if err != nil {
		return rollout, err
	}
	c.rollout, c.instructed, c.decoded = rollout, v.Instructions, true
	return rollout, nil
}

// instructed are the rules of a catalog, with the instructions of a version in the place of those that they name.
func instructed(cat *render.Catalog, v *state.Version) (render.Rollout, error) {
	return cat.Fleet.Rollout.Instruct("the instructions", v.Instructions, cat.Inventory)
}

// compiler makes the programs of versions for this node, in one pull.
type compiler struct {
	*self
	*joined
	versions *versions
	out      *Outcome
	facts    func() render.Facts     // of this host, gathered once: what is registered is what is compiled
	ownVars  func() (ownVars, error) // of this host, read once
	keys     *keyring                // of this host
	ahead    *compiled               // what this node proposed; nil: nothing
	offers   map[string]offered      // by version, as far as it was compiled
	asked    asked                   // the services that were read
	known    map[string][]render.Service
	nodes    map[string]render.Node // that are registered
	cached   *cachedFleet           // what is known of the fleet while its record is away
	quiet    bool                   // that it is away was said before
}

// compile makes the program of a version for this node: everything that can be wrong with a commit is wrong here.
func (c *compiler) compile(ctx context.Context, v *state.Version) (*compiled, error) {
	repo, err := c.versions.repository(ctx, v)
	if err != nil {
		return nil, err
	}
	if program := c.proposed(v); program != nil {
		return program, nil
	}
	if !repo.AsksForFleet() { // most do not: then nobody else's facts are read
		program, err := c.bind(ctx, repo, v, render.View{}, nil)
		if !repo.AsksForFleet() {
			return program, err
		}
	}
	view, err := c.view(ctx)
	if err != nil {
		return nil, err
	}
	program, err := c.bind(ctx, repo, v, view, nil)
	if err == nil {
		c.offers[v.ID] = offered{program.catalog.Offers(), program.catalog.Fleet.Services.Zone()}
	}
	return program, err
}

// proposed is the program of a version that was compiled to be proposed; nil for another. It is given out once: its
// actions are for one run.
func (c *compiler) proposed(v *state.Version) *compiled {
	program := c.ahead
	if program == nil || program.catalog.Version != v.ID || program.catalog.Release != v.Release {
		return nil
	}
	c.ahead = nil
	return program
}

// bind compiles a repository for this node, gives its steps their actions, and fetches what extensions need.
func (c *compiler) bind(
	ctx context.Context,
	repo *render.Repository,
	v *state.Version,
	view render.View,
	answers *state.ReactionRun, // nil: what the host is to be
) (*compiled, error) {
	own, err := c.ownVars()
	if err != nil {
		return nil, &ownVarsError{err}
	}
	extensions, mistakes := extension.Load(repo, c.outside.Actions)
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	in := c.input(ctx, v)
	in.View, in.HostVars, in.Secrets, in.Unseal = view, own.vars, own.secrets, c.keys.unseal
	answerTo(&in, answers)
	program, cat, err := apply.Compile(repo, in, slices.Concat(c.outside.Actions, extensions.Specs()))
	if c.keys.failed != nil {
		return nil, &ownVarsError{c.keys.failed}
	}
	if err != nil {
		return nil, err
	}
	if answers != nil { // the run goes on with this event and this version, whatever the fleet looks like meanwhile
		cat.Digest = "reaction " + answers.ID
	}
	if _, listed := cat.Inventory[cat.Node.Name]; !listed && cat.Untargeted() {
		return nil, &untargetedError{cat.Node}
	}
	err = extensions.Fetch(ctx, c.extensionHost(), cat)
	return &compiled{Program: program, catalog: cat, repo: repo}, err
}

// input is what a version is compiled with on this node, but for the fleet and the host's own variables.
func (c *compiler) input(ctx context.Context, v *state.Version) render.Input {
	return render.Input{
		Context: ctx,
		Node:    c.config.Node.Node,
		Facts:   c.facts(),
		Version: v.ID,
		Release: v.Release,
		Agent:   c.build,

		CheckSealed: checkSealed,
	}
}

// view is the fleet as its record shows it, at one revision. While the store is away it is what the node saw last:
// files that name other hosts must not lose them because etcd does not answer.
func (c *compiler) view(ctx context.Context) (render.View, error) {
	if c.store == nil {
		return c.lastView()
	}
	v, err := fleetView(ctx, c.store)
	if err != nil {
		return v, err
	}
	v.Asked, c.known, c.nodes = c.asked.add, v.Services, v.Nodes
	c.out.views(v.Revision)
	if c.presence == nil { // a plan, which writes nothing
		return v, nil
	}
	return v, state.SaveView(c.config.Paths.State, v)
}

func fleetView(ctx context.Context, store *state.Store) (render.View, error) {
	o, err := store.Views.Templates(ctx)
	if err != nil {
		return render.View{}, err
	}
	v := render.View{
		Revision: o.Revision,
		Nodes:    map[string]render.Node{},
		Facts:    map[string]render.Facts{},
		Services: map[string][]render.Service{},
	}
	for name, n := range o.Nodes {
		v.Nodes[name] = render.Node{Name: name, Labels: n.Labels}
		v.Facts[name] = render.Facts(o.Facts[name])
	}
	for name, byNode := range o.Services {
		v.Services[name] = instances(name, byNode, state.Unanswering(byNode, o.Alive))
	}
	return v, nil
}

// cannotCompile records that the fleet's version cannot be used on this node: it has failed here before anything was
// touched. A commit that the node's remote does not have yet is waited for instead.
func (p *pull) cannotCompile(ctx context.Context, v *state.Version, err error) error {
	var missing *puller.MissingCommitError
	if errors.As(err, &missing) {
		p.out.worksOn(v)
		p.out.awaits(commitWait(v, missing))
		return errors.Join(p.keepRunning(ctx), p.reporter.tellConfigured(ctx, v))
	}
	var mistakes render.ErrorList
	if !errors.As(err, &mistakes) { // the disk or the store is at fault, not the commit: nobody is halted for it
		return err
	}
	p.out.worksOn(v)
	lacking := p.compiler.lacks(ctx, v, mistakes)
	if lacking == nil || p.store == nil {
		p.out.fail(err)
	}
	if p.store == nil {
		return nil
	}
	if !v.Same(p.local.Running) {
		if err := p.keepRunning(ctx); err != nil {
			return err
		}
	}
	if lacking != nil {
		p.out.worksOn(v) // again: it corrected drift of another one
		p.out.awaits(lacking)
		return p.reporter.tellConfigured(ctx, v)
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return errors.Join(
		p.reporter.tellConfigured(ctx, v),
		p.turns.tellRollout(ctx, v, saidOf(err), failureOf(faultOf(err))),
	)
}

// commitWait is the wait of a node whose remote does not have a commit of the fleet's version.
func commitWait(v *state.Version, missing *puller.MissingCommitError) *lock.Wait {
	w := &lock.Wait{
		Kind:   state.WaitRepository,
		Gate:   "repository " + missing.Repo,
		Reason: fmt.Sprintf("its remote does not have %s yet, which %s proposed as %s", state.Short(missing.Commit), v.By, v),
		Remedy: state.Act("no action needed if the remote is about to have it; " +
			"if it never will (the branch was rewritten): pullet pull --accept-rewind"),
		Since: time.Now(),
	}
	if missing.Err != nil {
		w.Reason = fmt.Sprintf(
			"%s, which %s proposed as %s, is not on this host, and could not be fetched: %v",
			state.Short(missing.Commit),
			v.By,
			v,
			missing.Err,
		)
		w.Remedy = state.Itself("it goes on when the remote can be read")
	}
	return w
}

// tellRollout fails the rollout here, unless the node runs the version already: then it is no matter of the rollout.
func (t *turns) tellRollout(ctx context.Context, v *state.Version, reason string, how lock.Failure) error {
	if v.Same(t.local.Running) {
		return nil
	}
	cat := &render.Catalog{Node: t.registration.node()}
	rollout, err := instructed(cat, v)
	if err != nil {
		return err
	}
	return lock.NewTurn(t.store, t.requestUnder(rollout, v, cat)).Fail(ctx, reason, how)
}
