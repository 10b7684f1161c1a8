package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// runLog logs what pulls do as it happens: for the agent, and for a single pull in systemd's journal.
type runLog struct {
	log *logrus.Entry

	mu     sync.Mutex
	begins map[string]*time.Timer // of the steps that run, by their ids
}

// longStep is how long a step runs before its start is logged: most end sooner, and one line is enough for them.
const longStep = 2 * time.Second

func newRunLog(log *logrus.Entry) *runLog { return &runLog{log: log, begins: map[string]*time.Timer{}} }

// Waiting logs a reason to wait.
func (l *runLog) Waiting(w *lock.Wait) { l.log.WithField("gate", w.Gate).Info(w.Error()) }

// Phase logs what a pull does from now on, where everything is logged.
func (l *runLog) Phase(name agent.PhaseName) { l.log.Debug("phase: " + string(name)) }

// Live logs what a command of a step prints.
func (l *runLog) Live(step, line string) { l.log.WithField("step", step).Info(line) }

// Begin logs a step that runs for a while.
func (l *runLog) Begin(b apply.Begun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begins[b.ID] = time.AfterFunc(longStep, func() {
		l.log.WithFields(logrus.Fields{"step": b.Title, "at": b.Pos.String()}).
			Infof("running %s: %s", b.Place(), b.Doing)
	})
}

// Step logs what was changed, and what failed.
func (l *runLog) Step(s *apply.StepReport) {
	l.mu.Lock()
	if begin := l.begins[s.Job+"/"+s.Step]; begin != nil {
		begin.Stop()
		delete(l.begins, s.Job+"/"+s.Step)
	}
	l.mu.Unlock()
	line := l.log.WithFields(logrus.Fields{"step": s.Title(), "at": s.Pos.String()})
	switch s.Outcome {
	case apply.Changed:
		line.Info("changed: " + s.Summary + driftMark(s))
	case apply.Failed:
		line.Error("failed: " + s.Reason)
	}
}

// driftMark marks a change of something that was changed on the host, and not in the repository.
func driftMark(s *apply.StepReport) string {
	if s.Drift {
		return " (drift)"
	}
	return ""
}

// Pulled logs what came of a pull.
func (l *runLog) Pulled(o *agent.Outcome, err error) {
	for _, w := range o.Warnings {
		l.log.Warn(w)
	}
	for _, e := range append(o.Refused, o.Failures...) {
		l.log.Error(e)
	}
	var away *state.UnreachableError
	switch {
	case errors.As(err, &away): // the loop said it
	case err != nil:
		l.log.WithError(err).Error("pull")
	case o.Report != nil:
		level := logrus.InfoLevel
		if o.Report.Failed() { // the steps said why
			level = logrus.ErrorLevel
		}
		l.log.WithField("run", o.Run).Log(level, fmt.Sprintf("%s: %s%s", ran(o.Report), counts(o.Report), goesOn(o.Report)))
	}
}

// goesOn says why a run ended that goes on later.
func goesOn(r *apply.Report) string {
	if !r.HandOver {
		return ""
	}
	return "; " + r.Stopped
}

// ran is the version that a report is about: while a node waits, not the one that it waits for.
func ran(r *apply.Report) string {
	return (&state.Version{ID: r.Version, Release: r.Release}).String()
}
