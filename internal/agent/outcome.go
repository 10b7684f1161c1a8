package agent

import (
	"cmp"
	"errors"
	"slices"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// Outcome is what came of one pull.
type Outcome struct {
	Run       string
	Version   *state.Version // that the node was brought to, or is to be
	Upgrade   bool           // the version was new here
	Report    *apply.Report  // of the last run; nil when nothing was applied
	Reactions []Reacted      // to events, by runs of reactions
	Wait      *lock.Wait     // the gate that the node still waits at
	Refused   []error        // what verification refused: rewritten history, moved tags, commits that cannot be used
	Failures  []error        // what is wrong beside the report, such as a newer commit that does not compile
	Warnings  []error        // what was got around: an unreachable remote or store
	Phases    []Phase        // of the pull, one after another

	lacking *state.Version // that this node would propose, and that lacks a service
	doubted string         // the fleet's version that the host does not take: it is not news

	seen   int64    // the revision of the fleet's record up to which the pull looked
	viewed int64    // the revision at which it read the services first
	asked  []string // the services that it read

	own []puller.Head // what its repositories had
}

// Reacted is a run of a reaction.
type Reacted struct {
	*apply.Report
	Chain []state.Cause `json:"chain"` // the runs of reactions that caused it, itself the last one
}

// Rebooting reports that the host is about to boot, whoever asked for it: the run goes on after it.
func (o *Outcome) Rebooting() bool {
	return o.asksForBoot(func(r *apply.Report) bool { return r.Reboot || r.Leaving })
}

// HandsOver reports that the run goes on in the program that took the place of this one.
func (o *Outcome) HandsOver() bool { return o.Report != nil && o.Report.HandOver }

// asksForBoot reports a run of which this holds.
func (o *Outcome) asksForBoot(does func(*apply.Report) bool) bool {
	return o.Report != nil && does(o.Report) ||
		slices.ContainsFunc(o.Reactions, func(r Reacted) bool { return does(r.Report) })
}

// upgradeFailed reports that the host is not at the version for a failure of the upgrade, in this pull or in an earlier
// one that put its files back.
func (o *Outcome) upgradeFailed() bool {
	leftAlone := slices.ContainsFunc(
		o.Failures,
		func(err error) bool { _, ok := errors.AsType[*RolledBackError](err); return ok },
	)
	return leftAlone || o.Upgrade && o.Report != nil && o.Report.Failed()
}

// Exit codes of a pull, as the command line documents them.
const (
	ExitOK      = 0
	ExitError   = 1
	ExitWaiting = 3
	ExitRefused = 5
)

// ExitCode is what the process that made the pull exits with: failed beats refused beats waiting.
func (o *Outcome) ExitCode() int {
	switch {
	case len(o.Failures) > 0 || o.Report != nil && o.Report.Failed():
		return ExitError
	case len(o.Refused) > 0:
		return ExitRefused
	case o.Wait != nil || o.Report != nil && o.Report.Pending():
		return ExitWaiting
	}
	return ExitOK
}

// ExitCodeAfter is ExitCode of a pull that returned an error. One that could not go on because etcd did not answer
// waits for it.
func (o *Outcome) ExitCodeAfter(err error) int {
	if err == nil {
		return o.ExitCode()
	}
	if _, ok := errors.AsType[*puller.UnverifiedError](err); ok {
		return ExitRefused
	}
	if away, ok := errors.AsType[*state.UnreachableError](err); !ok || away.Denied() || !onlyAway(err) {
		return ExitError
	}
	return cmp.Or(o.ExitCode(), ExitWaiting)
}

// The parts of a pull write an outcome by the methods below, and not otherwise.

// problem files why a repository could not be followed.
func (o *Outcome) problem(err error) {
	if isRefusal(err) {
		o.refuse(err)
		return
	}
	o.warn(err)
}

func (o *Outcome) warn(errs ...error) { o.Warnings = append(o.Warnings, errs...) }

func (o *Outcome) fail(err error) { o.Failures = append(o.Failures, err) }

func (o *Outcome) refuse(err error) { o.Refused = append(o.Refused, err) }

// doubts files that the host does not take the fleet's version.
func (o *Outcome) doubts(refused *RefusedVersionError) {
	o.refuse(refused)
	o.doubted = refused.Version.ID
}

// worksOn is the version that the pull works on from now on.
func (o *Outcome) worksOn(v *state.Version) { o.Version = v }

// upgrades is worksOn for a version that is new here.
func (o *Outcome) upgrades(v *state.Version) { o.Version, o.Upgrade = v, true }

// ran is the report of the last run.
func (o *Outcome) ran(report *apply.Report) { o.Report = report }

// reacted is the report of a run of a reaction.
func (o *Outcome) reacted(report *apply.Report, run state.ReactionRun) {
	o.Reactions = append(o.Reactions, Reacted{report, run.Chain})
}

// awaits is the gate that the node waits at; nil: it waits no more.
func (o *Outcome) awaits(w *lock.Wait) { o.Wait = w }

// lacks is awaits for a service that a version needs which this node would propose.
func (o *Outcome) lacks(next *state.Version, w *lock.Wait) { o.lacking, o.Wait = next, w }

// looked is a revision of the fleet's record that the pull has seen.
func (o *Outcome) looked(rev int64) { o.seen = max(o.seen, rev) }

// views is a revision at which the pull reads the services: the first one counts.
func (o *Outcome) views(rev int64) { o.viewed = cmp.Or(o.viewed, rev) }

// fetched are the commits that the pull's own repositories had.
func (o *Outcome) fetched(own []puller.Head) { o.own = own }

// took are the phases of the pull.
func (o *Outcome) took(phases []Phase) { o.Phases = phases }

// reached reports that a repository answered.
func (o *Outcome) reached() bool {
	return slices.ContainsFunc(o.own, func(h puller.Head) bool { return !isAway(h.Problem, h.Repo) })
}

// head is the commit that a repository had; "" where it could not be asked.
func (o *Outcome) head(repository string) string {
	for _, h := range o.own {
		if h.Repo == repository {
			return h.Commit
		}
	}
	return ""
}

// read are the services that the pull read.
func (o *Outcome) read(services []string) { o.asked = services }
