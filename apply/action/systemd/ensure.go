package systemd

import (
	"context"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Ensure keeps a unit of systemd running or stopped, and enabled, disabled or masked for the next boot. The result's
// State is systemd's word: running, exited, dead, failed, listening, waiting.
//
// A started service is one that stays up: the step fails when it ends, or is restarted by systemd, within the settle
// time. It says how the service ended and quotes its journal. A oneshot unit has to end well; it is started once after
// each boot. Unit files that changed are read again first (daemon-reload). When something that the step watches
// changed, a service that runs is restarted, or reloaded with reload: true, once for all that changed; one that this
// step just started is not, and one that is to be stopped stays stopped.
//
// The states restarted and reloaded are not compared with anything: they are done once for each version and set of
// parameters, and start what does not run. To keep a service running, and to restart it on a change, use started with
// watch.
//
// What would end pullet itself, such as a restart of the unit in which it runs, is left for the end of the run and then
// handed to systemd, once. The step does not see whether the unit stays up; the next pull does.
//
// Where its job says prune: true, a unit that neither ran nor was enabled before pullet saw to it is stopped and
// disabled when no step declares it any longer; another one stays as it is.
//
// Where systemd does not run, in a container or a chroot, units can only be enabled, disabled and masked. The same is
// done with --root; what is to run there starts with the next boot.
//
// Example:
//
//	steps:
//	  - name: configuration of web
//	    action: file.managed
//	    parameters: {name: /etc/web.conf, content: "workers = 2\n"}
//	  - name: web
//	    action: service.ensure
//	    parameters:
//	      name: web
//	      state: [started, enabled]
//	      watch: [{file: /etc/web.conf}]
type Ensure struct {
	// the unit: nginx, backup.timer, app@one; .service is added to a name without a type
	Name string `yaml:"name,required"`
	// started, stopped, restarted or reloaded; also enabled, disabled, masked or unmasked; a list for several
	State   render.Strings `yaml:"state"`
	Enabled *bool          `yaml:"enabled"` // whether it starts with the host; default: as it is
	// whether nothing can start it, neither people nor other units; default: as it is
	Masked *bool `yaml:"masked"`
	Reload bool  `yaml:"reload"` // what it watches reloads it and does not restart it
	// how long it may take to start, stop or reload; default: the unit's own and the run's deadline
	Timeout render.Duration `yaml:"timeout"`
	Settle  render.Duration `yaml:"settle"` // how long it must stay up before it counts as started

	unit string // the full name
	run  string // started, stopped, restarted, reloaded, or "" for either
}

// serviceSettle finds most services that fail on their configuration, and costs little.
const serviceSettle = render.Duration(1e9)

// foreignStates are the words of other tools.
var foreignStates = map[string]string{"running": "started", "up": "started", "dead": "stopped", "present": "enabled"}

// serviceStates are the words of state.
var serviceStates = []string{"started", "stopped", "restarted", "reloaded", "enabled", "disabled", "masked", "unmasked"}

// Bind reads the states.
func (a *Ensure) Bind(apply.Binding) error {
	var err error
	if a.unit, err = unitName(a.Name); err != nil {
		return &apply.ParamError{Param: "name", Err: err}
	}
	for _, word := range a.State {
		if err := a.want(word); err != nil {
			return err
		}
	}
	masked := a.Masked != nil && *a.Masked
	switch {
	case a.run == "" && a.Enabled == nil && a.Masked == nil:
		return apply.BadParam("name", "nothing is asked of %s: give state (such as started), enabled or masked", a.unit)
	case masked && (a.run != "" && a.run != "stopped"):
		return apply.BadParam("state", "a masked unit cannot be %s: keep one of the two", a.run)
	case masked && a.Enabled != nil && *a.Enabled:
		return apply.BadParam("state", "a unit cannot be both enabled and masked: keep one of the two")
	case a.Reload && a.run == "restarted":
		return apply.BadParam("reload", "the state restarted and reload: true exclude each other")
	case unitTemplate(a.unit) == a.unit && (a.run != "" || a.Enabled != nil):
		return apply.BadParam(
			"name",
			"%s is a template: name an instance of it, such as %s",
			a.unit,
			strings.Replace(a.unit, "@", "@one", 1),
		)
	}
	return nil
}

// want takes one word of state.
func (a *Ensure) want(word string) error {
	set := func(to **bool, param string, value bool) error {
		if *to != nil && **to != value {
			return apply.BadParam("state", "%s and %s: %t contradict each other", word, param, **to)
		}
		*to = &value
		return nil
	}
	switch word {
	case "enabled", "disabled":
		return set(&a.Enabled, "enabled", word == "enabled")
	case "masked", "unmasked":
		return set(&a.Masked, "masked", word == "masked")
	}
	switch {
	case !slices.Contains(serviceStates, word):
		if ours := foreignStates[word]; ours != "" {
			return apply.BadParam("state", "%q is not a state: here it is %s", word, ours)
		}
		return apply.BadParam("state", "%q is not a state: it is one of %s", word, strings.Join(serviceStates, ", "))
	case a.run != "" && a.run != word:
		return apply.BadParam("state", "%s and %s exclude each other", a.run, word)
	}
	a.run = word
	return nil
}

// Unchecked reports the states that nothing can be compared with.
func (a *Ensure) Unchecked() bool {
	return slices.Contains(a.State, "restarted") || slices.Contains(a.State, "reloaded")
}

// Manages is the unit, where it is to run or to start with the host: brought is one that did neither before.
func (a *Ensure) Manages() []apply.Resource {
	starts := a.run != "" && a.run != "stopped"
	if !starts && (a.Enabled == nil || !*a.Enabled) {
		return nil
	}
	return []apply.Resource{{
		ID: "unit " + a.unit, Absent: "service.ensure",
		Params: map[string]any{"name": a.unit, "state": []string{"stopped", "disabled"}},
	}}
}

// Check compares the unit with what is wanted. A unit that is not known yet is one that an earlier step may bring.
func (a *Ensure) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	m := openUnits(ctx, h)
	defer m.close()
	return a.check(ctx, h, m)
}

func (a *Ensure) check(ctx context.Context, h *apply.Host, m units) (apply.Change, error) {
	u, err := readUnit(ctx, m, a.unit)
	if err != nil {
		return apply.Change{}, a.failed(ctx, "look at", err)
	}
	acts, err := a.acts(ctx, h, m, u)
	if err != nil {
		return apply.Change{}, err
	}
	words := make([]string, 0, len(acts))
	for _, t := range acts {
		words = append(words, t.words)
	}
	return apply.Change{Summary: strings.Join(words, ", "), State: u.word()}, nil
}

// Apply enables before it starts and masks after it stops, as systemctl does.
func (a *Ensure) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	m := openUnits(ctx, h)
	defer m.close()
	return a.apply(ctx, h, m)
}

func (a *Ensure) apply(ctx context.Context, h *apply.Host, m units) (apply.Output, error) {
	u, err := a.fresh(ctx, h, m)
	if err != nil {
		return apply.Output{}, err
	}
	acts, err := a.acts(ctx, h, m, u)
	if err != nil {
		return apply.Output{State: u.word()}, err
	}
	s := &serving{want: a, h: h, units: m, u: u}
	err = s.carry(ctx, acts)
	return apply.Output{
		State:  s.u.word(),
		StdOut: strings.Join(s.said, "\n"),
		Late:   !slices.ContainsFunc(acts, act.runs),
		Later:  s.later,
	}, err
}

// Reaction is what a service does when something that it watches changed.
func (a *Ensure) Reaction() string {
	if a.Reload || a.run == "reloaded" {
		return "reload"
	}
	return "restart"
}

// React restarts or reloads a service that runs, and starts one that is to run.
func (a *Ensure) React(ctx context.Context, h *apply.Host) (apply.Output, error) {
	m := openUnits(ctx, h)
	defer m.close()
	return a.react(ctx, h, m)
}

func (a *Ensure) react(ctx context.Context, h *apply.Host, m units) (apply.Output, error) {
	u, err := readUnit(ctx, m, a.unit)
	if err != nil {
		return apply.Output{}, a.failed(ctx, "look at", err)
	}
	masked := a.Masked != nil && *a.Masked
	if !h.IsMachine() || a.run == "stopped" || masked || a.run == "" && !u.up() {
		return apply.Output{State: u.word(), Same: true}, nil
	}
	if u, err = a.fresh(ctx, h, m); err != nil {
		return apply.Output{}, err
	}
	s := &serving{want: a, h: h, units: m, u: u}
	err = s.carry(ctx, []act{{a.Reaction(), a.Reaction()}})
	return apply.Output{State: s.u.word(), Later: s.later}, err
}
