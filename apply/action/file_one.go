package action

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// desired is what a file shall hold.
type desired struct {
	data   []byte    // nil: not managed
	remote *download // where it comes from instead; its digest tells whether it is there
	hidden bool      // it is not shown in a diff
}

func (d desired) managed() bool { return d.data != nil || d.remote != nil }

// write writes it.
func (d desired) write(ctx context.Context, to io.Writer) error {
	if d.remote != nil {
		return d.remote.fetch(ctx, to)
	}
	_, err := to.Write(d.data)
	return err
}

// diff is how a file becomes what it shall be.
func (d desired) diff(name string, have []byte) string {
	switch {
	case d.hidden:
		return "(sensitive: not shown)\n"
	case d.remote != nil:
		return fmt.Sprintf("%s -> %s %s\n", describe(have), d.remote, d.remote.digest)
	}
	return textDiff(name, have, d.data)
}

// oneFile is a regular file that shall be there.
type oneFile struct {
	name string          // in the repository's words
	at   *hostfile.Entry // on this machine
	want desired
	w    wanted
	keep bool // what is there may hold anything
}

// found is what of a file is not as it shall be.
type found struct {
	apply.Change
	isNew   bool
	content bool // it has to be written; else only owner and mode are set
	foreign bool // it is right, and belongs to a user who may have it open: its new owner gets a file that is written anew
}

// check compares type, content, owner and mode.
func (f oneFile) check() (found, error) {
	info, err := f.at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return found{apply.Change{Summary: "create", Diff: f.want.diff(f.name, nil)}, true, true, false}, nil
	case err != nil:
		return found{}, err
	case info.IsDir():
		return found{}, fmt.Errorf("%s is a directory: remove it with file.absent first", f.name)
	case info.Mode()&fs.ModeSymlink != 0 && f.keep:
		return found{}, nil
	case info.Mode()&fs.ModeSymlink != 0:
		return found{apply.Change{Summary: "replace a symbolic link by a file", Diff: f.want.diff(f.name, nil)}, false, true, false}, nil
	case !info.Mode().IsRegular():
		return found{}, fmt.Errorf("%s is neither a file nor a link (%s)", f.name, info.Mode().Type())
	}
	return f.compare(info)
}

func (f oneFile) compare(info fs.FileInfo) (found, error) {
	differs := f.w.differs(info)
	out := found{Change: apply.Change{Summary: strings.Join(differs, ", ")}}
	if f.keep || !f.want.managed() {
		return out, nil
	}
	same, diff, err := f.sameContent(info)
	if err != nil || same {
		out.foreign = !f.w.keepsOwner(info)
		return out, err
	}
	out.content = true
	out.Summary, out.Diff = strings.Join(append([]string{"content"}, differs...), ", "), diff
	return out, nil
}

// maxCompared is the largest file that is read to show how it differs. A user can make one of any size.
const maxCompared = 64 << 20

// sameContent compares the content, and gives the diff where it is another.
func (f oneFile) sameContent(info fs.FileInfo) (same bool, diff string, err error) {
	if f.want.remote != nil {
		return f.sameDigest(info)
	}
	if info.Size() == 0 && len(f.want.data) == 0 {
		return true, "", nil
	}
	if size := info.Size(); size > maxCompared && size != int64(len(f.want.data)) {
		return false, fmt.Sprintf("%s: %d bytes -> %s\n", f.name, size, describe(f.want.data)), nil
	}
	have, err := f.at.ReadFile(max(maxCompared, int64(len(f.want.data))))
	if err != nil || bytes.Equal(have, f.want.data) {
		return err == nil, "", err
	}
	return false, f.want.diff(f.name, have), nil
}

// sameDigest compares with what an address serves.
func (f oneFile) sameDigest(info fs.FileInfo) (same bool, diff string, err error) {
	had := fmt.Sprintf("%d bytes", info.Size())
	if info.Size() <= maxDownload {
		have, err := fileDigest(f.at)
		if err != nil || have == f.want.remote.digest {
			return true, "", err
		}
		had = have.String()
	}
	return false, fmt.Sprintf("%s -> %s %s\n", had, f.want.remote, f.want.remote.digest), nil
}

// apply makes the file what it shall be.
func (f oneFile) apply(ctx context.Context, h *apply.Host, p Placing) error {
	is, err := f.check()
	if err != nil {
		return err
	}
	c, err := f.candidate(ctx, h, p, is)
	if err != nil {
		return err
	}
	if c == nil {
		return f.w.set(f.at)
	}
	defer c.Drop()
	return c.putDurable()
}

// candidate is the file as it shall be, beside its place, after check found something; nil where only owner and mode differ.
func (f oneFile) candidate(ctx context.Context, h *apply.Host, p Placing, is found) (*candidate, error) {
	if err := f.w.known(); err != nil || !is.content && !is.foreign {
		return nil, err
	}
	if err := p.parents(f.name, f.at); err != nil {
		return nil, err
	}
	old, err := oldFile(f.at)
	if err != nil {
		return nil, err
	}
	defer old.close()
	return p.candidate(ctx, h, f.name, f.at, old, f.w, func(to io.Writer) error { return f.want.write(ctx, to) })
}

// digest is a SHA-256 sum.
type digest [sha256.Size]byte

func (d digest) String() string { return fmt.Sprintf("sha256:%x", d[:]) }

func fileDigest(at *hostfile.Entry) (digest, error) {
	sum := sha256.New()
	err := at.CopyTo(sum, maxDownload)
	return digest(sum.Sum(nil)), err
}
