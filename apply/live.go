package apply

import (
	"bytes"
	"context"
	"io"
	"strings"
	"unicode"
)

// maxLiveLine is how much of a line is shown while a command runs, in bytes.
const maxLiveLine = 1000

// liveStep is the key of a context's watched step: the one for which commands run.
type liveStep struct{}

// watched is a step whose commands may be shown.
type watched struct {
	id     string
	redact func(line string) string
}

// live is the context of what a step does to the host: what commands print there may be shown, unless it is a secret.
// What compares the host with the step, and what conditions ask, is done without it.
func (s *running) live(ctx context.Context) context.Context {
	if s.step.Sensitive {
		return ctx
	}
	return context.WithValue(ctx, liveStep{}, watched{s.step.ID(), s.x.program.catalog.Secrets().Redact})
}

// show makes what is written to out and errs also go to whoever watches the host, line by line. The last lines may have
// no end: finish shows them.
func (h *Host) show(ctx context.Context, c Command, out, errs io.Writer) (toOut, toErrs io.Writer, finish func()) {
	step, ok := ctx.Value(liveStep{}).(watched)
	if !ok || h.Live == nil || c.Quiet {
		return out, errs, func() {}
	}
	say := func(line string) {
		h.liveMu.Lock()
		defer h.liveMu.Unlock()
		h.Live(step.id, line)
	}
	outLines, errLines := &lines{say: say, redact: step.redact}, &lines{say: say, redact: step.redact}
	return io.MultiWriter(out, outLines), io.MultiWriter(errs, errLines), func() {
		outLines.end()
		errLines.end()
	}
}

// lines hands on what is written to it by the line, without what is no text: it may be shown on a terminal.
type lines struct {
	say    func(line string)
	redact func(line string) string // before a line is cut
	rest   []byte                   // of a line that has no end yet, as much as is looked at
}

// mostOfLine is how much of a line is searched for secrets before it is cut, in bytes: those that begin in what is
// shown have to be whole.
const mostOfLine = 64 << 10

func (l *lines) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, whole := bytes.Cut(rest, []byte("\n"))
		room := mostOfLine - len(l.rest)
		l.rest = append(l.rest, part[:min(len(part), room)]...)
		if rest = after; whole {
			l.flush()
		}
	}
	return len(p), nil
}

// end shows a last line without an end.
func (l *lines) end() {
	if len(l.rest) > 0 {
		l.flush()
	}
}

func (l *lines) flush() {
	text := l.redact(strings.TrimRight(string(l.rest), "\r"))
	l.rest = l.rest[:0]
	if len(text) > maxLiveLine {
		text = text[:maxLiveLine] + "..."
	}
	text = text[strings.LastIndexByte(text, '\r')+1:] // of a line that was drawn over, what stood there last
	l.say(strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text))
}
