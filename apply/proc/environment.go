package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// SessionWith returns the leader of the session of a process that has a variable of this value in its environment,
// which its own children inherit. The leader may have ended: Started is empty then.
func SessionWith(variable, value string) (leader ID, found bool) {
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || value == "" {
		return ID{}, false
	}
	want := []byte(variable + "=" + value)
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err != nil || !containsVariable(text, want) {
			continue
		}
		p, ok := Read(filepath.Base(filepath.Dir(path)))
		if !ok || p.Ended() {
			continue
		}
		session, err := strconv.Atoi(p.Session)
		return IDOf(session), err == nil
	}
	return ID{}, false
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
