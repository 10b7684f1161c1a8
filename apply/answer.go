package apply

import (
	"fmt"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// asksForProgram finds a line that asks for a program: some shells say no with the exit code of a missing one.
var asksForProgram = lazyregexp.New(`(^|[^\w./-])(command\s+-[vV]|type|hash)\s`)

// Answer returns the answer of a shell line that ran to answer a question. One that was killed has none, which is an
// error. One that could not run its program (exit code 126 or 127) has none either, unless it asks for a program with
// command -v, type or hash: that is what it lacks, and an earlier step may still bring it.
func Answer(param, line string, out Output) (yes bool, lack *LackError, err error) {
	switch {
	case out.Killed || out.ExitCode < 0:
		return false, nil, fmt.Errorf("%s: %s: it was killed and has no answer", param, line)
	case (out.ExitCode == 126 || out.ExitCode == 127) && !asksForProgram.MatchString(line):
		return false, &LackError{Text: fmt.Sprintf("%s: %s: %s; it has no answer", param, line, out.Failure())}, nil
	}
	return out.ExitCode == 0, nil, nil
}

// Unanswered returns the error of a change of which no guard could tell whether it is wanted: it is only planned.
func (c Change) Unanswered() error {
	if c.Lacks == nil {
		return nil
	}
	return c.Lacks
}
