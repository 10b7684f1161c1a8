package render

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// jobFile is the body of jobs/NAME.yaml.
type jobFile struct {
	Metadata   *Metadata  `yaml:"metadata"`   // names the file; it changes nothing
	Include    []nameNode `yaml:"include"`    // jobs that run before this one
	RunOptions RunOptions `yaml:"runOptions"` // of the steps that do not say
	// remove what the job brought to a host and no longer declares; without it that is reported only
	Prune bool `yaml:"prune"`
	// restore puts the job's files back as they were when an upgrade's steps of this job or its validations fail
	OnFailure string            `yaml:"onFailure" words:"restore"`
	Defaults  map[string]Params `yaml:"defaults"`       // parameters by action, of the steps that do not say
	Steps     []stepNode        `yaml:"steps,required"` // in their order
}

// stepBody is a step as it is written: flat, or with all but its name under spec.
type stepBody struct {
	Name string    `yaml:"name,required"` // unique in the job
	Spec *stepSpec `yaml:"spec"`          // all but the name may stand here instead
	// a list, or an expression that gives one: a step for each item, which its templates see as item
	ForEach  itemsNode `yaml:"forEach"`
	stepSpec `yaml:",inline"`
	node     *yaml.Node
}

// stepSpec is what a step says.
type stepSpec struct {
	Action          actionName  `yaml:"action"`     // what should be: one of the actions
	Parameters      Params      `yaml:"parameters"` // of the action: a map, or a list of maps with one key each
	Conditions      Conditions  `yaml:"conditions"` // what must hold before and after
	RunOptions      stepOptions `yaml:"runOptions"` // when and how long it runs
	Sensitive       bool        `yaml:"sensitive"`  // keep what it reads and writes out of reports
	requisiteFields `yaml:",inline"`
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

// jobFile reads the steps of a job.
func (j *jobsCompiler) jobFile(doc *document, job *Job, known map[string]bool) {
	if doc == nil || doc.root == nil {
		return
	}
	d := &decoder{doc: doc}
	defer func() {
		if doc.cut { // it may stand in the block
			d.errs = slices.DeleteFunc(d.errs, func(e *Error) bool {
				_, missing := errors.AsType[missingField](e)
				return missing
			})
		}
		j.c.errs = append(j.c.errs, d.errs...)
	}()
	var file jobFile
	d.value(fileBody(doc.root, reflect.TypeFor[jobFile]()), reflect.ValueOf(&file).Elem(), "")
	if job.runs != "" {
		file.RunOptions.Runs, file.RunOptions.Explicit = job.runs, job.runs == "always"
	}
	job.Prune, job.Restore = file.Prune, file.OnFailure == "restore"
	if job.Validation && (job.Prune || job.Restore) {
		d.failf(doc.root, "job %q is a validation, which changes nothing: prune and onFailure belong to a job", job.Name)
	}
	for _, e := range entries(doc.root) {
		if e.key.Value != "steps" && e.key.Value != "spec" {
			j.c.files.checkPlaces(doc, e.value, false)
			j.c.files.checkSecretPlaces(doc, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{e.key, e.value}})
		}
	}
	for _, include := range file.Include {
		j.add(
			doc,
			include.node,
			&Job{
				Name:       include.node.Value,
				Validation: job.Validation,
				Pos:        doc.pos(include.node),
				root:       job.root,
				runs:       job.runs,
			},
			known,
		)
	}
	names := map[string]bool{}
	for _, body := range file.Steps {
		instances := j.instances(d, body.node)
		if len(instances) == 0 {
			job.empty = append(job.empty, nameIn(body.node))
		}
		for _, one := range instances {
			node := one.node
			step := j.step(d, one, job, &file)
			if names[step.Name] {
				d.failf(
					node,
					"there are two steps named %q in this job: names are how steps refer to each other",
					step.Name,
				)
			}
			names[step.Name] = true
			job.Steps = append(job.Steps, step)
			if j.count++; j.count > maxSteps {
				d.failf(node, "the node has more than %d steps", maxSteps)
				return
			}
		}
	}
	job.closes(doc, file.RunOptions.Ordering)
}

// closingStep names the step that asks the conditions behind a job.
const closingStep = "(conditions)"

// closes gives the job a last step that does nothing, requires all others, and has the conditions that follow the job:
// they fail the job or hold what follows as those of a step do.
func (j *Job) closes(doc *document, ordering string) {
	if j.Conditions.Success == nil && j.Conditions.Continue == nil {
		return
	}
	last := &Step{
		Job: j.Name, Name: closingStep, Action: "test.succeed", ActionPos: j.Pos, Params: Params{doc: doc}, Pos: j.Pos,
		Conditions: Conditions{Success: j.Conditions.Success, Continue: j.Conditions.Continue},
		Options:    RunOptions{Ordering: ordering}, closes: true,
	}
	for _, s := range j.Steps {
		last.Requisites = append(last.Requisites, Requisite{Kind: "require", Module: "step", Name: s.Name, Pos: j.Pos})
	}
	j.Conditions.Success, j.Conditions.Continue = nil, nil
	j.Steps = append(j.Steps, last)
}

// step decodes one step.
func (j *jobsCompiler) step(d *decoder, one instance, job *Job, file *jobFile) *Step {
	before := len(d.errs)
	var body stepBody
	d.value(one.node, reflect.ValueOf(&body).Elem(), "step")
	if at := body.actionNode(); at != nil && isOpaque(at) && j.c.scope.in.Event != nil {
		d.failf(at, "which action runs cannot come from an event or from what hosts say: whoever raises it would choose")
	}
	step := d.step(&body, job, file)
	step.item, step.secretItem = one.item, j.c.scope.secrets.hasAny(textsIn(one.item, nil))
	step.Secret = j.c.scope.secrets.inNode(d.doc, one.node)
	step.Sensitive = step.Sensitive || step.Secret
	for _, condition := range step.Conditions.All() {
		condition.Expression.withItem(d, one.item)
	}
	j.c.files.checkPlaces(d.doc, one.node, false)
	j.c.files.checkSecretPlaces(d.doc, one.node)
	j.c.refs.waitsFor(step)
	step.broken = d.doc.broken || len(d.errs) > before || d.doc.partial && loses(one.node)
	if d.doc.partial && strings.Contains(step.Action, lost) {
		step.Action = ""
	}
	return step
}

// actionNode is where the action is named; nil where it is not.
func (b *stepBody) actionNode() *yaml.Node {
	if b.Spec != nil {
		return b.Spec.Action.node
	}
	return b.Action.node
}

// specNode is what stands under spec.
func (b *stepBody) specNode() *yaml.Node {
	for _, e := range entries(b.node) {
		if e.key.Value == "spec" {
			return e.value
		}
	}
	return b.node
}

func stepPrefix(name string) string {
	if name == "" {
		return "step: "
	}
	return fmt.Sprintf("step %q: ", name)
}

// step gives a written step its final shape.
func (d *decoder) step(b *stepBody, job *Job, file *jobFile) *Step {
	spec := b.stepSpec
	if b.Spec != nil {
		if spec.Action.name != "" {
			d.failf(b.node, "step %q has an action beside spec and one in it: keep one", b.Name)
		}
		spec = *b.Spec
	}
	if spec.Action.name == "" {
		if b.node.Kind == yaml.MappingNode { // else that was said
			d.failf(b.node, "%s\"action\" %v", stepPrefix(b.Name), missingField{"action"})
		}
	}
	options := file.RunOptions
	if spec.RunOptions.node != nil {
		options.decode(d, spec.RunOptions.node)
	}
	d.checkGateName(b, options)
	if job.Validation && options.gated() {
		d.failf(b.node, "step %q is in a validation, which each host runs alone at every pull: sync, serialize and target "+
			"belong to a step of a job", b.Name)
	}
	if job.Validation && !slices.Contains([]string{"", "always"}, options.Runs) {
		d.failf(b.node, "step %q is in a validation, which runs at every pull: runs: %s would leave it out",
			b.Name, options.Runs)
	}
	if spec.Parameters.doc == nil {
		spec.Parameters.doc = d.doc
	}
	spec.Parameters.defaults(file.Defaults[spec.Action.name])
	body := b.node
	if b.Spec != nil {
		body = b.specNode()
	}
	requisites := d.stepRequisites(body, &spec.Parameters)
	step := &Step{
		Job: job.Name, Name: b.Name, Action: spec.Action.name, Params: spec.Parameters, Requisites: requisites,
		Conditions: spec.Conditions, Options: options, Sensitive: spec.Sensitive, Pos: d.doc.pos(b.node),
	}
	if spec.Action.node != nil {
		step.ActionPos = d.doc.pos(spec.Action.node)
	}
	return step
}
