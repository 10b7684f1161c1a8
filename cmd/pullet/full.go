package main

import (
	"errors"
	"fmt"

	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

// unlessFull is the error of a command that shuts somebody out, but for one of a datastore that is full: then the
// keeper of this host does it. Where this host keeps none, the error says where to type the command.
func (a *app) unlessFull(err error, command string, inside func(datastore.Config) error) error {
	away, ok := errors.AsType[*state.UnreachableError](err)
	if !ok || !away.Full() || away.Access.Kind == "" { // without a kind it is no datastore of the fleet's own
		return err
	}
	c, unread := a.readConfig()
	if unread != nil {
		return errors.Join(err, unread)
	}
	if !c.Datastore.Set() {
		return fmt.Errorf("%w; on that host this works all the same: %s", err, command)
	}
	return inside(c.Datastore)
}
