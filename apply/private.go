package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// noted is what stands in a note: a command that runs, or a directory that is to be gone with the pull.
type noted struct {
	Orphan
	Dir string `json:"dir,omitempty"`
}

// PrivateFile writes what a command is to read and ps must not show. Only a user can read it, the agent's own by default; it lies in a
// directory of its own. What remove does not take away because the agent is killed, the next pull does.
func (h *Host) PrivateFile(name, user string, data []byte) (path string, remove func() error, err error) {
	who, err := credential(user)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "pullet-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	if h.Notes != "" {
		note := filepath.Join(h.Notes, "dir-"+filepath.Base(dir)) // sorted behind the commands: see Orphans
		remove = func() error { return errors.Join(os.RemoveAll(dir), os.Remove(note)) }
		// Encoding cannot fail: a number and texts.
		text, _ := json.Marshal(noted{Dir: dir})
		if err = os.MkdirAll(h.Notes, 0o700); err == nil {
			err = os.WriteFile(note, text, 0o600)
		}
	}
	path = filepath.Join(dir, name)
	if err == nil {
		err = os.WriteFile(path, data, 0o400)
	}
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
