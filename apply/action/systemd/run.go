package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pullet/pullet/apply"
)

// serving carries out what is to be done with one unit.
type serving struct {
	want  *Ensure
	h     *apply.Host
	units units
	u     unit
	said  []string // what was done to links
	later bool     // the unit's job is left for the end of the run
}

// fresh looks at the unit as its files are now: systemd reads them anew where they changed, or where it knows none.
func (a *Ensure) fresh(ctx context.Context, h *apply.Host, m units) (unit, error) {
	u, err := readUnit(ctx, m, a.unit)
	if err == nil && (u.stale || !u.known() || newDropIn(h, u)) {
		if _, err = m.manage(ctx, "daemon-reload", "", false); err == nil {
			u, err = readUnit(ctx, m, a.unit)
		}
	}
	if err != nil {
		return unit{}, a.failed(ctx, "look at", err)
	}
	if must := a.run != "" && a.run != "stopped" || a.Enabled != nil && *a.Enabled; must && !u.known() {
		return u, unknownUnit(ctx, m, a.unit)
	}
	return u, nil
}

// newDropIn reports a file of the host's own in a directory NAME.d that systemd has not read. Of a directory that was
// not there when it read its files last systemd knows nothing, and calls the unit up to date.
func newDropIn(h *apply.Host, u unit) bool {
	if !h.IsMachine() {
		return false
	}
	for _, dir := range unitDirs[:2] {
		files, _ := filepath.Glob(
			filepath.Join(dir, u.name+".d", "*.conf"),
		) // the pattern is right, and a directory that is not there has none
		for _, f := range files {
			if info, err := os.Stat(f); err == nil && info.Size() > 0 && !slices.Contains(u.dropIns, f) {
				return true
			}
		}
	}
	return false
}

// failed says what could not be done, and when the run was ended, that systemd was not.
func (a *Ensure) failed(ctx context.Context, verb string, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%s %s: timed out; systemd goes on with what it has begun", verb, a.unit)
	case ctx.Err() != nil:
		return fmt.Errorf("%s %s: the run was stopped; systemd goes on with what it has begun", verb, a.unit)
	}
	return fmt.Errorf("%s %s: %w", verb, a.unit, err)
}

func (s *serving) carry(ctx context.Context, acts []act) error {
	for _, t := range acts {
		do := s.job
		switch t.verb {
		case "enable", "disable", "mask", "unmask":
			do = s.file
		}
		if err := do(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// file enables, disables, masks or unmasks. What holds until the next boot is undone too.
func (s *serving) file(ctx context.Context, t act) error {
	for _, runtime := range []bool{false, true} {
		said, err := s.units.manage(ctx, t.verb, s.u.name, runtime)
		if err != nil {
			return s.want.failed(ctx, t.verb, err)
		}
		if said != "" {
			s.said = append(s.said, said)
		}
		if err := s.refresh(ctx); err != nil {
			return err
		}
		if t.verb != "disable" && t.verb != "unmask" || !strings.HasSuffix(s.u.file, "-runtime") {
			break
		}
	}
	if t.verb == "unmask" && s.u.masked() {
		return fmt.Errorf(
			"%s is still masked%s: systemd takes away only masks below /etc and /run",
			s.u.name,
			maskedBy(s.h, s.u.name),
		)
	}
	return nil
}

func (s *serving) refresh(ctx context.Context) error {
	u, err := readUnit(ctx, s.units, s.want.unit)
	if err != nil {
		return s.want.failed(ctx, "look at", err)
	}
	s.u = u
	return nil
}

// job starts, stops, restarts or reloads, and sees that it holds.
func (s *serving) job(ctx context.Context, t act) error {
	verb := t.verb
	switch {
	case verb == "reload" && !s.u.up():
		verb = "start"
	case verb == "reload" && !s.u.canReload:
		return fmt.Errorf(
			"%s cannot reload: its unit has no ExecReload=; restart it: leave out reload: true, or use state: restarted",
			s.u.name,
		)
	case verb != "stop" && s.u.masked():
		return maskedUnit(s.h, s.u, verb+"ed")
	}
	if ends, err := s.endsPullet(ctx, verb); ends || err != nil {
		if err == nil {
			s.leave(verb)
		}
		return err
	}
	if s.u.active == "failed" &&
		verb != "stop" { // it may have failed so often that systemd refuses; that was before the change
		if _, err := s.units.manage(ctx, "reset-failed", s.u.name, false); err != nil {
			return s.want.failed(ctx, verb, err)
		}
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if s.want.Timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, s.want.Timeout.Std())
	}
	defer cancel()
	j := &jobRun{on: s, verb: verb, before: s.u, began: time.Now()}
	result, err := s.units.job(limited, verb, s.u.name)
	switch {
	case err != nil && ctx.Err() == nil && limited.Err() != nil:
		return j.tooLong(ctx)
	case err != nil:
		return s.want.failed(ctx, verb, err)
	case result != "done":
		return j.broken(ctx, result, "did not "+verb)
	case verb == "stop":
		return s.refresh(ctx)
	}
	return j.staysUp(ctx)
}

// jobRun is one job, to tell how it went.
type jobRun struct {
	on     *serving
	verb   string
	before unit
	began  time.Time
}

// upPoll is how often a service is looked at until it counts as started.
const upPoll = 100 * time.Millisecond

// staysUp watches that the unit stays up. Only services can end by themselves.
func (j *jobRun) staysUp(ctx context.Context) error {
	if err := j.on.refresh(ctx); err != nil {
		return err
	}
	first, over := j.on.u, time.Now().Add(j.on.want.Settle.Std())
	for {
		switch {
		case j.on.u.task():
			return j.ended(ctx)
		case !j.on.u.up() || j.on.u.restarts != first.restarts || j.on.u.invocation != first.invocation:
			return j.broken(ctx, "", j.verb+"ed and did not stay up")
		case !strings.HasSuffix(j.on.u.name, ".service") || !time.Now().Before(over):
			return nil
		}
		select {
		case <-ctx.Done():
			return j.on.want.failed(ctx, j.verb, ctx.Err())
		case <-time.After(upPoll):
		}
		if err := j.on.refresh(ctx); err != nil {
			return err
		}
	}
}

// ended sees that a oneshot did run. Where systemd has forgotten it and there is no journal, its word for the job
// counts.
func (j *jobRun) ended(ctx context.Context) error {
	if j.on.u.ended > 0 && j.on.u.unconditional && j.on.u.result == "success" {
		return nil
	}
	if j.on.u.unconditional {
		j.flushJournal(ctx)
		if found, err := journalTells(ctx, j.on.h, j.on.u, j.since()); found || err != nil {
			return nil
		}
	}
	return j.broken(ctx, "", "did not "+j.verb)
}

// tooLong is the error for a job that takes longer than the step allows.
func (j *jobRun) tooLong(ctx context.Context) error {
	if err := j.on.refresh(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%s did not %s within %s: it is %s (%s), and systemd goes on with it%s; see systemctl status %s",
		j.on.u.name, j.verb, j.on.want.Timeout.Std(), j.on.u.active, j.on.u.sub, j.journal(ctx), j.on.u.name)
}

// broken is the error for a unit that is not as it should be after its job.
func (j *jobRun) broken(ctx context.Context, result, what string) error {
	if err := j.on.refresh(ctx); err != nil {
		return err
	}
	why := map[string]string{
		"dependency": "a unit that it requires failed; systemctl list-dependencies " + j.on.u.name + " shows which",
		"canceled":   "another job took the place of this one", "timeout": "its job took longer than its unit allows",
		"assert": "an Assert of its unit does not hold", "skipped": "systemd skipped the job, as the unit is " +
			j.on.u.active,
	}[result]
	if why == "" {
		why = j.on.u.fate(j.before)
	}
	return fmt.Errorf("%s %s: %s%s; see systemctl status %s", j.on.u.name, what, why, j.journal(ctx), j.on.u.name)
}

// fate is how a unit came to be as it is, in a few words.
func (u unit) fate(before unit) string {
	if !u.unconditional {
		return "a Condition of its unit does not hold"
	}
	how := "it is " + u.active + " (" + u.sub + ")"
	if u.result != "" && u.result != "success" {
		how += ", " + u.result
	}
	if u.ended == before.ended || u.ended == 0 { // the main process did not end, or none is on record
		return how
	}
	switch u.code { // waitid(2): CLD_EXITED, CLD_KILLED, CLD_DUMPED
	case 1:
		return fmt.Sprintf("%s, exit status %d", how, u.status)
	case 2, 3:
		return fmt.Sprintf("%s, signal %d (%s)", how, u.status, syscall.Signal(u.status))
	}
	return how
}

// since is an option of journalctl for what came after the job began.
func (j *jobRun) since() string {
	return fmt.Sprintf("--since=@%d.%06d", j.began.Unix(), j.began.Nanosecond()/1000)
}

// flushJournal has what was just logged written. What it cannot write in time is not quoted, which is no reason to
// fail.
func (j *jobRun) flushJournal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _ = j.on.h.Run(ctx, apply.Command{Args: []string{"journalctl", "--sync"}})
}

// journal is what the unit logged last since the job began, in one line; nothing where there is no journal.
func (j *jobRun) journal(ctx context.Context) string {
	j.flushJournal(ctx)
	out, err := j.on.h.Run(ctx, apply.Command{Args: []string{
		"journalctl", "--quiet", "--no-pager", "--output=cat", "--lines=5", j.since(), "--unit=" + j.on.u.name,
	}})
	lines := strings.Split(strings.TrimSpace(out.StdOut), "\n")
	if err != nil || out.ExitCode != 0 || lines[0] == "" {
		return ""
	}
	return "; its journal: " + strings.Join(lines, " | ")
}
