package actiontest

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// watched are the directories of a whole host in which actions leave something.
var watched = []string{
	"/etc", "/home", "/opt", "/root", "/srv", "/usr/local", "/var/lib/apt", "/var/lib/dpkg", "/var/spool",
}

// listed are files that are compared by size and time alone: dpkg's lists of a whole system are thousands, and long.
const listed = "/var/lib/dpkg/info/"

// Tree is what an action may change: all of the root, or the directories of a whole host in which actions leave
// something. See Tree, the function.
func (s *Scene) Tree() map[string]string {
	s.T.Helper()
	if !s.Whole {
		return Tree(s.T, s.Root)
	}
	out := map[string]string{}
	for _, dir := range watched {
		if _, err := os.Stat(dir); err == nil {
			maps.Copy(out, Tree(s.T, dir))
		}
	}
	return out
}

// All is Tree with the state directory.
func (s *Scene) All() map[string]string {
	s.T.Helper()
	out := s.Tree()
	maps.Copy(out, Tree(s.T, filepath.Dir(s.State)))
	return out
}

// Tree is everything below a directory, by path: type, mode, owner, inode, time, and content or target.
func Tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		what := ""
		switch {
		case info.Mode().IsRegular() && strings.HasPrefix(path, listed):
			what = fmt.Sprintf("%d bytes, ctime %d.%09d", st.Size, st.Ctim.Sec, st.Ctim.Nsec)
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if what, err = os.Readlink(path); err != nil {
				return err
			}
		}
		out[path] = fmt.Sprintf("%s %d:%d ino %d mtime %d %q",
			info.Mode(), st.Uid, st.Gid, st.Ino, info.ModTime().UnixNano(), what)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Differences are the paths at which two trees differ, each with what was and what is there.
func Differences(before, after map[string]string) []string {
	var out []string
	for path, was := range before {
		if after[path] != was {
			out = append(out, fmt.Sprintf("%s: %s -> %s", path, was, after[path]))
		}
	}
	for path, is := range after {
		if _, was := before[path]; !was {
			out = append(out, fmt.Sprintf("%s: new %s", path, is))
		}
	}
	return out
}

// OfFiles leaves out directories, whose times a candidate moves that came and went.
func OfFiles(changed []string) []string {
	var out []string
	for _, d := range changed {
		if !strings.Contains(d, ": d") {
			out = append(out, d)
		}
	}
	return out
}

// OwnerOf is the owner of a file, and of a link itself.
func OwnerOf(t *testing.T, path string) (uid, gid int) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}
