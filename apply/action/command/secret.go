package command

import (
	"fmt"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
)

// readSecret reads a file of the host that nobody but its owner may read.
func readSecret(h *apply.Host, name string) ([]byte, error) {
	at, err := h.Follow(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return nil, fmt.Errorf("cannot read a secret: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf(
			"the secret in %s is open to others (mode %04o): chmod 600 %s",
			name,
			info.Mode().Perm(),
			name,
		)
	}
	data, err := at.ReadFile(place.MaxText)
	if err != nil {
		return nil, fmt.Errorf("cannot read a secret: %w", err)
	}
	return data, nil
}

// readHostFile reads a file of the host such as a certificate.
func readHostFile(h *apply.Host, name string) ([]byte, error) {
	at, err := h.Follow(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	return at.ReadFile(place.MaxText)
}
