package action

import (
	"fmt"
	"os"

	"github.com/pullet/pullet/apply"
)

// readSecret reads a file of the host that nobody but its owner may read.
func readSecret(h *apply.Host, name string) ([]byte, error) {
	path, err := h.Resolve(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a secret: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the secret in %s is open to others (mode %04o): chmod 600 %s", name, info.Mode().Perm(), name)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a secret: %w", err)
	}
	return data, nil
}
