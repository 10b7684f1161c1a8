package mount

import (
	"fmt"
	"os"
	"strings"
)

// mountPoint is a line of /proc/self/mountinfo.
type mountPoint struct {
	id, parent   string
	dev          string // major:minor
	root         string // what of the file system is mounted
	dir          string
	options      string // of the mount
	fstype       string
	source       string
	superOptions string // of the file system, which its other mounts share
}

// parseMountinfo reads the kernel's table.
func parseMountinfo(text string) ([]mountPoint, error) {
	var out []mountPoint
	for line := range strings.Lines(text) {
		m, err := parseMount(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// parseMount reads a line. Between its six first fields and the last three stand any number of others, and a dash.
func parseMount(line string) (mountPoint, error) {
	fields := strings.Split(line, " ") // a source may be empty
	dash := 6
	for dash < len(fields) && fields[dash] != "-" {
		dash++
	}
	if len(fields) < dash+4 || !strings.HasPrefix(fields[4], "/") {
		return mountPoint{}, fmt.Errorf("/proc/self/mountinfo: cannot read the line %q", line)
	}
	last := fields[dash+1:]
	return mountPoint{
		id: fields[0], parent: fields[1], dev: fields[2], root: unescaped(fields[3]), dir: unescaped(fields[4]), options: fields[5],
		fstype: last[0], source: unescaped(last[1]), superOptions: strings.Join(last[2:], " "),
	}, nil
}

// mountAt is what is mounted at a directory: where several lie on one another, the one on top, which is nobody's parent there.
func mountAt(mounts []mountPoint, dir string) (mountPoint, bool) {
	parents := map[string]bool{}
	for _, m := range mounts {
		if m.dir == dir && m.parent != m.id {
			parents[m.parent] = true
		}
	}
	found, ok := mountPoint{}, false
	for _, m := range mounts {
		if m.dir == dir && !parents[m.id] {
			found, ok = m, true
		}
	}
	return found, ok
}

// mounted is what is mounted at a directory of this machine.
func mounted(dir string) (mountPoint, bool, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return mountPoint{}, false, err
	}
	all, err := parseMountinfo(string(text))
	if err != nil {
		return mountPoint{}, false, err
	}
	m, ok := mountAt(all, dir)
	return m, ok, nil
}
