package apply

import (
	"crypto/rand"
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
