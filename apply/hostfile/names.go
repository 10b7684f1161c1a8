package hostfile

import "fmt"

// oneName refuses a file that may be somebody else's under a second name: one with several names, where a user can put
// names and does not own the file.
func oneName(e *Entry, open Info) error {
	if open.IsDir() {
		return nil
	}
	dir, err := e.dir.Stat()
	if err != nil || open.UID() == dir.UID() && !own(open.UID()) {
		return err
	}
	names := uint64(open.st.Nlink) // arm64 has 32 bits of it
	if !dir.private() {
		names, err = namesNow(e, open)
	}
	if err != nil || names < 2 {
		return err
	}
	if dir.private() { // it may have been the user's when the name was put there
		foreign, err := e.dir.root.foreign(e.dir.path)
		if err != nil || !foreign {
			return err
		}
	}
	return &FileRefused{
		e.path,
		fmt.Sprintf(
			"belongs to uid %d and has %d names (hard links), where other users can put names",
			open.UID(),
			names,
		),
		"it may be a file of the system: find the others with find / -xdev -samefile " + e.path + ", and remove this name",
	}
}

// namesNow is how many names a file has. What is under this name, and the number, are looked at together, after the
// file was opened: so a name that the user took away meanwhile is not counted out.
func namesNow(e *Entry, open Info) (uint64, error) {
	now, err := statAt(e.dir.fd, e.base)
	if err != nil {
		return 0, failed("lstat", e.path, err)
	}
	if !now.same(open) {
		return 0, replaced(e.path)
	}
	return uint64(now.st.Nlink), nil
}

// foreign reports that a user can change something on the way to a directory. Nobody can exchange the first such
// directory on the way: that it is one is told reliably by its path.
func (r Root) foreign(name string) (bool, error) {
	top, err := r.open()
	if err != nil {
		return false, err
	}
	defer func() { top.Close() }()
	for _, part := range append([]string{"."}, parts(name)...) {
		fd, err := openOne(top.fd, part)
		if err != nil {
			return false, failed("open", name, err)
		}
		top.Close()
		top = r.newDir(fd, name)
		info, err := top.Stat()
		if err != nil || !info.private() {
			return true, err
		}
	}
	return false, nil
}
