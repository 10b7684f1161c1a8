package place

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/safetext"
)

// Content is what a file shall hold.
type Content struct {
	Data   []byte      // nil: not managed
	Remote *fetch.File // where it comes from instead; its digest tells whether it is there
	Hidden bool        // it is not shown in a diff
}

func (d Content) managed() bool { return d.Data != nil || d.Remote != nil }

// write writes it.
func (d Content) write(ctx context.Context, to io.Writer) error {
	if d.Remote != nil {
		return d.Remote.Fetch(ctx, to)
	}
	_, err := to.Write(d.Data)
	return err
}

// diff is how a file becomes what it shall be.
func (d Content) diff(name string, have []byte) string {
	switch {
	case d.Hidden:
		return "(sensitive: not shown)\n"
	case d.Remote != nil:
		return fmt.Sprintf("%s -> %s %s\n", describe(have), d.Remote, d.Remote.Digest)
	}
	return Diff(name, have, d.Data)
}

// Resource is a file, link or directory that a step makes. When it is pruned a copy stays in the state directory; a
// directory goes only when it is empty.
func Resource(name string) apply.Resource {
	name = path.Clean(name)
	return apply.Resource{
		ID: "file " + name, Path: name,
		Absent: "file.absent", Params: map[string]any{"name": name, "onlyEmpty": true, "backup": true},
	}
}

// File is a regular file that shall be there.
type File struct {
	Name   string          // in the repository's words
	At     *hostfile.Entry // on this machine: see OpenFile
	Want   Content
	Wanted Wanted // owner and mode
	Keep   bool   // what is there may hold anything
}

// OpenFile opens the entry of a file. A file that gets other content is replaced where it is, even if a link is there.
// What keeps its content is only given an owner and a mode, so a link there is followed beneath the root.
func OpenFile(h *apply.Host, f File) (File, error) {
	var err error
	if f.At, err = h.Entry(f.Name); err != nil || f.replaces() {
		return f, err
	}
	if info, err := f.At.Lstat(); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return f, nil // what is wrong with it, Check finds
	}
	to, err := h.Follow(f.Name)
	if err != nil {
		f.At.Close()
		return f, err
	}
	if !to.Exists() { // the link itself says what is wrong
		to.Close()
		return f, nil
	}
	f.At.Close()
	f.At = to
	return f, nil
}

// replaces reports whether the file gets the content, whatever is there. Otherwise no content is ever written over.
func (f File) replaces() bool { return f.Want.managed() && !f.Keep }

// Found is what of a file is not as it shall be.
type Found struct {
	apply.Change
	isNew   bool
	Content bool // it has to be written; else only owner and mode are set
	foreign bool // it is right, and belongs to a user who may have it open: its new owner gets a file that is written anew
}

// Check compares type, content, owner and mode.
func (f File) Check() (Found, error) {
	info, err := f.At.Lstat()
	switch {
	case hostfile.NotThere(err):
		create := apply.Change{Summary: f.Wanted.Created(NewMode), Diff: f.Want.diff(f.Name, nil)}
		return Found{create, true, true, false}, nil
	case err != nil:
		return Found{}, err
	case info.IsDir():
		return Found{}, fmt.Errorf("%s is a directory: remove it with file.absent first", f.Name)
	case info.Mode()&fs.ModeSymlink != 0 && f.Keep:
		return Found{}, nil
	case info.Mode()&fs.ModeSymlink != 0 && !f.replaces():
		return f.dangling()
	case info.Mode()&fs.ModeSymlink != 0:
		return Found{
			apply.Change{Summary: "replace a symbolic link by a file", Diff: f.Want.diff(f.Name, nil)},
			false,
			true,
			false,
		}, nil
	case !info.Mode().IsRegular():
		return Found{}, fmt.Errorf("%s is neither a file nor a link (%s)", f.Name, info.Mode().Type())
	}
	return f.compare(info)
}

// dangling returns what a link lacks that leads to nothing: the file whose owner and mode are managed.
func (f File) dangling() (Found, error) {
	target, err := f.At.Readlink()
	if err != nil {
		return Found{}, err
	}
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(f.At.Path()), target)
	}
	lack := &apply.LackError{
		Path: target,
		Text: fmt.Sprintf(
			"%s is a symbolic link to %s, which does not exist; make that first, or give content", f.Name, target),
	}
	return Found{Change: apply.Change{Summary: "owner and mode of " + target, Lacks: lack}}, nil
}

func (f File) compare(info fs.FileInfo) (Found, error) {
	differs := f.Wanted.Differs(info)
	out := Found{Change: apply.Change{Summary: strings.Join(differs, ", ")}}
	if !f.replaces() {
		return out, nil
	}
	same, diff, err := f.sameContent(info)
	if err != nil || same {
		out.foreign = !f.Wanted.keepsOwner(info)
		return out, err
	}
	out.Content = true
	out.Summary, out.Diff = strings.Join(append([]string{"content"}, differs...), ", "), diff
	return out, nil
}

// maxCompared is the largest file that is read to show how it differs. A user can make one of any size.
const maxCompared = 64 << 20

// sameContent compares the content, and gives the diff where it is another.
func (f File) sameContent(info fs.FileInfo) (same bool, diff string, err error) {
	if f.Want.Remote != nil {
		return f.sameDigest(info)
	}
	if info.Size() == 0 && len(f.Want.Data) == 0 {
		return true, "", nil
	}
	if size := info.Size(); size > maxCompared && size != int64(len(f.Want.Data)) {
		return false, fmt.Sprintf("%s: %d bytes -> %s\n", safetext.OneLine(f.Name), size, describe(f.Want.Data)), nil
	}
	have, err := f.At.ReadFile(max(maxCompared, int64(len(f.Want.Data))))
	if err != nil || bytes.Equal(have, f.Want.Data) {
		return err == nil, "", err
	}
	return false, f.Want.diff(f.Name, have), nil
}

// sameDigest compares with what an address serves.
func (f File) sameDigest(info fs.FileInfo) (same bool, diff string, err error) {
	had := fmt.Sprintf("%d bytes", info.Size())
	if info.Size() <= fetch.MaxSize {
		have, err := fetch.DigestOf(f.At)
		if err != nil || have == f.Want.Remote.Digest {
			return true, "", err
		}
		had = have.String()
	}
	return false, fmt.Sprintf("%s -> %s %s\n", had, f.Want.Remote, f.Want.Remote.Digest), nil
}

// Apply makes the file what it shall be.
func (f File) Apply(ctx context.Context, h *apply.Host, p Placing) error {
	is, err := f.Check()
	if err != nil {
		return err
	}
	if is.Lacks != nil {
		return is.Lacks
	}
	c, err := f.Candidate(ctx, h, p, is)
	if err != nil {
		return err
	}
	if c == nil {
		return f.Wanted.Set(f.At)
	}
	defer c.Drop()
	return c.putDurable()
}

// Candidate is the file as it shall be, beside its place, after Check found something; nil where only owner and mode
// differ.
func (f File) Candidate(ctx context.Context, h *apply.Host, p Placing, is Found) (*Prepared, error) {
	if err := f.Wanted.Known(); err != nil || !is.Content && !is.foreign {
		return nil, err
	}
	if err := p.Parents(f.Name, f.At); err != nil {
		return nil, err
	}
	old, err := OpenOld(f.At)
	if err != nil {
		return nil, err
	}
	defer old.Close()
	return p.candidate(ctx, h, f.Name, f.At, old, f.Wanted, func(to io.Writer) error { return f.Want.write(ctx, to) })
}
