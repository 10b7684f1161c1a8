package render

import (
	"context"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// reactionFiles are the files below reactions/ of a repository.
type reactionFiles struct {
	r     *Repository
	kept  *reactionSet          // nil: not read yet
	asked func() map[string]any // what the repository asks of the data of an event; nobody changes it
}

// read reads the reactions once, for whoever has an execution.
func (f *reactionFiles) read(ctx context.Context, x *execution) (*reactionSet, error) {
	if f.kept != nil {
		return f.kept, nil
	}
	c := newCompiler(f.r, &scope{macros: &macroSet{}, x: x})
	c.compileInventory()
	set, in := &reactionSet{inventory: c.inventory}, &reactionReader{c, map[string]*Reaction{}}
	c.errs = nil // of the inventory: each catalog tells them
	for _, path := range f.r.list("reactions") {
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
			in.add(doc, written)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.found)) {
		if one := in.found[name]; !one.bad {
			set.list = append(set.list, one)
		}
	}
	set.errs, f.kept = c.errs, set
	return set, nil
}

// reactionReader makes reactions of what is written.
type reactionReader struct {
	c     *compiler
	found map[string]*Reaction
}

// add adds a reaction that a document has, unless there is one of its name.
func (in *reactionReader) add(doc *document, written writtenReaction) {
	name, before := written.key.Value, len(in.c.errs)
	if first := in.found[name]; first != nil {
		in.c.fail(doc.errorAt(written.key, "reaction %q stands in %s, too: give both jobs to one", name, first.Pos))
		return
	}
	one := in.reaction(doc, written)
	one.bad = written.bad || len(in.c.errs) > before
	in.found[name] = one
}

// reaction makes a reaction of what is written, and finds what is wrong with it.
func (in *reactionReader) reaction(doc *document, written writtenReaction) *Reaction {
	name, body := written.key.Value, written.body
	out := &Reaction{
		Name: name, Limiter: body.TriggerLimiter.limiter(), OnChange: body.Reaction.On.change,
		Targets: body.Reaction.Targets, Pos: doc.pos(written.key), repo: in.c.repo,
	}
	var err error
	if out.events, err = ParseEventGlob(name); err != nil {
		in.c.fail(doc.errorAt(written.key, "%q %v", shortened(name), err))
	}
	start := fieldOf(written.value, "reaction")
	if out.Targets != "" && out.Targets != targetsAll && out.Targets != targetsEvent {
		if out.narrow, err = ParseTarget(out.Targets); err != nil {
			e := doc.errorAt(fieldOf(start, "targets"), "targets: %v", err)
			e.Hint = "write all, event, or a target such as role=web"
			in.c.fail(e)
		}
	}
	if when := body.Reaction.Conditions.When; when != nil {
		out.when = &when.Condition
		in.c.errs = append(in.c.errs, out.when.ofFleet()...)
	}
	switch jobs := body.Reaction.Jobs; {
	case jobs.node != nil:
		in.parts(out, doc, jobs)
	case !written.bad: // reaction: with nothing behind it
		in.c.fail(doc.errorAt(written.key, emptyReaction, shortened(name)))
	}
	return out
}

const emptyReaction = "reaction %q is empty: write reaction: {jobs: {'*': [{name: JOB}]}}"

// parts finds the jobs of a reaction.
func (in *reactionReader) parts(of *Reaction, doc *document, jobs reactionJobs) {
	before, entries := len(in.c.errs), 0
	for _, t := range jobs.targets {
		in.target(of, reactionPart{t, doc})
	}
	every, _ := ParseTarget("*") // it is one
	for i, e := range jobs.list {
		at := resolve(jobs.node.Content[i])
		if targets, own := in.ownTargets(e.Name); own {
			in.fromFile(of, targets)
			continue
		}
		one := targetEntries[reactionJob]{target: every, entries: []reactionJob{{Name: e.Name}}, nodes: []*yaml.Node{at}}
		in.target(of, reactionPart{one, doc})
	}
	for _, part := range of.parts {
		entries += len(part.entries)
	}
	if entries == 0 && len(in.c.errs) == before && jobs.node.Kind != yaml.ScalarNode || isNull(jobs.node) {
		e := doc.errorAt(jobs.node, "jobs: nothing starts: no job is named")
		e.Hint = "name one: jobs: {'*': [{name: JOB}]}"
		in.c.fail(e)
	}
}

// target adds the jobs of a target, each of which has to be a file of steps.
func (in *reactionReader) target(of *Reaction, part reactionPart) {
	for i, e := range part.entries {
		path := "jobs/" + e.Name + ".yaml"
		switch _, own := in.ownTargets(e.Name); {
		case e.Name == "": // that was reported
		case !in.c.repo.exists(path):
			err := part.doc.errorAt(part.nodes[i], "job %q: there is no %s", e.Name, path)
			err.Hint = in.c.repo.fileHint("jobs", e.Name)
			in.c.fail(err)
		case own:
			err := part.doc.errorAt(
				part.nodes[i], "job %q has targets of its own in %s, and cannot stand below one", e.Name, path,
			)
			err.Hint = "name it in the reaction's list: jobs: [{name: " + e.Name + "}]"
			in.c.fail(err)
		}
	}
	of.parts = append(of.parts, part)
}

// ownTargets is a file of jobs/ that has targets of its own, as far as its text tells: it is not read for a host.
func (in *reactionReader) ownTargets(name string) (p place, own bool) {
	p, ok := in.c.repo.locate("jobs/" + name + ".yaml")
	if !ok || name == "" {
		return p, false
	}
	fields := topFields(p.layer.FS, p.path)
	if slices.Contains(fields, "spec") {
		fields = append(fields, fieldsUnderSpec(p.layer.FS, p.path)...)
	}
	return p, slices.Contains(fields, "jobs") && !slices.Contains(fields, "steps")
}

// fromFile adds the jobs of a file with targets of its own.
func (in *reactionReader) fromFile(of *Reaction, p place) {
	src, bad := in.c.repo.load(in.c.scope, p, false)
	if bad != nil {
		in.c.fail(bad)
		return
	}
	if at := templateIn(src.text); at >= 0 {
		e := src.errorAt(
			src.pos(at), "a file of jobs with targets of its own is no template: it says for the fleet who gets what",
		)
		e.Hint = "templates belong in the files of steps that it names"
		in.c.fail(e)
		return
	}
	doc := in.c.files.render(p, false)
	var body jobTargets
	if doc == nil || !in.c.files.decode(doc, &body) {
		return
	}
	for _, t := range body.Jobs {
		in.target(of, reactionPart{t, doc})
	}
}
