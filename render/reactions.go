package render

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// Reaction says which jobs start, on which hosts, when events of a name happen. It is immutable.
type Reaction struct {
	Name     string // as it is written: the name of an event, or a glob over names
	Limiter  Limiter
	OnChange bool   // it may run beside a rollout
	Targets  string // all, event or a target; "": the targets of its jobs alone say where they run
	Pos      Position

	repo   *Repository
	events eventGlob
	narrow Target // of Targets, where that is one
	when   *Expression
	parts  []reactionPart
	bad    bool // it has mistakes, and is not among the repository's
}

// reactionPart are jobs of a reaction for a target.
type reactionPart struct {
	targetEntries[reactionJob] // key is nil where no target is written: every host
	doc                        *document
}

// Limiter is how many events a reaction takes, and how often it starts.
type Limiter struct {
	MinOccurrences int           // so many events within Window start it; 1 or more
	Window         time.Duration // how long an event counts
	ReReactDelay   time.Duration // at least so long between two starts for the same hosts
	// Timeout is how long it waits for more events once there are enough; 0: it does not.
	Timeout            time.Duration
	ResetTimeoutOnMore bool          // each further event lets it wait for Timeout again
	Max                time.Duration // it never waits longer; 0 without Timeout
}

// The words of Targets that are no targets.
const (
	targetsAll   = "all"
	targetsEvent = "event"
)

// reactionSet is what was read of reactions/, once for a repository.
type reactionSet struct {
	list      []*Reaction // by name
	inventory Inventory
	errs      ErrorList
}

// Reactions are the reactions of the repository, sorted by name. They are read once; an error that is no ErrorList, such
// as that of ctx, is not kept.
func (r *Repository) Reactions(ctx context.Context) ([]*Reaction, error) {
	s := &scope{macros: &macroSet{}}
	release := r.enter(s)
	defer release()
	set, err := r.reactions(ctx, s.x)
	if err != nil {
		return nil, err
	}
	return set.list, set.errs.Err()
}

// reactions reads the reactions for whoever has an execution.
func (r *Repository) reactions(ctx context.Context, x *execution) (*reactionSet, error) {
	if r.reacts != nil {
		return r.reacts, nil
	}
	c := newCompiler(r, &scope{macros: &macroSet{}, x: x})
	c.compileInventory()
	set, found := &reactionSet{inventory: c.inventory}, map[string]*Reaction{}
	c.errs = nil // of the inventory: each catalog tells them
	for _, path := range r.list("reactions") {
		if err := over(ctx); err != nil {
			return nil, err
		}
		doc := c.files.plain(path)
		var body reactionsFile
		if doc == nil {
			continue
		}
		c.files.decode(doc, &body) // what is wrong with one does not hide what is wrong with others
		for _, written := range body.Reactions {
			c.addReaction(found, doc, written)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if one := found[name]; !one.bad {
			set.list = append(set.list, one)
		}
	}
	set.errs, r.reacts = c.errs, set
	return set, nil
}

// addReaction adds a reaction that a document has, unless there is one of its name.
func (c *compiler) addReaction(to map[string]*Reaction, doc *document, written writtenReaction) {
	name, before := written.key.Value, len(c.errs)
	if first := to[name]; first != nil {
		c.fail(doc.errorAt(written.key, "reaction %q stands in %s, too: give both jobs to one", name, first.Pos))
		return
	}
	to[name] = c.reaction(doc, written)
	to[name].bad = written.bad || len(c.errs) > before
}

// reaction makes a reaction of what is written, and finds what is wrong with it.
func (c *compiler) reaction(doc *document, written writtenReaction) *Reaction {
	name, body := written.key.Value, written.body
	out := &Reaction{
		Name: name, Limiter: body.TriggerLimiter.limiter(), OnChange: body.Reaction.On.change, Targets: body.Reaction.Targets,
		Pos: doc.pos(written.key), repo: c.repo,
	}
	var err error
	if out.events, err = parseEventGlob(name); err != nil {
		c.fail(doc.errorAt(written.key, "%q %v", shortened(name), err))
	}
	start := fieldOf(written.value, "reaction")
	if out.Targets != "" && out.Targets != targetsAll && out.Targets != targetsEvent {
		if out.narrow, err = ParseTarget(out.Targets); err != nil {
			e := doc.errorAt(fieldOf(start, "targets"), "targets: %v", err)
			e.Hint = "write all, event, or a target such as role=web"
			c.fail(e)
		}
	}
	if when := body.Reaction.Conditions.When; when != nil {
		out.when = &when.Condition
		c.errs = append(c.errs, out.when.ofFleet()...)
	}
	switch jobs := body.Reaction.Jobs; {
	case jobs.node != nil:
		c.reactionParts(out, doc, jobs)
	case !written.bad: // reaction: with nothing behind it
		c.fail(doc.errorAt(written.key, "reaction %q is empty: write reaction: {jobs: {'*': [{name: JOB}]}}", shortened(name)))
	}
	return out
}

// reactionParts finds the jobs of a reaction.
func (c *compiler) reactionParts(of *Reaction, doc *document, jobs reactionJobs) {
	before, entries := len(c.errs), 0
	for _, t := range jobs.targets {
		c.reactionTarget(of, reactionPart{t, doc})
	}
	every, _ := ParseTarget("*") // it is one
	for i, e := range jobs.list {
		at := resolve(jobs.node.Content[i])
		if targets, own := c.jobTargets(e.Name); own {
			c.ownTargets(of, targets)
			continue
		}
		one := targetEntries[reactionJob]{target: every, entries: []reactionJob{{Name: e.Name}}, nodes: []*yaml.Node{at}}
		c.reactionTarget(of, reactionPart{one, doc})
	}
	for _, part := range of.parts {
		entries += len(part.entries)
	}
	if entries == 0 && len(c.errs) == before && jobs.node.Kind != yaml.ScalarNode || isNull(jobs.node) {
		e := doc.errorAt(jobs.node, "jobs: nothing starts: no job is named")
		e.Hint = "name one: jobs: {'*': [{name: JOB}]}"
		c.fail(e)
	}
}

// reactionTarget adds the jobs of a target, each of which has to be a file of steps.
func (c *compiler) reactionTarget(of *Reaction, part reactionPart) {
	for i, e := range part.entries {
		path := "jobs/" + e.Name + ".yaml"
		switch _, own := c.jobTargets(e.Name); {
		case e.Name == "": // that was reported
		case !c.repo.exists(path):
			err := part.doc.errorAt(part.nodes[i], "job %q: there is no %s", e.Name, path)
			err.Hint = c.repo.fileHint("jobs", e.Name)
			c.fail(err)
		case own:
			err := part.doc.errorAt(part.nodes[i], "job %q has targets of its own in %s, and cannot stand below one", e.Name, path)
			err.Hint = "name it in the reaction's list: jobs: [{name: " + e.Name + "}]"
			c.fail(err)
		}
	}
	of.parts = append(of.parts, part)
}

// jobTargets is a file of jobs/ that has targets of its own, as far as its text tells: it is not read for a host.
func (c *compiler) jobTargets(name string) (p place, own bool) {
	p, ok := c.repo.locate("jobs/" + name + ".yaml")
	if !ok || name == "" {
		return p, false
	}
	fields := topFields(p.layer.FS, p.path)
	if slices.Contains(fields, "spec") {
		fields = append(fields, fieldsUnderSpec(p.layer.FS, p.path)...)
	}
	return p, slices.Contains(fields, "jobs") && !slices.Contains(fields, "steps")
}

// ownTargets adds the jobs of a file with targets of its own.
func (c *compiler) ownTargets(of *Reaction, p place) {
	src, bad := c.repo.load(c.scope, p, false)
	if bad != nil {
		c.fail(bad)
		return
	}
	if at := templateIn(src.text); at >= 0 {
		e := src.errorAt(src.pos(at), "a file of jobs with targets of its own is no template: it says for the fleet who gets what")
		e.Hint = "templates belong in the files of steps that it names"
		c.fail(e)
		return
	}
	doc := c.files.render(p, false)
	var body jobTargets
	if doc == nil || !c.files.decode(doc, &body) {
		return
	}
	for _, t := range body.Jobs {
		c.reactionTarget(of, reactionPart{t, doc})
	}
}

// Matches reports that the reaction answers events of a name.
func (r *Reaction) Matches(event string) bool {
	return slices.ContainsFunc(spellings(event), r.events.matches)
}

// PerHost reports that it runs on the hosts alone that the event is about, so that events about different hosts are
// answered apart.
func (r *Reaction) PerHost() bool { return r.Targets == targetsEvent }

// Hosts are the hosts on which it runs, sorted: of the nodes, which have these labels, and for an event that is about
// some of them.
func (r *Reaction) Hosts(nodes map[string]map[string]string, about []string) []string {
	var out []string
	for name, labels := range nodes {
		if r.narrowed(name, labels, about) &&
			slices.ContainsFunc(r.parts, func(p reactionPart) bool { return len(p.entries) > 0 && p.target.Matches(name, labels) }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (r *Reaction) narrowed(name string, labels map[string]string, about []string) bool {
	switch r.Targets {
	case "", targetsAll:
		return true
	case targetsEvent:
		return slices.Contains(about, name)
	}
	return r.narrow.Matches(name, labels)
}

// Jobs are the jobs that it starts on some host, sorted.
func (r *Reaction) Jobs() []string {
	var out []string
	for _, part := range r.parts {
		for _, e := range part.entries {
			out = append(out, e.Name)
		}
	}
	return distinct(out)
}

// Holds judges its condition, which is true where it has none. Of the input count Context, View, Event, Version, Release
// and Agent. An error says that the condition cannot be judged, or why Context ended.
func (r *Reaction) Holds(in Input) (bool, error) {
	if r.when == nil {
		return true, nil
	}
	s := &scope{in: in, macros: &macroSet{}, all: newPool(), secrets: newSecretTexts()}
	release := r.repo.enter(s)
	defer release()
	s.in.View = in.View.over(r.repo.reacts.inventory)
	out, err := runExpression(r.when.code, s)
	if stop := over(in.Context); stop != nil {
		return false, stop
	}
	if err != nil {
		return false, r.when.error(err)
	}
	yes, ok := out.(bool)
	if !ok {
		return false, fmt.Errorf("%s: expression %q: the value is %v, not true or false", r.when.Pos(), r.when.Text, out)
	}
	return yes, nil
}

// WarningAt is a warning at the reaction.
func (r *Reaction) WarningAt(format string, args ...any) *Error {
	return r.repo.WarningAt(r.Pos, format, args...)
}
