package mount

import "github.com/moby/sys/mountinfo"

// mountAt is what is mounted at a directory of this machine; nil is nothing.
func mountAt(dir string) (*mountinfo.Info, error) {
	at, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Mountpoint != dir, false })
	return onTop(at), err
}

// onTop is, of mounts that lie on one another, the one on top: it is the parent of none.
func onTop(mounts []*mountinfo.Info) (found *mountinfo.Info) {
	parents := map[int]bool{}
	for _, m := range mounts {
		if m.Parent != m.ID {
			parents[m.Parent] = true
		}
	}
	for _, m := range mounts {
		if !parents[m.ID] {
			found = m
		}
	}
	return found
}
