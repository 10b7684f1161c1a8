package mount

import (
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"

	"github.com/pullet/pullet/apply/hostfile"
)

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

// mountOf is the mount on which a path lies; nil where nothing is there. A mount with the number except does not count:
// something may be bound to itself.
func mountOf(name string, except int) (*mountinfo.Info, error) {
	real, err := filepath.EvalSymlinks(name)
	if hostfile.NotThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := mountinfo.GetMounts(nil)
	return around(all, real, except), err
}

// around is the mount on which a path lies: of the mounts above it the deepest, and of those the one on top.
func around(all []*mountinfo.Info, at string, except int) *mountinfo.Info {
	var found []*mountinfo.Info
	for _, m := range all {
		above := m.Mountpoint == "/" || m.Mountpoint == at || strings.HasPrefix(at, m.Mountpoint+"/")
		switch {
		case !above || m.ID == except:
		case len(found) > 0 && len(found[0].Mountpoint) > len(m.Mountpoint):
		case len(found) > 0 && len(found[0].Mountpoint) == len(m.Mountpoint):
			found = append(found, m)
		default:
			found = []*mountinfo.Info{m}
		}
	}
	return onTop(found)
}
