package agent

import (
	"context"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// versions are what the repositories hold at versions; what was parsed of the last one is kept between pulls.
type versions struct {
	*self
	parsed *render.Repository
	at     string // the version of parsed
}

// repository is a version's content.
func (s *versions) repository(ctx context.Context, v *state.Version) (*render.Repository, error) {
	if s.parsed != nil && s.at == v.ID {
		return s.parsed, nil
	}
	snapshot, err := s.outside.Repositories.Snapshot(ctx, heads(v))
	if err != nil {
		return nil, err
	}
	layers := make([]render.Layer, len(snapshot.Layers))
	for i, l := range snapshot.Layers {
		layers[i] = render.Layer{Name: l.Name, FS: l.FS}
	}
	s.parsed, s.at = render.Open(layers...), v.ID
	return s.parsed, nil
}
