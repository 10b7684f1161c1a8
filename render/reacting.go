package render

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Reacting is a run of a reaction: it has the reaction's jobs, on these hosts alone.
type Reacting struct {
	Reaction string   // its name as it is written
	Hosts    []string // those of the run
}

// compileReactions reads the reactions, so that their mistakes are those of the version.
func (c *compiler) compileReactions() {
	set, err := c.repo.reacts.read(c.scope.in.Context, c.scope.x)
	if err != nil { // the time is over
		c.fail(&Error{Pos: Position{File: "reactions"}, Message: err.Error(), cause: err})
		return
	}
	for _, e := range set.errs {
		own := *e // secrets are taken out of mistakes, host by host
		c.fail(&own)
	}
	for _, r := range set.list {
		for _, part := range r.parts {
			if part.key != nil {
				c.matches(part.doc, part.key, part.target)
			}
		}
	}
}

// react collects the jobs of a reaction in the place of those of the base files.
func (j *jobsCompiler) react(run *Reacting) {
	set, err := j.c.repo.reacts.read(j.c.scope.in.Context, j.c.scope.x)
	if err != nil { // compileReactions told it
		return
	}
	at := slices.IndexFunc(set.list, func(r *Reaction) bool { return r.Name == run.Reaction })
	if at < 0 && len(set.errs) > 0 { // it may be what could not be read
		return
	}
	if at < 0 {
		j.c.fail(set.unknown(run.Reaction))
		return
	}
	j.reactionJobs(set.list[at], run)
}

// unknown is the mistake of a run of a reaction that the version does not have.
func (s *reactionSet) unknown(name string) *Error {
	e := &Error{Pos: Position{File: "reactions"}}
	e.Message = fmt.Sprintf("the version has no reaction %q: it was removed or has another name now", shortened(name))
	var names []string
	for _, r := range s.list {
		names = append(names, r.Name)
	}
	e.Hint = DidYouMean(name, names)
	return e
}

// reactionJobs reads the jobs that the node has of a reaction.
func (j *jobsCompiler) reactionJobs(of *Reaction, run *Reacting) {
	known, given, node := map[string]bool{}, map[string][]Target{}, j.c.scope.in.Node
	hosts := slices.Sorted(slices.Values(run.Hosts))
	_, mine := slices.BinarySearch(hosts, node.Name)
	for _, part := range of.parts {
		yes := mine && part.target.Matches(node.Name, node.Labels)
		for i, e := range part.entries {
			given[e.Name] = append(given[e.Name], part.target)
			if yes {
				pos := part.doc.pos(part.nodes[i])
				job := &Job{Name: e.Name, Conditions: e.Conditions, Pos: pos, root: e.Name}
				j.add(part.doc, part.nodes[i], job, known)
			}
		}
	}
	for _, job := range j.all {
		job.Targets, job.among = given[job.root], &hosts
	}
}

// fieldsUnderSpec are the fields of a file whose body stands under spec.
func fieldsUnderSpec(files fs.FS, name string) []string {
	text, err := fs.ReadFile(files, name)
	var root yaml.Node
	if err != nil || yaml.Load(text, &root, shallow()) != nil || len(root.Content) == 0 {
		return nil
	}
	var out []string
	if spec, ok := child(root.Content[0], "spec"); ok {
		for _, e := range entries(spec.value) {
			out = append(out, e.key.Value)
		}
	}
	return out
}

var commentLine = lazyregexp.New(`(?m)(^|\s)#.*$`)

// templateIn is where a text has a template action outside of comments; -1 where it has none.
func templateIn(text string) int {
	blank := commentLine.ReplaceAllStringFunc(text, func(c string) string {
		out := []byte(c)
		for i := range out {
			out[i] = ' '
		}
		return string(out)
	})
	return strings.Index(blank, "{{")
}
