package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// reports are those that a pull keeps of its runs, and the logs that it sends.
type reports struct {
	*joined
	config  *Config
	out     *Outcome
	log     *logrus.Entry
	written bool          // a report of this pull is kept
	unkept  *apply.Report // that could not be written, and whose log is to be sent
}

// keep writes the report of a run, and marks it when its log is to be sent. A report that cannot be written is said and
// stops nothing: drift is corrected on a full disk too.
func (r *reports) keep(report *apply.Report, beside ...error) {
	r.written = true
	kept := *report
	for _, err := range append(beside, r.out.Failures...) {
		kept.Errors = append(kept.Errors, err.Error())
	}
	send := r.config.Agent.Logs.Put != "" && (len(beside) > 0 || r.out.ExitCode() == ExitError)
	if err := r.write(&kept, send); err != nil {
		r.out.warn(fmt.Errorf("the report of run %s is not kept: %w", r.out.Run, err))
		if send {
			r.unkept = &kept
		}
	}
}

// write writes a report. Of runs in a row that fail in the same way, the first and the last are kept: else a night of
// them would leave nothing of what was before.
func (r *reports) write(report *apply.Report, send bool) error {
	dir := r.config.Paths.State
	files, err := state.Reports(dir)
	if err != nil {
		return err
	}
	var last apply.Report
	if n := len(files); n > 0 && files[n-1].Load(&last) == nil && report.Repeats(&last) {
		report.Repeated = last.Repeated + 1
		if last.Repeated > 0 {
			if err := files[n-1].Remove(); err != nil {
				return err
			}
		}
	}
	limits := state.ReportLimits{Keep: r.config.Agent.Reports.Keep, Size: int64(r.config.Agent.Reports.Size)}
	file, err := state.SaveReport(dir, report.Run, report, limits)
	if err == nil && send {
		err = file.Send()
	}
	return err
}

// account sees to it that a pull which ended before or beside its run leaves its reasons, here and with the fleet.
func (p *pull) account(ctx context.Context, err error) {
	if err != nil {
		p.cannotPull(ctx, err)
	}
	switch {
	case p.reports.written:
	case err != nil && p.out.Report != nil:
		p.reports.keep(p.out.Report, err)
	case len(p.out.Failures) > 0 && p.out.Report != nil: // a command of an operator behind the run
		p.reports.keep(p.out.Report)
	case len(p.out.Failures) > 0: // the commit cannot be used here
		p.reports.keep(p.reports.nothingRan())
	}
	p.reports.sendLogs(ctx)
}

// nothingRan is the report of a pull without a run.
func (r *reports) nothingRan() *apply.Report {
	now := time.Now()
	out := &apply.Report{
		Run:     r.out.Run,
		Node:    r.config.Node.Name,
		Started: now,
		Ended:   now,
		Steps:   []*apply.StepReport{},
		Counts:  map[apply.Outcome]int{},
	}
	if v := r.out.Version; v != nil {
		out.Version, out.Release = v.ID, v.Release
	}
	return out
}

// cannotPull tells the fleet that the pull could not be made: else the node would look as it was left, or as if a run
// went on.
func (p *pull) cannotPull(ctx context.Context, err error) {
	var away *state.UnreachableError
	if p.store == nil || ctx.Err() != nil || errors.As(p.store.Explain(err), &away) {
		return
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	st := state.Status{Run: p.out.Run, Reason: firstLine(err), Time: time.Now().UTC()}
	if v := p.out.Version; v != nil {
		st.Version, st.Release = v.ID, v.Release
	}
	how := state.Failed
	if orphan, ok := errors.AsType[*apply.OrphanError](err); ok { // nothing failed yet
		how = state.Pending
		saysWait(&st, orphanWait(p.config.Node.Name, orphan))
	}
	if err := p.store.Statuses.Tell(ctx, p.presence,
		p.store.Statuses.Ops(p.config.Node.Name, state.Configured, how, st)...); err != nil {
		p.log.WithError(err).Warn("that the pull could not be made is not recorded")
	}
}

// digest is what the fleet keeps of a report.
func digest(r *apply.Report) *state.Digest {
	d := state.Digest{Counts: map[string]int{}, Seconds: r.Seconds}
	for outcome, n := range r.Counts {
		d.Counts[string(outcome)] = n
	}
	if r.Failed() {
		d.Failed = r.Why()
	}
	return d.Fit()
}
