package place

import (
	"os"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// Stands reports that something is at a path.
func Stands(h *apply.Host, path string) (bool, error) {
	at, err := h.Entry(path)
	if err != nil {
		return false, err
	}
	defer at.Close()
	return at.Exists(), nil
}

// Put gives an entry a new file, as a whole.
func Put(at *hostfile.Entry, data []byte, a hostfile.Attributes) error {
	c, err := at.Candidate()
	if err != nil {
		return err
	}
	defer c.Drop()
	if _, err := c.Write(data); err != nil {
		return err
	}
	if err := c.Set(a); err != nil {
		return err
	}
	if err := c.Place(); err != nil {
		return err
	}
	return at.SyncDir()
}

// Remove removes a file, or an empty directory, that need not be there.
func Remove(h *apply.Host, name string) error {
	at, err := h.Entry(name)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := at.Remove(); err != nil && !hostfile.NotThere(err) {
		return err
	}
	return nil
}

// Resolves reports that a path leads to something.
func Resolves(h *apply.Host, path string) bool {
	at, err := h.Resolve(path)
	if err != nil {
		return false
	}
	_, err = os.Stat(at)
	return err == nil
}
