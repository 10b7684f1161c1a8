package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pullet/pullet/render"
)

// defaultRetry is how long a condition with a retry waits between attempts when it does not say.
const defaultRetry = 10 * time.Second

// macroAction is the action that a macro runs.
const macroAction = "cmd.run"

// ask evaluates a condition, again and again where it has a retry. An empty outcome means yes; else Skipped without a retry,
// Pending when the attempts are used up, Failed when it cannot be evaluated.
//
// A wait before the step is one for others: the node gives its slot back when nothing else is left to do.
func (s *running) ask(ctx context.Context, before bool, c *render.Condition) (Outcome, string) {
	for attempt := 1; ; attempt++ {
		var yes bool
		err := s.reading(ctx, func() (err error) {
			yes, err = s.catalog.Eval(c.Expression, s.r.Result, s.results(s.Job), s.runMacro(ctx))
			return err
		})
		var pending *PendingError
		switch {
		case errors.As(err, &pending):
			return Pending, pending.Reason
		case err != nil:
			return Failed, err.Error()
		case yes:
			return "", ""
		case c.Retry == nil:
			return Skipped, "condition is false: " + c.Expression.Text
		case s.plan || c.Retry.Limit > 0 && attempt >= c.Retry.Limit:
			return Pending, fmt.Sprintf("condition is still false after %d attempts: %s", attempt, c.Expression.Text)
		}
		why := ""
		if before {
			why = s.ID() + ": " + c.Expression.Text
		}
		if !s.pause(ctx, why, c.Retry) {
			return Pending, "waiting for: " + c.Expression.Text
		}
	}
}

// pause waits until it is time for another attempt, while other steps run; why is what only other nodes can bring. It reports false when ctx ended.
func (s *running) pause(ctx context.Context, why string, r *render.Retry) bool {
	interval := defaultRetry
	if r.Interval > 0 {
		interval = time.Duration(r.Interval)
	}
	s.aside(why, func() {
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	})
	return ctx.Err() == nil
}

// results are the steps' results as a job names them. One of a step that another node takes is wanted from there.
func (s *running) results(job string) render.Results {
	return func(name string) (render.StepResult, bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		id, ok := s.resultID(job, name)
		if t := s.foreign[id]; ok && t != nil && t.ID() != s.ID() {
			s.wanted = append(s.wanted, t)
		}
		if t, r := s.byID[id], s.reports[id]; ok && r != nil && r.Outcome == Failed && t != nil && t.Options.Target != nil {
			s.refused = fmt.Errorf("it reads the result of %s, which failed here: %s", id, r.Reason) // as it does on the other nodes
		}
		return s.values[id], ok
	}
}

// resultID is the step that a job means by a name, if it has ended.
func (x *execution) resultID(job, name string) (string, bool) {
	for _, id := range []string{job + "/" + name, name} {
		if _, ok := x.values[id]; ok {
			return id, true
		}
	}
	for id := range x.values { // a short name that only one job has: checked when the catalog was compiled
		if strings.HasSuffix(id, "/"+name) {
			return id, true
		}
	}
	return "", false
}

// macroTimeout is how long a macro's command may take when it does not say: other steps wait for its answer.
const macroTimeout = time.Minute

// runMacro executes the command of a macro. It only reads, so a plan does it too.
func (x *execution) runMacro(ctx context.Context) func(*render.Macro) (string, error) {
	return func(m *render.Macro) (string, error) {
		line := m.Params.Text("cmd")
		if m.Action != macroAction || line == "" {
			return "", fmt.Errorf("macro %q: action %q cannot be a macro: use cmd.run or template.expression", m.Name, m.Action)
		}
		limit := macroTimeout
		if text := m.Params.Text("timeout"); text != "" {
			var err error
			if limit, err = render.ParseDuration(text); err != nil {
				return "", fmt.Errorf("macro %q: timeout: %w", m.Name, err)
			}
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		out, err := x.Host.Run(ctx, Command{Args: Shell(line)})
		if err == nil && out.ExitCode != 0 {
			err = errors.New(out.Failure())
		}
		if err != nil {
			return "", fmt.Errorf("macro %q: %w", m.Name, err)
		}
		return strings.TrimSpace(out.StdOut), nil
	}
}
