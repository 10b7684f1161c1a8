package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply/proc"
)

// noted is what stands in a note: a command that runs, or a directory that is to be gone with the pull.
type noted struct {
	proc.ID
	Dir  string `json:"dir,omitempty"`
	Mark string `json:"mark,omitempty"` // of a command whose process is not on record
}

// PrivateDir makes a directory that only the agent's user can enter. What remove does not take away because the agent
// is killed, the next pull does.
func (h *Host) PrivateDir() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "pullet-"); err != nil {
		return "", nil, fmt.Errorf("cannot make a temporary directory: %w", err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	if h.Notes == "" {
		return dir, remove, nil
	}
	note := filepath.Join(h.Notes, "dir-"+filepath.Base(dir)) // sorted behind the commands: see Orphans
	remove = func() error { return errors.Join(os.RemoveAll(dir), os.Remove(note)) }
	// Encoding cannot fail: a number and texts.
	text, _ := json.Marshal(noted{Dir: dir})
	if err = os.MkdirAll(h.Notes, 0o700); err == nil {
		err = os.WriteFile(note, text, 0o600)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("cannot note a temporary directory: %w", err), remove())
	}
	return dir, remove, nil
}

// PrivateFile writes what a command is to read and ps must not show. Only a user can read it, the agent's own by
// default; it lies in a directory of its own.
func (h *Host) PrivateFile(name, user string, data []byte) (path string, remove func() error, err error) {
	who, err := credential(user)
	if err != nil {
		return "", nil, err
	}
	dir, remove, err := h.PrivateDir()
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, name)
	err = os.WriteFile(path, data, 0o400)
	for _, at := range []string{path, dir} {
		if err == nil && who.cred != nil {
			err = os.Chown(at, int(who.cred.Uid), int(who.cred.Gid))
		}
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("cannot write a temporary file: %w", err), remove())
	}
	return path, remove, nil
}

// Renamed is an error whose text has a file's name in place of the one that it has on this machine.
func Renamed(err error, from, to string) error { return &renamed{err, from, to} }

type renamed struct {
	error
	from, to string
}

func (e *renamed) Error() string { return strings.ReplaceAll(e.error.Error(), e.from, e.to) }
func (e *renamed) Unwrap() error { return e.error }
