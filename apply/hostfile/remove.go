package hostfile

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// maxDepth bounds how deep directories are walked.
const maxDepth = 1000

// Remove removes a file, a link, or an empty directory.
func (e *Entry) Remove() error {
	if e.gone != nil {
		return failed("remove", e.path, e.gone)
	}
	err := again(func() error { return unix.Unlinkat(e.dir.fd, e.base, 0) })
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if as := again(func() error { return unix.Unlinkat(e.dir.fd, e.base, unix.AT_REMOVEDIR) }); !errors.Is(
			as,
			unix.ENOTDIR,
		) {
			err = as
		}
	}
	return failed("remove", e.path, err)
}

// RemoveAll removes what is there with all that is in it. It enters no link. That nothing is there is no error.
func (e *Entry) RemoveAll(ctx context.Context) error { return removeAll(ctx, e, 0) }

func removeAll(ctx context.Context, e *Entry, depth int) error {
	err := e.Remove()
	for tries := 0; tries < 3 && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)); tries++ {
		if depth > maxDepth {
			return tooDeep(e.path)
		}
		if err := emptyDir(ctx, e, depth); err != nil {
			return err
		}
		err = e.Remove()
	}
	if NotThere(err) {
		return nil
	}
	return err
}

func tooDeep(path string) error {
	return &FileRefused{path, "lies deeper than a thousand directories", "remove it"}
}

// emptyDir removes what is in a directory.
func emptyDir(ctx context.Context, e *Entry, depth int) error {
	d, err := e.Dir()
	if NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := &Entry{dir: d, base: name, path: path.Join(d.path, name)}
		if err := removeAll(ctx, in, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Walk visits all that is below the directory, by relative path and in order, a directory before what is in it. It
// enters no link. What goes while it is walked is left out. fs.SkipDir from visit leaves out what is in a directory.
// The entry is closed by Walk.
func (d *Dir) Walk(ctx context.Context, visit func(rel string, e *Entry, info Info) error) error {
	return d.walk(ctx, ".", 0, visit)
}

func (d *Dir) walk(ctx context.Context, rel string, depth int, visit func(string, *Entry, Info) error) error {
	if depth > maxDepth {
		return tooDeep(d.path)
	}
	names, err := d.Names()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &Entry{dir: d, base: name, path: path.Join(d.path, name)}
		if err := walkEntry(ctx, e, path.Join(rel, name), depth, visit); err != nil {
			return err
		}
	}
	return nil
}

func walkEntry(ctx context.Context, e *Entry, rel string, depth int, visit func(string, *Entry, Info) error) error {
	info, err := e.Lstat()
	if NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = visit(rel, e, info)
	if errors.Is(err, fs.SkipDir) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return err
	}
	d, err := e.Dir()
	if NotThere(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return d.walk(ctx, rel, depth+1, visit)
}
