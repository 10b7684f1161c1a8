package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
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

// compile makes the program of a version for this node: everything that can be wrong with a commit is wrong here.
func (p *pull) compile(ctx context.Context, v *state.Version) (*compiled, error) {
	repo, err := p.repository(ctx, v)
	if err != nil {
		return nil, err
	}
	if program := p.proposed(v); program != nil {
		return program, nil
	}
	if !repo.AsksForFleet() { // most do not: then nobody else's facts are read
		program, err := p.bind(ctx, repo, v, render.View{})
		if !repo.AsksForFleet() {
			return program, err
		}
	}
	view, err := p.view(ctx)
	if err != nil {
		return nil, err
	}
	program, err := p.bind(ctx, repo, v, view)
	if err == nil {
		p.offers[v.ID] = offered{program.catalog.Offers(), program.catalog.Fleet.Services.Zone()}
	}
	return program, err
}

// proposed is the program of a version that was compiled to be proposed; nil for another. It is given out once: its actions are for one run.
func (p *pull) proposed(v *state.Version) *compiled {
	program := p.ahead
	if program == nil || program.catalog.Version != v.ID || program.catalog.Release != v.Release {
		return nil
	}
	p.ahead = nil
	return program
}

// relabel remembers the labels that the inventory gives the node, and tells the fleet. They hold from the next registration on, which
// comes before the inventory is read.
func (p *pull) relabel(ctx context.Context, labels map[string]string) error {
	if p.presence == nil || maps.Equal(labels, p.presence.Node.Labels) {
		return nil
	}
	p.local.Labels = labels
	if err := p.local.save(); err != nil {
		return err
	}
	return p.store.Relabel(ctx, p.presence, labels)
}

// node is this node with the labels that the inventory gave it last.
func (p *pull) node() render.Node {
	n := p.config.Node
	if p.local.Labels != nil {
		n.Labels = p.local.Labels
	}
	return n
}

// bind compiles a repository for this node, gives its steps their actions, and fetches what extensions need.
func (p *pull) bind(ctx context.Context, repo *render.Repository, v *state.Version, view render.View) (*compiled, error) {
	own, err := p.ownVars()
	if err != nil {
		return nil, &ownVarsError{err}
	}
	extensions, mistakes := extension.Load(repo, action.All())
	if err := mistakes.Err(); err != nil {
		return nil, err
	}
	in := p.input(ctx, v)
	in.View, in.HostVars, in.Secrets = view, own.vars, own.secrets
	program, cat, err := apply.Compile(repo, in, slices.Concat(p.actions, extensions.Specs()))
	if err != nil {
		return nil, err
	}
	return &compiled{Program: program, catalog: cat}, extensions.Fetch(ctx, filepath.Join(p.config.Paths.State, "extensions"), cat)
}

// input is what a version is compiled with on this node, but for the fleet and the host's own variables.
func (p *pull) input(ctx context.Context, v *state.Version) render.Input {
	return render.Input{Context: ctx, Node: p.config.Node, Facts: p.facts(), Version: v.ID, Release: v.Release, Agent: p.build}
}

// repository is a version's content; what was parsed of the last one is kept.
func (a *Agent) repository(ctx context.Context, v *state.Version) (*render.Repository, error) {
	if a.parsed != nil && a.at == v.ID {
		return a.parsed, nil
	}
	snapshot, err := a.puller.Snapshot(ctx, heads(v))
	if err != nil {
		return nil, err
	}
	layers := make([]render.Layer, len(snapshot.Layers))
	for i, l := range snapshot.Layers {
		layers[i] = render.Layer{Name: l.Name, FS: l.FS}
	}
	a.parsed, a.at = render.Open(layers...), v.ID
	return a.parsed, nil
}

// view is the fleet as its record shows it, at one revision. While the store is away it is what the node saw last: files that name
// other hosts must not lose them because etcd does not answer.
func (p *pull) view(ctx context.Context) (render.View, error) {
	if p.store == nil {
		return p.lastView()
	}
	v, err := fleetView(ctx, p.store)
	if err != nil {
		return v, err
	}
	v.Asked, p.known = p.asked.note, v.Services
	if p.out.viewed == 0 {
		p.out.viewed = v.Revision
	}
	if p.presence == nil { // a plan, which writes nothing
		return v, nil
	}
	return v, state.SaveView(p.config.Paths.State, v)
}

func fleetView(ctx context.Context, store *state.Store) (render.View, error) {
	o, err := store.View(ctx)
	if err != nil {
		return render.View{}, err
	}
	v := render.View{Revision: o.Revision, Nodes: map[string]render.Node{}, Facts: map[string]render.Facts{}, Services: map[string][]render.Service{}}
	for name, n := range o.Nodes {
		v.Nodes[name] = render.Node{Name: name, Labels: n.Labels}
		v.Facts[name] = render.Facts(o.Facts[name])
	}
	for name, byNode := range o.Services {
		v.Services[name] = instances(name, byNode, state.Unanswering(byNode, o.Alive))
	}
	return v, nil
}

// cannotCompile records that the fleet's version cannot be used on this node: it has failed here before anything was touched. A
// commit that the node's remote does not have yet is waited for instead.
func (p *pull) cannotCompile(ctx context.Context, v *state.Version, err error) error {
	var missing *puller.MissingCommitError
	if errors.As(err, &missing) {
		p.out.Version = v
		p.out.Wait = &lock.Wait{
			Kind:   state.WaitRepository,
			Gate:   "repository " + missing.Repo,
			Reason: fmt.Sprintf("its remote does not have %s yet, which %s proposed as %s", state.Short(missing.Commit), v.By, v),
			Remedy: state.Act("no action needed if the remote is about to have it; if it never will (the branch was rewritten): pullet pull --accept-rewind"), Since: time.Now(),
		}
		if missing.Err != nil {
			p.out.Wait.Reason = fmt.Sprintf("%s, which %s proposed as %s, is not on this host, and could not be fetched: %v", state.Short(missing.Commit), v.By, v, missing.Err)
			p.out.Wait.Remedy = state.Itself("it goes on when the remote can be read")
		}
		return errors.Join(p.keepRunning(ctx), p.tellConfigured(ctx, v))
	}
	var mistakes render.ErrorList
	if !errors.As(err, &mistakes) { // the disk or the store is at fault, not the commit: nobody is halted for it
		return err
	}
	p.out.Version = v
	lacking := p.lacks(v, mistakes)
	if lacking == nil || p.store == nil {
		p.out.Failures = append(p.out.Failures, err)
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
		p.out.Version, p.out.Wait = v, lacking
		return p.tellConfigured(ctx, v)
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	return errors.Join(p.tellConfigured(ctx, v), p.tellRollout(ctx, v, saidOf(err), failureOf(faultOf(err))))
}

// tellRollout fails the rollout here, unless the node runs the version already: then it is no matter of the rollout.
func (p *pull) tellRollout(ctx context.Context, v *state.Version, reason string, how lock.Failure) error {
	if v.Same(p.local.Running) {
		return nil
	}
	cat := &render.Catalog{Node: p.node()}
	rollout, err := instructed(cat, v)
	if err != nil {
		return err
	}
	return lock.NewTurn(p.store, p.requestUnder(rollout, v, cat)).Fail(ctx, reason, how)
}

// tellConfigured records the node's configured state when there was no run.
func (p *pull) tellConfigured(ctx context.Context, v *state.Version) error {
	if p.store == nil {
		return nil
	}
	st := p.reporter.status(v, "")
	p.saysTrouble(&st)
	if w := p.out.Wait; w != nil {
		saysWait(&st, w)
	}
	p.saysFailure(&st)
	return p.store.Tell(ctx, p.presence, p.store.StatusOps(p.config.Node.Name, state.Configured, configuredOf(p.out), st)...)
}

// tellIdle tells the fleet why a node without a version does nothing: else its record would say what was so before.
func (p *pull) tellIdle(ctx context.Context) error {
	if len(p.out.Failures) > 0 || p.lacking != nil || len(p.out.Refused) == 0 && p.out.Wait == nil { // that was told
		return nil
	}
	v := p.current
	if v == nil {
		v = &state.Version{}
	}
	return p.tellConfigured(ctx, v)
}
