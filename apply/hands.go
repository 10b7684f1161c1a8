package apply

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// inUsersHands reports that another user than pullet's can change what is at a path that the step works on: what is wrong there may be that
// user's doing.
func (s *boundStep) inUsersHands(h *Host) bool {
	paths := []string{s.Params.Text("name")}
	for _, what := range s.manages() {
		paths = append(paths, what.Path)
	}
	for _, path := range paths {
		if filepath.IsAbs(path) && changeable(h.Root, path) {
			return true
		}
	}
	return false
}

// changeable reports a directory above a path that another user can write. Links are followed: whose they are is told by where they lie.
func changeable(root, path string) bool {
	at := filepath.Clean(root)
	for part := range strings.SplitSeq(strings.Trim(filepath.Dir(filepath.Clean(path)), "/"), "/") {
		at = filepath.Join(at, part)
		info, err := os.Stat(at)
		if err != nil {
			return false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		mode := info.Mode().Perm()
		if int(st.Uid) != os.Geteuid() && st.Uid != 0 || mode&0o002 != 0 || mode&0o020 != 0 && st.Gid != 0 {
			return true
		}
	}
	return false
}
