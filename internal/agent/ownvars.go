package agent

import (
	"errors"
	"os"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// ownVars are the host's own variables, and which of them are secrets.
type ownVars struct {
	vars    map[string]any
	secrets render.Secrets
}

// ownVarsError says that the host's own variables or keys cannot be read: the host is at fault, and not the commit.
type ownVarsError struct{ error }

func (e *ownVarsError) Unwrap() error { return e.error }

// faultOf is who is at fault where a version does not compile here.
func faultOf(err error) apply.Fault {
	if _, own := errors.AsType[*ownVarsError](err); own {
		return apply.HostFault
	}
	return apply.CommitFault
}

// saidOf is the first line of an error, with whose fault it is.
func saidOf(err error) string { return faultOf(err).Says(firstLine(err)) }

func (s *self) readOwnVars() (own ownVars, err error) {
	dir := s.config.Paths.HostVars
	own.vars, own.secrets, err = render.HostVars(os.DirFS(dir), dir)
	return own, err
}

// hasOwnVars reports variables of this host's own beside those of the repository, also where they cannot be read.
func (c *compiler) hasOwnVars() bool {
	own, err := c.ownVars()
	return err != nil || len(own.vars) > 0
}
