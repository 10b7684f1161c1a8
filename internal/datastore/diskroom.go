package datastore

import (
	"fmt"

	"github.com/pullet/pullet/internal/durable"
)

// leastFree is how much of its disk etcd needs to start, in bytes: with less it ends in the middle of its first files,
// and says so in many lines.
const leastFree = 4 << 20

// diskRoom says that the disk is too full for a record to begin there. One that is there goes on as long as it can.
func (c Config) diskRoom() error {
	if c.recorded() {
		return nil
	}
	free, err := durable.Room(c.Dir)
	if err != nil {
		return err
	}
	if free < leastFree {
		return fmt.Errorf("the disk of %s is full: %s are free, and etcd needs %s to start",
			c.Dir, sized(int64(free)), sized(leastFree))
	}
	return nil
}
