package apply

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
)

// markVariable is in the environment of every command. A command may kill the pull that started it before its process
// is on record: the mark is on record before it starts, and finds it.
const markVariable = "PULLET_COMMAND"

// noteStart remembers the mark of a command that is about to start, and returns how to forget it once its process is on
// record.
func (h *Host) noteStart() (mark string, forget func()) {
	mark = rand.Text()
	return mark, h.writeNote(
		"command-"+mark,
		noted{Mark: mark},
	) // its name sorts before those of private directories: see Orphans
}

// marked is the session of a process that has a mark in its environment, which its own children inherit.
func marked(mark string) (Orphan, bool) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || mark == "" {
		return Orphan{}, false
	}
	want := []byte(markVariable + "=" + mark)
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err != nil || !containsVariable(text, want) {
			continue
		}
		pid := filepath.Base(filepath.Dir(path))
		p, ok := readStat(pid)
		if !ok || p.state == "Z" || p.state == "X" {
			continue
		}
		session, err := strconv.Atoi(p.session)
		if leader, ok := readStat(p.session); err == nil && ok {
			return Orphan{session, leader.started}, true
		}
		return Orphan{PID: session}, err == nil
	}
	return Orphan{}, false
}

// containsVariable reports a variable in an environment as /proc shows it.
func containsVariable(environment, want []byte) bool {
	for one := range bytes.SplitSeq(environment, []byte{0}) {
		if bytes.Equal(one, want) {
			return true
		}
	}
	return false
}
