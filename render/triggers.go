package render

import (
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/safetext"
)

// eventsFile says who evaluates which triggers.
const eventsFile = "base/events.yaml"

// eventsBase is base/events.yaml: who evaluates which triggers.
type eventsBase struct {
	Metadata *Metadata     `yaml:"metadata"`        // names the file; it changes nothing
	Events   eventSettings `yaml:"events,required"` // who looks for what
}

// eventSettings are who looks for what.
type eventSettings struct {
	Triggers targeted[triggerEntry] `yaml:"triggers"` // by target; of all files below events/
}

// triggerEntry is a trigger of a target.
type triggerEntry struct {
	Name string `yaml:"name,required"` // its key in a file below events/
}

// triggerFile is a file of triggers by name: what a host looks for, and the events that it raises when it finds it.
//
// Example:
//
//	node_updates_available:
//	  expression: macros['pkg.uptodate']() != true
//	  interval: 10m
//	  for: 5m
//	  data: {os: '{{ server.os }}'}
type triggerFile struct {
	Metadata *Metadata `yaml:"metadata"` // names the file; it changes nothing
}

// triggerBody is an expression that raises an event when it becomes true, and again when it was false between.
type triggerBody struct {
	Expression Expression `yaml:"expression,required"` // macros['pkg.uptodate']() != true
	Name       string     `yaml:"name"`                // of the event; default the key of the trigger
	Interval   Duration   `yaml:"interval"`            // pullet agent judges it so often; default the agent's interval
	For        Duration   `yaml:"for"`                 // it has to be true for so long; default 0s
	Data       Params     `yaml:"data"`                // what the event says: event.data.KEY
}

// Trigger is an expression that raises an event when it becomes true.
type Trigger struct {
	Name       string // its key
	Event      string // the name of the event
	Expression Expression
	Interval   time.Duration // between two judgements; 0: at each pull, and at the agent's interval
	For        time.Duration // the expression has to be true for so long
	Data       Params        // of the event: Data.Value()
	Pos        Position
}

// triggersIn are those of a document: base/events.yaml, or base/config.yaml.
type triggersIn struct {
	doc  *document
	body eventSettings
}

// triggersCompiler reads the triggers of a catalog.
type triggersCompiler struct {
	c      *compiler
	config []triggersIn        // of base/config.yaml
	all    map[string]*Trigger // those of all files below events/, by name; nil: one with mistakes
	read   bool
	mine   []*Trigger
}

// compile collects the node's triggers.
func (t *triggersCompiler) compile() {
	all := t.config
	for _, doc := range t.c.files.base(eventsFile) {
		var body eventsBase
		t.c.files.decode(doc, &body)
		all = append(all, triggersIn{doc, body.Events})
	}
	mine := map[string]*Trigger{}
	for _, in := range all {
		for _, target := range in.body.Triggers {
			if !t.c.matches(in.doc, target.key, target.target) {
				continue
			}
			for i, e := range target.entries {
				if found := t.find(in.doc, target.nodes[i], e.Name); found != nil {
					mine[e.Name] = found
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		t.mine = append(t.mine, mine[name])
	}
}

// find is the trigger of a name that stands at a node.
func (t *triggersCompiler) find(from *document, at *yaml.Node, name string) *Trigger {
	if !t.read {
		t.readAll()
	}
	found, known := t.all[name]
	if !known && name != "" { // a missing name was reported
		e := from.errorAt(at, "there is no trigger %q in a file below events/", name)
		e.Hint = DidYouMean(name, slices.Collect(maps.Keys(t.all)))
		t.c.fail(e)
	}
	return found
}

// readAll reads the files below events/, which are needed by hosts with triggers alone.
func (t *triggersCompiler) readAll() {
	t.read, t.all = true, map[string]*Trigger{}
	for _, path := range t.c.repo.list("events") {
		doc := t.c.files.named(path)
		if doc == nil || doc.root == nil {
			continue
		}
		d := &decoder{doc: doc}
		if doc.root.Kind != yaml.MappingNode {
			d.failf(doc.root, "expected a map of triggers, found %s", kindName(doc.root))
		} else {
			t.file(d, doc)
		}
		t.c.errs = append(t.c.errs, d.errs...)
	}
}

// file reads the triggers of a file. One with mistakes is known, and nil.
func (t *triggersCompiler) file(d *decoder, doc *document) {
	describing := d.described(doc.root, true)
	for _, e := range entries(doc.root) {
		name := e.key.Value
		if slices.Contains(describing, name) {
			continue
		}
		if first, again := t.all[name]; again {
			where := "another file"
			if first != nil {
				where = first.Pos.String()
			}
			d.failf(e.key, "trigger %q stands in %s, too", name, where)
			continue
		}
		t.all[name] = t.trigger(d, e)
	}
}

// trigger reads one trigger; nil after a mistake.
func (t *triggersCompiler) trigger(d *decoder, e entry) *Trigger {
	before := len(d.errs)
	if isOpaque(e.key) {
		d.failf(e.key, "the name of a trigger cannot come from a host's facts or from another host")
		return nil
	}
	var body triggerBody
	if isNull(e.value) {
		d.failf(e.key, "trigger %q is empty: write expression: EXPRESSION", e.key.Value)
		return nil
	}
	d.into(e.value, &body)
	out := &Trigger{
		Name: e.key.Value, Event: e.key.Value, Expression: body.Expression, Interval: body.Interval.Std(),
		For: body.For.Std(), Data: body.Data, Pos: d.doc.pos(e.key),
	}
	at := e.key
	if body.Name != "" {
		out.Event, at = body.Name, fieldOf(e.value, "name")
	}
	if isOpaque(at) || !safetext.EventName(out.Event) {
		d.failf(at, "%q is no name of an event: write a path such as updates/available", shortened(out.Event))
	}
	if e.value.Kind == yaml.MappingNode && hasKey(e.value, "interval") && out.Interval == 0 && len(d.errs) == before {
		d.failf(fieldOf(e.value, "interval"), "interval: expected more than 0s, such as 10m")
	}
	d.errs = append(d.errs, body.Expression.ofTrigger()...)
	if len(d.errs) > before {
		return nil
	}
	return out
}

// notInTriggers are the roots that an expression of a trigger cannot ask for, each with the reason.
var notInTriggers = map[string]string{
	"event":  "a trigger raises an event, and answers none: reactions/**.yaml answer it",
	"step":   "a trigger is judged between runs, when no step has run",
	"steps":  "a trigger is judged between runs, when no step has run",
	"result": "a trigger is judged between runs, when no step has run",
	"item":   "item is known only in a step with forEach",
}

// ofTrigger finds what an expression asks for that a trigger does not have.
func (e Expression) ofTrigger() ErrorList {
	var out ErrorList
	for _, root := range e.roots {
		if why := notInTriggers[root.name]; why != "" {
			out = append(out, e.ErrorAt(root.at, root.name+": "+why))
		}
	}
	return out
}
