package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestJournalLines: each line of an entry has its priority; nothing is said of time and host, which the journal knows.
func TestJournalLines(t *testing.T) {
	var out bytes.Buffer
	l := logrus.New()
	l.SetOutput(&out)
	l.SetLevel(logrus.DebugLevel)
	l.SetFormatter(harmless{journalFormat{}})
	log := l.WithField("node", "web1")
	log.WithFields(logrus.Fields{"step": "a/b", "at": "jobs/a.yaml:1:2"}).Info("changed: content")
	log.WithError(errors.New("no route")).Error("two\nlines\n")
	log.Warn("a \x1b[31mred one")
	log.Debug("more")
	want := "<6>changed: content at=jobs/a.yaml:1:2 step=a/b\n<3>two\n<3>lines error=\"no route\"\n<4>a ␛[31mred one\n<7>more\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestToJournal: only the stream that systemd names is the journal; a program that got the variable from its parent and
// writes elsewhere is not.
func TestToJournal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	info, err := w.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	for stream, want := range map[string]bool{fmt.Sprintf("%d:%d", st.Dev, st.Ino): true, fmt.Sprintf("%d:%d", st.Dev, st.Ino+1): false, "": false} {
		t.Setenv("JOURNAL_STREAM", stream)
		if toJournal(w) != want || toJournal(&bytes.Buffer{}) {
			t.Errorf("JOURNAL_STREAM=%q: %v, want %v", stream, toJournal(w), want)
		}
	}
}
