package apply

import (
	"path/filepath"

	"github.com/pullet/pullet/apply/hostfile"
)

// inUsersHands reports that another user than pullet's can change what is at a path that the step works on: what is
// wrong there may be that user's doing.
func (s *boundStep) inUsersHands(h *Host) bool {
	paths := []string{s.Params.Text("name")}
	for _, what := range s.manages() {
		paths = append(paths, what.Path)
	}
	for _, path := range paths {
		if filepath.IsAbs(path) && hostfile.Root(h.Root).Shared(path) {
			return true
		}
	}
	return false
}
