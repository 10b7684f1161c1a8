package state

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
)

// Run returns a run. If it is not on record, the error is a *MissingRunError.
func (s *Reactions) Run(ctx context.Context, id string) (ReactionStatus, error) {
	runs, err := s.list(ctx, clientv3.OpGet(s.givenKey(id)))
	if err == nil && len(runs) == 0 {
		err = &MissingRunError{id}
	}
	if err != nil {
		return ReactionStatus{}, err
	}
	return runs[0], nil
}

// MissingRunError says that no run has this id.
type MissingRunError struct{ ID string }

func (e *MissingRunError) Error() string {
	return fmt.Sprintf("there is no run %q of a reaction on record: see pullet reactions", safetext.Line(e.ID, 60))
}
