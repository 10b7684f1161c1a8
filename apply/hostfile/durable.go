package hostfile

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// manyFiles are so many on one file system that all of it is made durable at once (syncfs), rather than each of them
// (fsync). Below that, what other programs write on the file system is not waited for.
const manyFiles = 32

// SyncAll makes candidates durable, content and attributes. They have no name of their own yet: see PlaceUnsynced.
func SyncAll(all []*Candidate) error {
	on := map[uint64][]*Candidate{}
	for _, c := range all {
		on[c.made.st.Dev] = append(on[c.made.st.Dev], c)
	}
	for _, some := range on {
		if len(
			some,
		) > manyFiles { // through a file that was open before anything was written: it reports all failed writes
			if err := failed("syncfs", some[0].at.path, unix.Syncfs(int(some[0].Fd()))); err != nil {
				return err
			}
			continue
		}
		for _, c := range some {
			if err := c.Sync(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unsynced is what was changed and need not be durable yet: directories in which names changed, and files whose
// attributes did. The zero value is nothing. It is safe for concurrent use, and holds nobody up while a file system
// hangs.
type Unsynced struct {
	mu sync.Mutex
	on map[uint64]*changedFS
}

// changedFS are the changes on one file system.
type changedFS struct {
	files map[uint64]*os.File // by inode
	many  bool                // more than files holds: all of the file system counts
}

// AddName notes that the entry's name changed.
func (u *Unsynced) AddName(e *Entry) error {
	if e.gone != nil {
		return failed("sync", e.path, e.gone)
	}
	info, err := e.dir.Stat()
	if err != nil {
		return err
	}
	return u.add(info, e.dir.reopen)
}

// AddAttributes notes that owner or mode of what the entry names changed. Only regular files that can be read are
// noted.
func (u *Unsynced) AddAttributes(e *Entry) error {
	info, err := e.Lstat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	err = u.add(info, e.Open)
	if _, refused := errors.AsType[*FileRefused](err); refused {
		return nil
	}
	return err
}

func (u *Unsynced) add(info Info, open func() (*os.File, error)) error {
	if u.covers(info) {
		return nil
	}
	f, err := open()
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if c := u.fs(info); c.files[info.st.Ino] == nil && !c.many {
		c.files[info.st.Ino] = f
		return nil
	}
	return f.Close() // another was faster
}

// covers reports that a file need not be opened: it is noted, or all of its file system is by now.
func (u *Unsynced) covers(info Info) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.fs(info)
	if c.files[info.st.Ino] == nil && len(c.files) >= manyFiles { // one of them stands for the file system
		c.many = true
	}
	return c.many || c.files[info.st.Ino] != nil
}

// fs are the changes on the file system of a file.
func (u *Unsynced) fs(info Info) *changedFS {
	if u.on == nil {
		u.on = map[uint64]*changedFS{}
	}
	c := u.on[info.st.Dev]
	if c == nil {
		c = &changedFS{files: map[uint64]*os.File{}}
		u.on[info.st.Dev] = c
	}
	return c
}

// Empty reports that there is nothing to make durable.
func (u *Unsynced) Empty() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.on) == 0
}

// Sync makes durable what was noted, and forgets it.
func (u *Unsynced) Sync() error {
	u.mu.Lock()
	all := u.on
	u.on = nil
	u.mu.Unlock()
	var err error
	for _, c := range all {
		err = errors.Join(err, c.sync())
	}
	return err
}

// sync makes each of the files durable, or the file system that they are on, and closes them.
func (c *changedFS) sync() error {
	for _, f := range c.files {
		defer f.Close() // nothing was written through it
	}
	for _, f := range c.files {
		if c.many {
			return failed("syncfs", f.Name(), unix.Syncfs(int(f.Fd())))
		}
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return nil
}
