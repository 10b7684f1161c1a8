package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/sirupsen/logrus"
)

// toJournal reports that a writer goes to systemd's journal, which has a time of its own for each line: see
// systemd.exec(5), JOURNAL_STREAM.
func toJournal(w io.Writer) bool {
	f, ok := fileOf(w)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// journalFormat writes lines for the journal: the priority, as sd-daemon(3) has it, the message and the fields.
type journalFormat struct{}

// priority is a level in the numbers of syslog(3).
func priority(level logrus.Level) int {
	switch level {
	case logrus.PanicLevel, logrus.FatalLevel:
		return 2
	case logrus.ErrorLevel:
		return 3
	case logrus.WarnLevel:
		return 4
	case logrus.InfoLevel:
		return 6
	}
	return 7
}

func (journalFormat) Format(e *logrus.Entry) ([]byte, error) {
	text := strings.TrimRight(e.Message, "\n")
	keys := make([]string, 0, len(e.Data))
	for key := range e.Data {
		if key != "node" { // the journal has the host's name
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		value := fmt.Sprint(e.Data[key])
		if strings.ContainsAny(value, " \"=\n") {
			value = fmt.Sprintf("%q", value)
		}
		text += " " + key + "=" + value
	}
	return []byte(prioritized(priority(e.Level), text)), nil
}

// prioritized is a text whose lines have a priority each.
func prioritized(priority int, text string) string {
	mark := fmt.Sprintf("<%d>", priority)
	return mark + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+mark) + "\n"
}

// tell writes a line for people to stderr, with its priority where that is the journal.
func tell(w io.Writer, level logrus.Level, format string, args ...any) {
	text := fmt.Sprintf(format, args...) + "\n"
	if toJournal(w) {
		_, _ = io.WriteString(w, prioritized(priority(level), text)) // as with every line for people
		return
	}
	for line := range strings.Lines(text) {
		begin, paint := "", red
		if level == logrus.WarnLevel {
			paint = yellow
		}
		for _, mark := range []string{"pullet: warning:", "pullet:"} {
			if strings.HasPrefix(line, mark) {
				begin = mark
				break
			}
		}
		rest := strings.TrimSuffix(strings.TrimPrefix(line, begin), "\n")
		_ = inked(w, span{paint, begin}, span{noInk, rest})
	}
}

// warn says what does not keep the command from its work.
func (a *app) warn(format string, args ...any) {
	tell(a.err, logrus.WarnLevel, "pullet: warning: "+format, args...)
}
