package agent

import (
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/metrics"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// beside is what monitoring is shown of a pull that its outcome does not say.
type beside struct {
	ended   time.Time
	err     error // of the pull
	sources []puller.Source
	etcd    bool           // it answered
	answer  time.Duration  // that etcd took for one; 0: unknown
	running *state.Version // nil: none yet
	fleet   *state.Version // nil: it was not read
	lease   time.Time      // until when it lives; zero: there is none
}

// measured is what monitoring is shown of a pull.
func measured(o *Outcome, b beside) metrics.Pull {
	out := metrics.Pull{
		Ended: b.ended, Result: resultOf(o.ExitCodeAfter(b.err)), Phases: map[string]float64{},
		Steps: map[string]int{}, Etcd: b.etcd, Answer: b.answer.Seconds(), Running: versionOf(b.running),
		Fleet: versionOf(b.fleet), Lease: b.lease, Wait: waitOf(o.Wait, b.ended),
	}
	for _, p := range o.Phases {
		out.Phases[string(p.Name)] += max(0, p.Ended.Sub(p.Began)).Seconds()
	}
	for _, outcome := range []apply.Outcome{
		apply.OK, apply.Changed, apply.Failed, apply.Skipped, apply.Unmet, apply.Pending,
	} {
		out.Steps[string(outcome)] = 0
	}
	if o.Report != nil {
		for _, s := range o.Report.Steps {
			out.Steps[string(s.Outcome)]++
			if s.Drift && s.Outcome == apply.Changed {
				out.Drift++
			}
		}
	}
	if _, fetches := out.Phases[string(PhaseFetch)]; fetches {
		out.Repositories = repositoriesSeen(o, b)
	}
	return out
}

func resultOf(code int) metrics.Result {
	switch code {
	case ExitOK:
		return metrics.Success
	case ExitWaiting:
		return metrics.Waiting
	case ExitRefused:
		return metrics.Refused
	}
	return metrics.Failed
}

// repositoriesSeen says of each repository how it answered. One whose commit is refused did; of one that has no good
// commit yet only that it did not answer is known.
func repositoriesSeen(o *Outcome, b beside) (out []metrics.Repository) {
	for _, source := range b.sources {
		seen, known := metrics.Repository{Name: source.Name}, isAway(b.err, source.Name)
		for _, h := range o.own {
			if h.Repo == source.Name {
				seen.Up, seen.Seconds, known = !isAway(h.Problem, source.Name), h.Took.Seconds(), true
			}
		}
		if known {
			out = append(out, seen)
		}
	}
	return out
}

// isAway reports an error that says, maybe among others, that a repository did not answer.
func isAway(err error, repository string) bool {
	switch e := err.(type) {
	case *puller.UnreachableError:
		return e.Repo == repository
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(one error) bool { return isAway(one, repository) })
	case interface{ Unwrap() error }:
		return isAway(e.Unwrap(), repository)
	}
	return false
}

func versionOf(v *state.Version) *metrics.Version {
	if v == nil {
		return nil
	}
	out := metrics.Version{ID: v.ID, Release: v.Release, Commit: v.ID}
	if len(v.Commits) > 1 {
		var commits []string
		for _, c := range v.Commits {
			commits = append(commits, c.Repo+"="+c.Commit)
		}
		out.Commit = strings.Join(commits, " ")
	}
	return &out
}

// waitOf is a wait that began now, or before.
func waitOf(w *lock.Wait, now time.Time) *metrics.Wait {
	if w == nil {
		return nil
	}
	out := metrics.Wait{
		Kind: string(w.Kind), Gate: w.Gate, Since: w.Since, Halted: w.Halt != "" || w.Kind == state.WaitHalt,
	}
	if out.Since.IsZero() || out.Since.After(now) {
		out.Since = now
	}
	return &out
}
