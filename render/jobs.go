package render

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// jobsBase is base/jobs.yaml: who runs which jobs, and which validations afterwards.
type jobsBase struct {
	Metadata    *Metadata          `yaml:"metadata"`
	Jobs        targeted[jobEntry] `yaml:"jobs"`
	Validations targeted[jobEntry] `yaml:"validations"`
}

type jobEntry struct {
	Name       string     `yaml:"name,required"`
	Conditions Conditions `yaml:"conditions"`
}

// Job is one file of steps as a node runs it.
type Job struct {
	Name       string
	Validation bool // runs after all jobs, at every pull, and never counts as a change
	Conditions Conditions
	Steps      []*Step
	Pos        Position
}

// Step is one statement of desired state: an action with its parameters, and what must hold before and after.
type Step struct {
	Job        string
	Name       string
	Action     string
	ActionPos  Position
	Params     Params
	Sensitive  bool // what it reads and writes stays out of reports and logs
	Requires   []Requisite
	Conditions Conditions
	Options    RunOptions
	Pos        Position
}

// ID names the step in its catalog: "job/step".
func (s *Step) ID() string { return s.Job + "/" + s.Name }

// ErrorAt is a mistake at a position in the step's file, with its line.
func (s *Step) ErrorAt(pos Position, format string, args ...any) *Error {
	return s.Params.errorAt(pos, format, args...)
}

// Requisite is a reference to another step of the run: `{step: name}`, a bare name, or `{module: name-or-id}` as Salt has it.
type Requisite struct {
	Module string // the action's part before the dot; "" means any, "step" a step's name only
	Name   string
	Pos    Position
}

// Conditions are the expressions around a step or a job.
type Conditions struct {
	When     *Condition `yaml:"when"`     // before: false skips
	Success  *Condition `yaml:"success"`  // after: false fails
	Continue *Condition `yaml:"continue"` // after success: holds what follows until true
}

// Condition is an expression, evaluated once or until it holds.
type Condition struct {
	Expression Expression `yaml:"condition,required"`
	Retry      *Retry     `yaml:"retry"`
}

// Retry says how often a condition is tried again.
type Retry struct {
	Interval Duration `yaml:"interval"` // default 10s
	Limit    int      `yaml:"limit"`    // attempts in all; 0: until the run's deadline
}

// RunOptions are how a step runs. Those of a file are the defaults of its steps.
type RunOptions struct {
	Runs       string   `yaml:"runs"`       // always (default), onUpdate, once
	Ordering   string   `yaml:"ordering"`   // ansible: one after another
	Timeout    Duration `yaml:"timeout"`    // of the step; 0: the action's own default
	FailHard   bool     `yaml:"failHard"`   // a failure stops the run
	Idempotent *bool    `yaml:"idempotent"` // false: a command that was cut off is never repeated
	Explicit   bool     `yaml:"-"`          // runs: always was written, not defaulted
}

func (o *RunOptions) decode(d *decoder, n *yaml.Node) {
	if isNull(n) {
		return
	}
	d.object(n, reflect.ValueOf(o).Elem(), "runOptions")
	o.Explicit = o.Runs == "always"
	d.oneOf(n, "runs", o.Runs, "always", "onUpdate", "once")
	d.oneOf(n, "ordering", o.Ordering, "ansible")
}

// oneOf checks a field that has only a few values.
func (d *decoder) oneOf(n *yaml.Node, field, value string, allowed ...string) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	for _, e := range entries(n) {
		if e.key.Value == field {
			d.failf(e.value, "%s: expected %s, found %q", field, strings.Join(allowed, " or "), value)
		}
	}
}

// jobFile is the body of jobs/NAME.yaml.
type jobFile struct {
	Metadata   *Metadata  `yaml:"metadata"`
	RunOptions RunOptions `yaml:"runOptions"`
	Steps      []stepBody `yaml:"steps,required"`
}

// stepBody is a step as it is written: flat, or with all but its name under spec.
type stepBody struct {
	Name     string    `yaml:"name,required"`
	Spec     *stepSpec `yaml:"spec"`
	stepSpec `yaml:",inline"`
	node     *yaml.Node
}

type stepSpec struct {
	Action     actionName  `yaml:"action"`
	Parameters Params      `yaml:"parameters"`
	Require    requisites  `yaml:"require"`
	Conditions Conditions  `yaml:"conditions"`
	RunOptions stepOptions `yaml:"runOptions"`
	Sensitive  bool        `yaml:"sensitive"`
}

// actionName is an action with its place.
type actionName struct {
	name string
	node *yaml.Node
}

func (a *actionName) decode(d *decoder, n *yaml.Node) {
	d.value(n, reflect.ValueOf(&a.name).Elem(), "action")
	a.node = n
}

// stepOptions keeps the node of a step's options: they are decoded over the file's defaults.
type stepOptions struct{ node *yaml.Node }

func (o *stepOptions) decode(_ *decoder, n *yaml.Node) { o.node = n }

func (b *stepBody) decode(d *decoder, n *yaml.Node) {
	b.node = n
	d.object(n, reflect.ValueOf(b).Elem(), "step")
}

// requisites are references under one requisite key: one, or a list.
type requisites []Requisite

func (r *requisites) decode(d *decoder, n *yaml.Node) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		item = resolve(item)
		one := Requisite{Pos: d.doc.pos(item)}
		switch {
		case isNull(item):
			continue
		case item.Kind == yaml.ScalarNode:
			one.Name = item.Value
		case item.Kind == yaml.MappingNode && len(item.Content) == 2 && item.Content[1].Kind == yaml.ScalarNode:
			one.Module, one.Name = item.Content[0].Value, item.Content[1].Value
		default:
			d.failf(item, "require: expected a step's name or a map such as {file: /etc/motd}, found %s", kindName(item))
			continue
		}
		*r = append(*r, one)
	}
}

// compileJobs collects the node's jobs, then its validations.
func (c *compiler) compileJobs() {
	known := map[string]bool{}
	for _, base := range c.baseFiles("base/jobs.yaml") {
		var body jobsBase
		c.decode(base, &body) // what is wrong here does not hide what is wrong in the jobs
		c.jobsFor(base, body.Jobs, false, known)
		c.jobsFor(base, body.Validations, true, known)
	}
}

func (c *compiler) jobsFor(base *document, targets targeted[jobEntry], validation bool, known map[string]bool) {
	for _, t := range targets {
		if !t.target.Matches(c.scope.in.Node.Name, c.scope.in.Node.Labels) {
			continue
		}
		for i, e := range t.entries {
			if e.Name == "" || known[e.Name] { // a missing name was reported; several targets may name the same job: it runs once
				continue
			}
			known[e.Name] = true
			path := "jobs/" + e.Name + ".yaml"
			if !c.repo.exists(path) {
				err := base.errorAt(t.nodes[i], "job %q: there is no %s", e.Name, path)
				err.Hint = didYouMean(e.Name, c.repo.names("jobs"))
				c.fail(err)
				continue
			}
			job := &Job{Name: e.Name, Validation: validation, Conditions: e.Conditions, Pos: base.pos(t.nodes[i])}
			c.jobFile(c.document(path), job)
			c.jobs = append(c.jobs, job)
		}
	}
}

// jobFile reads the steps of a job.
func (c *compiler) jobFile(doc *document, job *Job) {
	if doc == nil || doc.root == nil {
		return
	}
	d := &decoder{doc: doc}
	defer func() { c.errs = append(c.errs, d.errs...) }()
	var body jobFile
	d.value(unwrapSpec(doc.root), reflect.ValueOf(&body).Elem(), "")
	names := map[string]bool{}
	for i := range body.Steps {
		step := d.step(&body.Steps[i], job, body.RunOptions)
		if names[step.Name] {
			d.failf(body.Steps[i].node, "there are two steps named %q in this job: names are how steps refer to each other", step.Name)
		}
		names[step.Name] = true
		job.Steps = append(job.Steps, step)
	}
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

// step gives a written step its final shape.
func (d *decoder) step(b *stepBody, job *Job, defaults RunOptions) *Step {
	spec := b.stepSpec
	if b.Spec != nil {
		if spec.Action.name != "" {
			d.failf(b.node, "step %q has an action beside spec and one in it: keep one", b.Name)
		}
		spec = *b.Spec
	}
	if spec.Action.name == "" {
		d.failf(b.node, "step %q: \"action\" is missing", b.Name)
	}
	options := defaults
	if spec.RunOptions.node != nil {
		options.decode(d, spec.RunOptions.node)
	}
	if spec.Parameters.doc == nil {
		spec.Parameters.doc = d.doc
	}
	if e, ok := spec.Parameters.take("require"); ok { // among the parameters, as Salt has it
		spec.Require.decode(d, e.value)
	}
	step := &Step{
		Job: job.Name, Name: b.Name, Action: spec.Action.name, Params: spec.Parameters, Requires: spec.Require,
		Conditions: spec.Conditions, Options: options, Sensitive: spec.Sensitive, Pos: d.doc.pos(b.node),
	}
	if spec.Action.node != nil {
		step.ActionPos = d.doc.pos(spec.Action.node)
	}
	return step
}
