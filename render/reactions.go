package render

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Reaction says which jobs start, on which hosts, when events of a name happen. It is immutable.
type Reaction struct {
	Name     string // as it is written: the name of an event, or a glob over names
	Limiter  Limiter
	OnChange bool   // it may run beside a rollout
	Targets  string // all, event or a target; "": the targets of its jobs alone say where they run
	Pos      Position

	repo   *Repository
	events EventGlob
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

// Reactions are the reactions of the repository, sorted by name; beside an ErrorList, those without mistakes. They are
// read once; another error, such as that of ctx, is not kept.
func (r *Repository) Reactions(ctx context.Context) ([]*Reaction, error) {
	s := &scope{macros: &macroSet{}}
	release := r.enter(s)
	defer release()
	set, err := r.reacts.read(ctx, s.x)
	if err != nil {
		return nil, err
	}
	return set.list, set.errs.Err()
}

// Matches reports that the reaction answers events of a name.
func (r *Reaction) Matches(event string) bool { return r.events.Matches(event) }

// PerHost reports that it runs on the hosts alone that the event is about, so that events about different hosts are
// answered apart.
func (r *Reaction) PerHost() bool { return r.Targets == targetsEvent }

// Hosts are the hosts on which it runs, sorted: of the nodes, which have these labels, and for an event that is about
// some of them.
func (r *Reaction) Hosts(nodes map[string]map[string]string, about []string) []string {
	var out []string
	for name, labels := range nodes {
		has := func(p reactionPart) bool { return len(p.entries) > 0 && p.target.Matches(name, labels) }
		if r.narrowed(name, labels, about) && slices.ContainsFunc(r.parts, has) {
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

// Holds judges its condition, which is true where it has none. Of the input it looks at Context, View, Event, Version,
// Release and Agent. An error says that the condition cannot be judged, or why Context ended.
func (r *Reaction) Holds(in Input) (bool, error) {
	if r.when == nil {
		return true, nil
	}
	s := &scope{in: in, macros: &macroSet{}, all: newPool(), secrets: newSecretTexts()}
	release := r.repo.enter(s)
	defer release()
	s.in.View = in.View.over(r.repo.reacts.kept.inventory)
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
