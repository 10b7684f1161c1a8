package state

import (
	"context"
	"errors"
	"io/fs"
	"os"
)

// OpenToRead is Open for who only reads. Where an embedded member was never started in Dir, it leaves Dir alone, and
// gives an empty record that Close removes.
func OpenToRead(ctx context.Context, c Config) (*Store, error) {
	if !c.Unmade() {
		return Open(ctx, c)
	}
	var err error
	if c.Dir, err = os.MkdirTemp("", "pullet-"); err != nil {
		return nil, err
	}
	s, err := Open(ctx, c)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.Dir))
	}
	s.scratch = c.Dir
	return s, nil
}

// Unmade reports a record of this host's own that nobody made yet.
func (c Config) Unmade() bool {
	if len(c.Endpoints) > 0 {
		return false
	}
	_, err := os.Stat(c.Dir)
	return errors.Is(err, fs.ErrNotExist)
}
