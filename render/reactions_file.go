package render

import (
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"
)

// reactionsFile is a file below reactions/: which jobs start when something happens, on which hosts, and how often at
// most.
//
// Example:
//
//	reactions:
//	  # alerts that Alertmanager sends, named my-cool-alert
//	  prometheus/alert/my-cool-alert:
//	    reaction:
//	      jobs:
//	        '*':
//	          - name: prometheus/alert-runbooks/my-cool-alert
//	      targets: event
//	    triggerLimiter:
//	      minOccurrences: 2
//	      reReactDelay: 5m
//	      waitForMore:
//	        timeout: 2m
//	        resetTimeoutOnMore: true
//	  # a step that failed on some host
//	  pullet/step/failed:
//	    reaction:
//	      conditions:
//	        when:
//	          condition: event.occurrences > 10
//	      jobs:
//	        - name: orchestrated/reboot_server
type reactionsFile struct {
	Metadata *Metadata `yaml:"metadata"` // names the file; it changes nothing
	// by the name of an event, or a glob over names: * matches within one word of a path, ** as the last word all that
	// follows
	Reactions reactionTable `yaml:"reactions,required"`
}

// reactionTable are reactions by name, in the order of the file.
type reactionTable []writtenReaction

// writtenReaction is a reaction as it is written.
type writtenReaction struct {
	key, value *yaml.Node
	body       reactionBody
	bad        bool // it has mistakes
}

func (t *reactionTable) decode(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.failf(n, "reactions: expected a map of reactions by the names of events, found %s", kindName(n))
		return
	}
	for _, e := range entries(n) {
		one, before := writtenReaction{key: e.key, value: e.value}, len(d.errs)
		if isNull(e.value) {
			d.failf(e.key, emptyReaction, shortened(e.key.Value))
		}
		d.value(e.value, reflect.ValueOf(&one.body).Elem(), e.key.Value)
		one.bad = len(d.errs) > before
		*t = append(*t, one)
	}
}

func (t *reactionTable) shape() *Shape {
	return &Shape{Kind: Table, Elem: ShapeOf(reflect.TypeFor[reactionBody]())}
}

// reactionBody is what follows an event.
type reactionBody struct {
	Reaction       reactionStart `yaml:"reaction,required"` // what starts, where and when
	TriggerLimiter limiterBody   `yaml:"triggerLimiter"`    // how many events it takes, and how often it starts
}

// reactionStart is what starts, where and when.
type reactionStart struct {
	// by target, as in base/jobs.yaml; or a list of job files, which run on every host, or on the targets that they have
	// themselves: jobs: {TARGET: [{name: JOB}]}
	Jobs       reactionJobs       `yaml:"jobs,required"`
	Conditions reactionConditions `yaml:"conditions"` // judged once, for the fleet
	// narrows the hosts of jobs: event is those that the event is about, all is every one, else a target: role=web;
	// default the targets of jobs alone
	Targets string     `yaml:"targets"`
	On      reactionOn `yaml:"on"` // change: it may run beside a rollout; default it waits for the rollout, or that for it
}

// reactionJob is a job of a target.
type reactionJob struct {
	Name       string     `yaml:"name,required"` // web for jobs/web.yaml
	Conditions Conditions `yaml:"conditions"`    // around the job as a whole, judged on each host
}

// reactionName is a job file.
type reactionName struct {
	Name string `yaml:"name,required"` // web for jobs/web.yaml
}

// jobTargets is a file below jobs/ that has targets of its own instead of steps. Reactions name it, in a list; it is no
// template.
type jobTargets struct {
	Metadata *Metadata             `yaml:"metadata"`      // names the file; it changes nothing
	Jobs     targeted[reactionJob] `yaml:"jobs,required"` // by target, as in base/jobs.yaml
}

// reactionJobs are jobs by target, or a list of files.
type reactionJobs struct {
	node    *yaml.Node
	targets targeted[reactionJob]
	list    []reactionName
}

func (j *reactionJobs) decode(d *decoder, n *yaml.Node) {
	switch j.node = n; {
	case isNull(n):
	case n.Kind == yaml.SequenceNode:
		d.value(n, reflect.ValueOf(&j.list).Elem(), "jobs")
	case n.Kind == yaml.MappingNode:
		j.targets.decode(d, n)
	default:
		d.failf(
			n, "jobs: expected a map of targets, or a list of job files such as [{name: web}], found %s", kindName(n),
		)
	}
}

func (j *reactionJobs) shape() *Shape {
	list := &Shape{Kind: List, Elem: ShapeOf(reflect.TypeFor[reactionName]())}
	byTarget := (*targeted[reactionJob])(nil).shape()
	return &Shape{
		Kind: Either, Name: "lists by target, or list of job files", NotNull: true,
		Either: []*Shape{byTarget, list},
	}
}

// reactionConditions are what must hold for a reaction to start.
type reactionConditions struct {
	When *reactionWhen `yaml:"when"` // false: the events are answered by nothing
}

// reactionWhen is an expression over event, servervars, services and pullet.
type reactionWhen struct {
	Condition Expression `yaml:"condition,required"` // event.occurrences > 10
}

func (c *reactionConditions) decode(d *decoder, n *yaml.Node) {
	said := map[string]string{
		"success":  "is about what a step did: a job or a step has it",
		"continue": "is about what a step did: a job or a step has it",
	}
	d.object(d.without(n, said), reflect.ValueOf(c).Elem(), "conditions")
}

func (w *reactionWhen) decode(d *decoder, n *yaml.Node) {
	said := map[string]string{
		"retry": "a reaction is judged once, when its events are there: triggerLimiter.waitForMore waits for more of " +
			"them, and the conditions of a job have retry",
	}
	d.object(d.without(n, said), reflect.ValueOf(w).Elem(), "when")
}

// without is a map without fields that do not belong there, each of which is a mistake that says why.
func (d *decoder) without(n *yaml.Node, said map[string]string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return n
	}
	kept := *n
	kept.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if why := said[n.Content[i].Value]; why != "" {
			d.failf(n.Content[i], "%s: %s", n.Content[i].Value, why)
			continue
		}
		kept.Content = append(kept.Content, n.Content[i], n.Content[i+1])
	}
	return &kept
}

// reactionOn is beside what a reaction may run.
type reactionOn struct{ change bool }

func (o *reactionOn) decode(d *decoder, n *yaml.Node) {
	var words Strings
	words.decode(d, n)
	for _, word := range words {
		if o.change = word == "change"; !o.change {
			d.failf(n, "on: expected change, found %q", word)
			return
		}
	}
}

func (o *reactionOn) shape() *Shape {
	one := &Shape{Kind: Text, Words: []string{"change"}}
	return &Shape{Kind: Either, Name: "change, or list of it", Either: []*Shape{one, {Kind: List, Elem: one}}}
}

// limiterBody is how many events a reaction takes, and how often it starts.
type limiterBody struct {
	// so many events within window start it; default 1
	MinOccurrences int      `yaml:"minOccurrences"`
	MinOccurences  int      `yaml:"minOccurences"` // the older spelling of minOccurrences; default 1
	Window         Duration `yaml:"window"`        // how long an event counts; default 1h
	ReReactDelay   Duration `yaml:"reReactDelay"`  // at least so long between two starts for the same hosts; default 0s
	ReReactDealy   Duration `yaml:"reReactDealy"`  // the older spelling of reReactDelay; default 0s
	// wait, once there are enough, so that events that come close together start it once
	WaitForMore *waitForMore `yaml:"waitForMore"`

	node *yaml.Node
}

// waitForMore is how long a reaction waits for further events.
type waitForMore struct {
	Timeout            Duration `yaml:"timeout,required"`   // from the event that made them enough
	ResetTimeoutOnMore bool     `yaml:"resetTimeoutOnMore"` // each further event lets it wait for timeout again
	Max                Duration `yaml:"max"`                // never longer than this; default 10 times timeout
}

const defaultWindow = time.Hour

func (l *limiterBody) decode(d *decoder, n *yaml.Node) {
	before := len(d.errs)
	if l.node = n; !isNull(n) {
		d.object(n, reflect.ValueOf(l).Elem(), "triggerLimiter")
	}
	d.oneSpelling(n, "minOccurrences", "minOccurences")
	d.oneSpelling(n, "reReactDelay", "reReactDealy")
	if len(d.errs) == before && !isNull(n) {
		l.check(d)
	}
}

// oneSpelling refuses both spellings of a field.
func (d *decoder) oneSpelling(n *yaml.Node, name, older string) {
	if n.Kind == yaml.MappingNode && hasKey(n, name) && hasKey(n, older) {
		d.failf(fieldOf(n, older), "%s and %s say the same thing: keep %s", older, name, name)
	}
}

// check refuses a limiter that would never start anything, or holds nothing back although it seems to.
func (l *limiterBody) check(d *decoder) {
	for _, name := range []string{"minOccurrences", "minOccurences"} {
		if hasKey(l.node, name) && l.MinOccurrences+l.MinOccurences < 1 {
			d.failf(fieldOf(l.node, name), "%s: expected 1 or more", name)
		}
	}
	if hasKey(l.node, "window") && l.Window == 0 {
		d.failf(fieldOf(l.node, "window"), "window: expected more than 0s: no event would count")
	}
	w := l.WaitForMore
	if w == nil {
		return
	}
	at, window := fieldOf(l.node, "waitForMore"), l.limiter().Window
	switch {
	case w.Timeout == 0:
		d.failf(fieldOf(at, "timeout"), "waitForMore: timeout: expected more than 0s, such as 2m")
	case hasKey(at, "max") && w.Max < w.Timeout:
		d.failf(
			fieldOf(at, "max"), "waitForMore: max: %s is shorter than the timeout of %s", w.Max.Std(), w.Timeout.Std(),
		)
	case window < w.Timeout.Std():
		d.failf(fieldOf(at, "timeout"), "waitForMore: timeout: in %s the events are forgotten that it waits with: "+
			"window is %s; make it longer", w.Timeout.Std(), window)
	}
}

// longest is how long the wait may be.
func (w *waitForMore) longest() time.Duration {
	if w.Max != 0 || w.Timeout > Duration(1<<62)/10 {
		return w.Max.Std()
	}
	return 10 * w.Timeout.Std()
}

// limiter is the limiter with its defaults.
func (l *limiterBody) limiter() Limiter {
	out := Limiter{
		MinOccurrences: max(1, l.MinOccurrences, l.MinOccurences), Window: defaultWindow,
		ReReactDelay: max(l.ReReactDelay, l.ReReactDealy).Std(),
	}
	if l.Window != 0 {
		out.Window = l.Window.Std()
	}
	if w := l.WaitForMore; w != nil {
		out.Timeout, out.Max, out.ResetTimeoutOnMore = w.Timeout.Std(), w.longest(), w.ResetTimeoutOnMore
	}
	return out
}

// ofFleet finds what an expression asks for that one host has, and not the fleet.
func (e Expression) ofFleet() ErrorList {
	var out ErrorList
	for _, root := range e.roots {
		if slices.Contains(ofHost, root.name) {
			bad := e.ErrorAt(root.at, root.name+" belongs to one host, and this is judged once for the fleet")
			bad.Hint = "put it at the job: jobs: {'*': [{name: JOB, conditions: {when: {condition: EXPRESSION}}}]}"
			out = append(out, bad)
		}
	}
	return append(out, e.eventMistakes()...)
}
