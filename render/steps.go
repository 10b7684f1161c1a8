package render

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v4"
)

// jobFile is the body of jobs/NAME.yaml.
type jobFile struct {
	Metadata   *Metadata         `yaml:"metadata"`                  // names the file; it changes nothing
	Include    []nameNode        `yaml:"include"`                   // jobs that run before this one
	RunOptions RunOptions        `yaml:"runOptions"`                // of the steps that do not say
	Prune      bool              `yaml:"prune"`                     // remove what the job brought to a host and no longer declares; without it that is reported only
	OnFailure  string            `yaml:"onFailure" words:"restore"` // restore puts the job's files back as they were when an upgrade's steps of this job or its validations fail
	Defaults   map[string]Params `yaml:"defaults"`                  // parameters by action, of the steps that do not say
	Steps      []stepNode        `yaml:"steps,required"`            // in their order
}

// stepBody is a step as it is written: flat, or with all but its name under spec.
type stepBody struct {
	Name     string    `yaml:"name,required"` // unique in the job
	Spec     *stepSpec `yaml:"spec"`          // all but the name may stand here instead
	ForEach  itemsNode `yaml:"forEach"`       // a list, or an expression that gives one: a step for each item, which its templates see as item
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
func (c *compiler) jobFile(doc *document, job *Job, known map[string]bool) {
	if doc == nil || doc.root == nil {
		return
	}
	d := &decoder{doc: doc}
	defer func() { c.errs = append(c.errs, d.errs...) }()
	var file jobFile
	d.value(unwrapSpec(doc.root), reflect.ValueOf(&file).Elem(), "")
	job.Prune, job.Restore = file.Prune, file.OnFailure == "restore"
	for _, e := range entries(doc.root) {
		if e.key.Value != "steps" && e.key.Value != "spec" {
			c.checkPlaces(doc, e.value, false)
		}
	}
	for _, include := range file.Include {
		c.addJob(doc, include.node, &Job{Name: include.node.Value, Validation: job.Validation, Pos: doc.pos(include.node)}, known)
	}
	names := map[string]bool{}
	for _, body := range file.Steps {
		for _, node := range c.instances(d, body.node) {
			step := c.step(d, node, job, &file)
			if names[step.Name] {
				d.failf(node, "there are two steps named %q in this job: names are how steps refer to each other", step.Name)
			}
			names[step.Name] = true
			job.Steps = append(job.Steps, step)
			if c.steps++; c.steps > maxSteps {
				d.failf(node, "the node has more than %d steps", maxSteps)
				return
			}
		}
	}
}

// step decodes one step.
func (c *compiler) step(d *decoder, node *yaml.Node, job *Job, file *jobFile) *Step {
	before := len(d.errs)
	var body stepBody
	d.value(node, reflect.ValueOf(&body).Elem(), "step")
	step := d.step(&body, job, file)
	c.checkPlaces(d.doc, node, false)
	c.waitsFor(step)
	step.broken = d.doc.broken || len(d.errs) > before
	return step
}

// instances are the steps that a step with forEach stands for, or the step itself. Their names have the number of the item behind them,
// and item is filled in.
func (c *compiler) instances(d *decoder, node *yaml.Node) []*yaml.Node {
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		return []*yaml.Node{node}
	}
	var list *yaml.Node
	plain := *node
	plain.Content = nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "forEach" {
			list = resolve(node.Content[i+1])
			continue
		}
		plain.Content = append(plain.Content, node.Content[i], node.Content[i+1])
	}
	if list == nil {
		return []*yaml.Node{node}
	}
	var out []*yaml.Node
	for i, item := range c.items(d, list) {
		instance, err := filled(&plain, func(number int) (string, error) { return c.fillItem(number, item) })
		if err != nil {
			c.errs = append(c.errs, c.repo.asError(d.doc, node, err))
			return nil
		}
		number(instance, i)
		out = append(out, instance)
	}
	return out
}

// number puts the number of an item behind the name of its step.
func number(step *yaml.Node, i int) {
	for k := 0; k+1 < len(step.Content); k += 2 {
		if step.Content[k].Value == "name" {
			step.Content[k+1].Value += fmt.Sprintf("[%d]", i)
		}
	}
}

// maxInstances bounds what one forEach makes.
const maxInstances = 10_000

// items are the values of a forEach: a list as it stands there, or what an expression gives.
func (c *compiler) items(d *decoder, n *yaml.Node) []any {
	if n.Kind == yaml.SequenceNode {
		list, _ := d.any(n).([]any)
		return list
	}
	value, bad := evalValue(d.doc, n, c.scope)
	if bad != nil {
		c.fail(bad)
		return nil
	}
	list, ok := asList(value)
	switch {
	case !ok:
		d.failf(n, "forEach: expected a list or an expression that gives one, found %T", value)
	case len(list) > maxInstances:
		d.failf(n, "forEach: %d items are more than %d", len(list), maxInstances)
		return nil
	}
	return list
}

// asList is a list of any kind, or a map as a list of its entries with key and value, sorted.
func asList(value any) ([]any, bool) {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = v.Index(i).Interface()
		}
		return out, true
	case reflect.Map:
		return mapEntries(v), true
	}
	return nil, false
}

// fillItem is what takes the place of a placeholder in an instance: the text of an action that only needs the item, else a placeholder
// of its own that remembers it.
func (c *compiler) fillItem(number int, item any) (string, error) {
	if number >= len(c.scope.waiting) || !c.scope.waiting[number].item {
		return fmt.Sprintf("\uE000%d\uE001", number), nil
	}
	d := *c.scope.waiting[number]
	d.value = item
	if !d.waits && !c.scope.macros.runsCommand(d.names) {
		return d.execute(c.repo)
	}
	c.scope.waiting = append(c.scope.waiting, &d)
	return fmt.Sprintf("\uE000%d\uE001", len(c.scope.waiting)-1), nil
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
		d.failf(b.node, "step %q: \"action\" is missing", b.Name)
	}
	options := file.RunOptions
	if spec.RunOptions.node != nil {
		options.decode(d, spec.RunOptions.node)
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
