package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// unit is the agent as a service of systemd, which learns that it is up, what it is at, and by when it hears of it
// again. Where systemd did not start this process, nobody is told. What began before an exec(2) of the next program is
// told again by that one.
type unit struct {
	send  func(assignments string) error
	grace time.Duration // WatchdogSec of the unit, by which bounds are exceeded before it ends the agent; 0: no watchdog
	log   *logrus.Entry

	mu     sync.Mutex
	up     bool      // the service is known to be up
	failed bool      // systemd could not be told, and that is logged
	wait   string    // for what this pull waits, as it said last; "": nothing so far
	as     string    // what came of the last pull
	since  time.Time // when a pull ended as it says now
}

func newUnit() *unit {
	send := func(assignments string) error { _, err := daemon.SdNotify(false, assignments); return err }
	grace, err := daemon.SdWatchdogEnabled(false)
	if err != nil { // whoever set the environment meant another process
		grace = 0
	}
	return &unit{send: send, grace: grace}
}

// watches is an observer that tells systemd what another one sees.
func (u *unit) watches(o agent.Observer) agent.Observer {
	waiting, begin, pulled := o.Waiting, o.Begin, o.Pulled
	o.Waiting = func(w *lock.Wait) {
		u.waits(w)
		waiting(w)
	}
	o.Begin = func(b apply.Begun) {
		u.says(b.Place() + ": " + b.Title)
		begin(b)
	}
	o.Pulled = func(out *agent.Outcome, err error) {
		u.pulled(cameOf(out, err))
		pulled(out, err)
	}
	o.Phase = u.phase
	o.Rests = u.rests
	if u.grace > 0 {
		o.AtWork = u.atWork
	}
	return o
}

// phaseText says what the agent does in a phase of a pull.
func phaseText(p agent.PhaseName) string {
	switch p {
	case agent.PhaseJoin:
		return "reading the fleet's record"
	case agent.PhaseFetch:
		return "fetching the repositories"
	case agent.PhaseAgree:
		return "agreeing with the fleet on a version"
	case agent.PhaseCompile:
		return "compiling the version for this host"
	case agent.PhaseWait:
		return "waiting for its turn"
	case agent.PhaseApply:
		return "applying the version"
	}
	return "reporting the result"
}

// phase says what the agent does. With the first one it is up: its configuration is read, and it asks etcd and git,
// whether they answer or not.
func (u *unit) phase(p agent.PhaseName) {
	u.mu.Lock()
	what := phaseText(p)
	switch {
	case p == agent.PhaseJoin:
		u.wait = ""
	case p == agent.PhaseWait: // perhaps once more: what runs here was looked after meanwhile
		what = cmp.Or(u.wait, what)
	}
	u.mu.Unlock()
	u.tell(status(what), true)
}

// waits says for what the agent waits.
func (u *unit) waits(w *lock.Wait) {
	u.mu.Lock()
	u.wait = waitText(w)
	u.mu.Unlock()
	u.says(waitText(w))
}

// says says what the agent does.
func (u *unit) says(what string) { u.tell(status(what), false) }

// status is an assignment of one line: what hosts and repositories are called is in it, and any user may read it.
func status(what string) string { return "STATUS=" + safetext.Line(what, 300) }

// pulled notes what came of a pull, and since when that is so. An agent that could not begin with one, because another
// pull is at work on the host, is up as well.
func (u *unit) pulled(as string) {
	u.mu.Lock()
	if u.as != as {
		u.as, u.since = as, time.Now()
	}
	u.mu.Unlock()
	u.tell(status(as), true)
}

// rests says how the last pull ended, and when the next one comes.
func (u *unit) rests(next time.Time) {
	u.mu.Lock()
	line := fmt.Sprintf("%s since %s, next pull %s", u.as, timeOfDay(u.since), timeOfDay(next))
	u.mu.Unlock()
	u.says(line)
}

// timeOfDay is a time of the day, with the day where that is another one.
func timeOfDay(t time.Time) string {
	if time.Since(t).Abs() > 20*time.Hour {
		return t.Local().Format("2006-01-02 15:04")
	}
	return t.Local().Format("15:04")
}

// waitText is a wait without what clears it. An expression of the repository is not for every user of the host.
func waitText(w *lock.Wait) string {
	if w.Kind == state.WaitCondition {
		return "waiting for " + w.Gate
	}
	return "waiting for " + w.Gate + ": " + w.Reason
}

// cameOf is what came of a pull. Why something failed is in the journal, which not every user of the host may read.
func cameOf(o *agent.Outcome, err error) string {
	switch {
	case err != nil:
		return "the pull could not be made"
	case o.Report != nil && o.Report.Failed():
		return "failed at " + ran(o.Report)
	case len(o.Failures) > 0:
		return "failed"
	case len(o.Refused) > 0:
		return "refused what its repositories or the fleet offer"
	case o.Wait != nil:
		return waitText(o.Wait)
	case o.Version == nil:
		return "without a version"
	case o.Report != nil && o.Report.Pending():
		return "not finished with " + o.Version.String()
	}
	return "up to date at " + o.Version.String()
}

// atWork has systemd end the agent when it does not hear of it again in time.
func (u *unit) atWork(atMost time.Duration) {
	u.tell("WATCHDOG_USEC="+microseconds(max(atMost+u.grace, time.Millisecond)), false)
}

// reloads says that the agent reads its configuration again. It is up again with its next pull.
func (u *unit) reloads() {
	u.mu.Lock()
	u.up = false
	u.mu.Unlock()
	u.tell(daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec()+"STATUS=reading the configuration", false)
}

// stops says that the agent ends, and how long the running step may take for that, also where TimeoutStopSec is less.
func (u *unit) stops(finish time.Duration) {
	u.tell(daemon.SdNotifyStopping+"\nSTATUS=ending\nEXTEND_TIMEOUT_USEC="+microseconds(finish+stopTime), false)
}

// stopTime is for what comes behind the running step at a stop: what came of it is recorded, and what is open closed.
const stopTime = time.Minute

func microseconds(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// tell sends assignments, with the first that mean so that the service is up.
func (u *unit) tell(assignments string, up bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up && !u.up {
		u.up = true
		assignments = strings.Join([]string{daemon.SdNotifyReady, assignments}, "\n")
	}
	err := u.send(assignments)
	if err != nil && !u.failed {
		u.log.WithError(err).Warn("systemd does not learn how the agent is, and may end it")
	}
	u.failed = err != nil
}
