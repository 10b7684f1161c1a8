package apply

import (
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply/hostfile"
)

// inUsersHands reports whether a user other than pullet's can change a path that the step works on: an error there may
// be that user's doing.
func (s *boundStep) inUsersHands(h *Host) bool {
	located, ok := s.act.(Located)
	if !ok {
		return false
	}
	for _, path := range located.Paths(h) {
		if strings.HasSuffix(path, "/") {
			path += "any" // what is in the directory, where its owner makes names
		}
		if filepath.IsAbs(path) && hostfile.Root(h.Root).Shared(path) {
			return true
		}
	}
	return false
}
