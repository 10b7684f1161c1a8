package render

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// jobsBase is base/jobs.yaml: who runs which jobs, and which validations afterwards.
type jobsBase struct {
	Metadata *Metadata          `yaml:"metadata"` // names the file; it changes nothing
	Jobs     targeted[jobEntry] `yaml:"jobs"`     // by target
	// by target; run last, at every pull: a host is done when they succeed
	Validations targeted[jobEntry] `yaml:"validations"`
}

// jobEntry is a job of a target.
type jobEntry struct {
	Name string `yaml:"name,required"` // web for jobs/web.yaml
	// around the job as a whole: success is asked when all its steps succeeded; continue holds the jobs behind it, too
	Conditions Conditions `yaml:"conditions"`
	// Runs is how often its steps run that do not say themselves: always, onUpdate or once, as in runOptions; default
	// what its file says.
	Runs string `yaml:"runs" words:"always onUpdate once"`
}

// Job is one file of steps as a node runs it.
type Job struct {
	Name       string
	Validation bool // runs after all jobs, at every pull, and never counts as a change
	Prune      bool // what it brought to a host and no longer declares is removed
	Restore    bool // its files are put back as they were when an upgrade fails
	Conditions Conditions
	Steps      []*Step
	Pos        Position
	Repo       string    // the layer that its file is in; "" with a single one
	Targets    []Target  // whom the base files give it to; of an included job, whom they give the one that includes it
	root       string    // the job of the base files that it came with
	others     []string  // further ones that include it
	among      *[]string // the hosts of the run of a reaction, sorted; nil: it is none
	runs       string    // of its steps that do not say

	empty []string // steps with forEach that there are no items for
}

// Step is one statement of desired state: an action with its parameters, and what must hold before and after.
type Step struct {
	Job        string
	Name       string
	Action     string
	ActionPos  Position
	Params     Params
	Sensitive  bool // what it reads and writes stays out of reports and logs
	Secret     bool // it is sensitive because it holds a secret
	Requisites []Requisite
	Conditions Conditions
	Options    RunOptions
	Pos        Position

	waits []int    // placeholders in Params
	after []string // steps that Params and Conditions name
	item  any      // of the forEach that made it

	secretItem bool // item is a secret, or holds one

	broken bool // it has mistakes of its own
	closes bool // it asks the conditions behind its job
}

// ClosesJob reports the step that stands behind all others of a job and has the job's success and continue.
func (s *Step) ClosesJob() bool { return s.closes }

// Broken reports a step in which mistakes were found: what else seems wrong with it may come from them.
func (s *Step) Broken() bool { return s.broken }

// ID names the step in its catalog: "job/step".
func (s *Step) ID() string { return s.Job + "/" + s.Name }

// ErrorAt is a mistake at a position in the step's file, with its line.
func (s *Step) ErrorAt(pos Position, format string, args ...any) *Error {
	return s.Params.errorAt(pos, format, args...)
}

// Conditions are the expressions around a step or a job.
type Conditions struct {
	When     *Condition `yaml:"when"`     // before: false skips
	Success  *Condition `yaml:"success"`  // after: false fails
	Continue *Condition `yaml:"continue"` // after success: holds what follows until true
}

// All are the conditions that are set.
func (c Conditions) All() []*Condition {
	var out []*Condition
	for _, one := range []*Condition{c.When, c.Success, c.Continue} {
		if one != nil {
			out = append(out, one)
		}
	}
	return out
}

// Condition is an expression, evaluated once or until it holds.
type Condition struct {
	Expression Expression `yaml:"condition,required"` // in the language of https://expr-lang.org: server.memory > 1024
	Retry      *Retry     `yaml:"retry"`              // ask again until it holds
}

// Retry says how often a condition is tried again.
type Retry struct {
	Interval Duration `yaml:"interval"`        // between two attempts, more than 0s; default 10s
	Limit    int      `yaml:"limit" least:"0"` // attempts in all; 0: until the run's deadline; default 0
}

// defaultRetry is how long a retry waits between two attempts when it does not say.
const defaultRetry = 10 * time.Second

// RunOptions are how a step runs. Those of a file are the defaults of its steps.
type RunOptions struct {
	// Runs: always is checked at every pull; onUpdate only when the version is new or its last run failed; once is done
	// once for these parameters, or with a target once in the life of the fleet, whatever the version; default always.
	Runs string `yaml:"runs" words:"always onUpdate once"`
	// Ordering: ansible is one step after another, in the order of the file; justdoit starts all at once that require
	// nothing; genius too, after what they obviously need: a directory, a package, a user; default ansible.
	Ordering string   `yaml:"ordering" words:"ansible justdoit genius"`
	Timeout  Duration `yaml:"timeout"`  // of the step; 0: the action's own default
	FailHard bool     `yaml:"failHard"` // a failure stops the run
	// false: a command that was cut off is never repeated, as is the rule for commands with target; default true
	Idempotent *bool  `yaml:"idempotent"`
	Retry      *Retry `yaml:"retry"` // try again when the action fails; limit counts all attempts
	// Sync holds what depends on the step until every host that has it came so far.
	Sync bool `yaml:"sync"`
	// Serialize lets a number of hosts take the step at a time, through its conditions.
	Serialize *Serialize `yaml:"serialize"`
	// Target lets a few hosts take the step for all; the others skip it and can read its result.
	Target *StepTarget `yaml:"target"`
	// KeepQuorum holds the step on a host that carries the fleet's datastore until each other member of that answers, and
	// one such host at a time takes it; default true for steps that boot the host or manage pullet-etcd.service.
	KeepQuorum bool `yaml:"keepQuorum"`
	// OnLost is what becomes of a host that stops to answer while others wait for it here; default that of the rollout.
	OnLost string `yaml:"onLost" words:"hold release fail"`
	// FailAfterAllTargetsRan lets a failure stop nobody before all hosts have run the step; it may stand under
	// serialize as well.
	FailAfterAllTargetsRan bool `yaml:"failAfterAllTargetsRan"`
	// FailureClass says whose fault a failure is: a host fault stops the other hosts only above
	// rollout.maxHostFailures. It is host or commit, or one of them by exit code: {75: host}; default what the error
	// says.
	FailureClass FailureClass `yaml:"failureClass"`
	Explicit     bool         `yaml:"-"` // runs: always was written, not defaulted
}

// Serialize is how many hosts take a step at a time.
type Serialize struct {
	// of hosts: 2, or a share of those that have the step: 10%
	Count Limit `yaml:"count,required"`
	// a failure stops the others only when all have run the step
	FailAfterAllTargetsRan bool `yaml:"failAfterAllTargetsRan"`
}

// StepTarget chooses the hosts that take a step for all. Steps with the same limit and hosts are taken by the same
// ones.
type StepTarget struct {
	Limit  int      `yaml:"limit" least:"0"` // how many, 1 or more; default 1
	Hosts  Selector `yaml:"hosts"`           // who may be chosen; default every host that has the step
	MaxAge Duration `yaml:"maxAge"`          // a result that is older is made anew; default never
}

func (o *RunOptions) decode(d *decoder, n *yaml.Node) {
	if isNull(n) {
		return
	}
	d.object(n, reflect.ValueOf(o).Elem(), "runOptions")
	o.Explicit = o.Runs == "always"
	if o.Serialize != nil && o.Serialize.FailAfterAllTargetsRan {
		o.FailAfterAllTargetsRan = true
	}
	if o.Serialize != nil {
		if none, ok := o.Serialize.Count.Of(1); ok && none == 0 {
			d.failf(n, "serialize: count: expected 1 or more: with 0 no host could ever take the step")
		}
	}
}

func (t *StepTarget) decode(d *decoder, n *yaml.Node) {
	if t.Limit == 0 {
		t.Limit = 1
	}
	if d.object(n, reflect.ValueOf(t).Elem(), "target"); t.Limit == 0 {
		d.failf(fieldOf(n, "limit"), "target: limit: expected 1 or more: with 0 no host would take the step")
	}
}

func (r *Retry) decode(d *decoder, n *yaml.Node) {
	if r.Interval == 0 {
		r.Interval = Duration(defaultRetry)
	}
	if d.object(n, reflect.ValueOf(r).Elem(), "retry"); r.Interval == 0 {
		d.failf(
			fieldOf(n, "interval"),
			"retry: interval: expected more than 0s, such as 10s: without a pause the attempts would keep the host busy",
		)
	}
}

// fieldOf is the value of a map's field, for messages; the map where it has none.
func fieldOf(n *yaml.Node, name string) *yaml.Node {
	if of, ok := child(n, name); ok {
		return of.value
	}
	return n
}

// oneOf checks a field that has only a few values.
func (d *decoder) oneOf(e entry, value string, allowed []string) {
	if value != "" && !slices.Contains(allowed, value) {
		d.failf(e.value, "%s: expected %s, found %q", e.key.Value, strings.Join(allowed, " or "), value)
	}
}

// jobsCompiler reads the jobs of a catalog.
type jobsCompiler struct {
	c     *compiler
	all   []*Job
	count int // of steps
}

// compile collects the node's jobs, then its validations.
func (j *jobsCompiler) compile() {
	known, given := map[string]bool{}, map[string][]Target{}
	if !j.c.repo.exists("base/jobs.yaml") { // an empty catalog would count as applied
		e := &Error{
			Pos:     Position{File: "base/jobs.yaml"},
			Message: "there is no such file, so nothing would be applied",
		}
		if j.c.repo.exists("base/jobs.yml") {
			e.Hint = "base/jobs.yml is not read: rename it"
		}
		j.c.fail(e)
	}
	for _, base := range j.c.files.base("base/jobs.yaml") {
		var body jobsBase
		j.c.files.decode(base, &body) // what is wrong here does not hide what is wrong in the jobs
		j.jobsFor(base, body.Jobs, false, known)
		j.jobsFor(base, body.Validations, true, known)
		for _, t := range slices.Concat(body.Jobs, body.Validations) {
			for _, e := range t.entries {
				given[e.Name] = append(given[e.Name], t.target)
			}
		}
	}
	for _, job := range j.all {
		job.Targets = given[job.root]
	}
}

func (j *jobsCompiler) jobsFor(base *document, targets targeted[jobEntry], validation bool, known map[string]bool) {
	for _, t := range targets {
		if !j.c.matches(base, t.key, t.target) {
			continue
		}
		for i, e := range t.entries {
			job := &Job{
				Name:       e.Name,
				Validation: validation,
				Conditions: e.Conditions,
				Pos:        base.pos(t.nodes[i]),
				root:       e.Name,
				runs:       e.Runs,
			}
			if validation && e.Runs != "" && e.Runs != "always" {
				j.c.fail(
					base.errorAt(
						t.nodes[i],
						"validation %q: runs: %s would leave it out, and a validation runs at every pull",
						e.Name,
						e.Runs,
					),
				)
			}
			j.add(base, t.nodes[i], job, known)
		}
	}
}

// add reads a job that stands at a node of a document. Several targets and includes may name the same one: it runs
// once.
func (j *jobsCompiler) add(from *document, at *yaml.Node, job *Job, known map[string]bool) {
	if job.Name == "" || known[job.Name] { // a missing name was reported
		for _, first := range j.all {
			if first.Name == job.Name && first.root != job.root && first.root != job.Name {
				first.others = append(first.others, job.root)
			}
		}
		return
	}
	known[job.Name] = true
	path := "jobs/" + job.Name + ".yaml"
	if !j.c.repo.exists(path) {
		err := from.errorAt(at, "job %q: there is no %s", job.Name, path)
		err.Hint = j.c.repo.fileHint("jobs", job.Name)
		j.c.fail(err)
		return
	}
	if place, _ := j.c.repo.locate(path); len(j.c.repo.layers) > 1 {
		job.Repo = place.layer.Name
	}
	j.jobFile(j.c.files.named(path), job, known)
	j.all = append(j.all, job)
}

// Has reports whether the base files give the job to another node, as far as this node's rendering of them tells. In a
// run of a reaction it is among the hosts of the run, too.
func (j *Job) Has(name string, labels map[string]string) bool {
	if j.among != nil {
		if _, in := slices.BinarySearch(*j.among, name); !in {
			return false
		}
	}
	return slices.ContainsFunc(j.Targets, func(t Target) bool { return t.Matches(name, labels) })
}

// GateID names a step of the job for gates that nodes share.
func (j *Job) GateID(step *Step) string {
	id := step.ID()
	if j.root != j.Name {
		id = j.root + ">" + id
	}
	if j.Repo != "" {
		id = j.Repo + ":" + id
	}
	return id
}

// unwrapSpec gives the body of a file whose fields stand under spec beside its metadata.
func unwrapSpec(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode {
		return root
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "spec" && root.Content[i+1].Kind == yaml.MappingNode {
			flat := *root
			flat.Content = slices.Concat(root.Content[:i], root.Content[i+1].Content, root.Content[i+2:])
			return &flat
		}
	}
	return root
}
