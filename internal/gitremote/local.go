package gitremote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
)

// A repository on this machine may belong to someone who is not trusted: its
// references are small texts, read here below its directory and nowhere else;
// its objects are read by a child with the rights of the directory's owner.

// gitDir is a repository's own directory: a bare one, or the .git of a work
// tree.
type gitDir struct {
	*os.Root
	dir *os.File // the same, for a child
}

func openLocal(path string) (*gitDir, error) {
	for _, dir := range []string{path + "/.git", path, path + ".git"} {
		root, err := os.OpenRoot(dir + "/.") // a directory only: a pipe would be waited for
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		own, err := root.Open(".")
		if err != nil {
			return nil, errors.Join(err, root.Close())
		}
		g := &gitDir{root, own}
		_, head := root.Lstat("HEAD")
		_, objects := root.Lstat("objects")
		if head != nil || objects != nil {
			if err := g.Close(); err != nil {
				return nil, err
			}
			continue
		}
		if info, err := root.Lstat("shallow"); err == nil && info.Size() > 0 {
			return nil, errors.Join(
				g.Close(),
				fmt.Errorf(
					"%s is a shallow clone, which cannot be pulled from: git -C %s fetch --unshallow",
					path,
					path,
				),
			)
		}
		return g, nil
	}
	return nil, &NotFoundError{}
}

func (g *gitDir) Close() error { return errors.Join(g.dir.Close(), g.Root.Close()) }

// owner is whose rights the objects are read with; nil where this process has
// no others than its own.
func (g *gitDir) owner() (*owner, error) {
	info, err := g.dir.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("its owner is not known")
	}
	return &owner{st.Uid, st.Gid}, nil
}

// text reads a small regular file. It neither waits for a pipe nor leaves the
// repository.
func (g *gitDir) text(name string, most int64) ([]byte, error) {
	f, err := g.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(&LocalError{fmt.Sprintf("%s is not a regular file", name)}, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = tooLong(name, bytesText(most))
	}
	return text, err
}

// maxRefFile is what a file with one reference may have: a name with room.
const maxRefFile = maxName + 100

// listAttempts are made while git packs references.
const listAttempts = 10

// refs are the references of a repository, as it would advertise them but for
// what annotated tags point to, where that is not on record. A git that packs
// them takes away files of references behind packed-refs, so that is read
// again: else an older commit could stand in the list.
func (g *gitDir) refs() (Listing, error) {
	for range listAttempts {
		before, err := g.packedRefs()
		if err != nil {
			return Listing{}, err
		}
		l, failed := g.list(before)
		if now, err := g.packedRefs(); err != nil || bytes.Equal(now, before) {
			return l, cmp.Or(err, failed)
		}
	}
	return Listing{}, &LocalError{"its references are packed again and again"}
}

// packedRefs is the file with references that were put together; nil is none.
func (g *gitDir) packedRefs() ([]byte, error) {
	text, err := g.text("packed-refs", maxListing)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// list puts the references together: a file of its own comes before what is
// packed.
func (g *gitDir) list(packed []byte) (Listing, error) {
	l := localListing{at: map[plumbing.ReferenceName]int{}, alias: map[plumbing.ReferenceName]plumbing.ReferenceName{}}
	if err := l.packed(packed); err != nil {
		return l.Listing, err
	}
	for _, dir := range []string{"refs/heads", "refs/tags"} {
		if err := g.loose(dir, &l, 0); err != nil {
			return l.Listing, err
		}
	}
	head, err := g.text("HEAD", maxRefFile)
	if err != nil {
		return l.Listing, err
	}
	if err := l.one("HEAD", head); err != nil {
		return l.Listing, err
	}
	for name, target := range l.alias {
		if i, ok := l.at[target]; ok && name != "HEAD" {
			l.set(name, l.Refs[i].ID, l.Refs[i].Peeled)
		}
	}
	if len(l.Refs) == 0 {
		return l.Listing, &EmptyError{}
	}
	return l.Listing, nil
}

const maxRefDepth = 50

// loose reads the references that have a file of their own. A git that writes
// at the same time has lock files, and may take away what was listed.
func (g *gitDir) loose(dir string, l *localListing, depth int) error {
	if depth > maxRefDepth {
		return tooLong("directories below refs", fmt.Sprint(maxRefDepth))
	}
	entries, err := fs.ReadDir(g.FS(), dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !validName(name) {
			continue
		}
		if e.IsDir() {
			err = g.loose(name, l, depth+1)
		} else {
			var text []byte
			if text, err = g.text(name, maxRefFile); err == nil {
				err = l.one(plumbing.ReferenceName(name), text)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// localListing is a listing that is put together from files.
type localListing struct {
	Listing
	at    map[plumbing.ReferenceName]int
	alias map[plumbing.ReferenceName]plumbing.ReferenceName // references that name another one
}

func (l *localListing) set(name plumbing.ReferenceName, id, peeled plumbing.Hash) {
	if i, ok := l.at[name]; ok {
		l.Refs[i] = Ref{name, id, peeled}
		return
	}
	l.at[name] = len(l.Refs)
	l.Refs = append(l.Refs, Ref{name, id, peeled})
}

// one takes the content of a file with one reference.
func (l *localListing) one(name plumbing.ReferenceName, text []byte) error {
	content := strings.TrimSpace(string(text))
	target, symbolic := strings.CutPrefix(content, "ref:")
	target = strings.TrimSpace(target)
	switch {
	case len(l.Refs) >= maxRefs:
		return tooLong("its references", fmt.Sprint(maxRefs))
	case symbolic && name == "HEAD":
		if validName(target) {
			l.Head = plumbing.ReferenceName(target)
		}
	case symbolic:
		l.alias[name] = plumbing.ReferenceName(target)
	case !plumbing.IsHash(content):
		return &LocalError{fmt.Sprintf("%s is no reference", name)}
	default:
		l.set(name, plumbing.NewHash(content), plumbing.ZeroHash)
	}
	return nil
}

// packed takes the file with references that were put together: ID NAME, and
// ^ID behind an annotated tag.
func (l *localListing) packed(text []byte) error {
	for line := range bytes.Lines(text) {
		line := strings.TrimSpace(string(line))
		if peeled, ok := strings.CutPrefix(line, "^"); ok && len(l.Refs) > 0 && plumbing.IsHash(peeled) {
			l.Refs[len(l.Refs)-1].Peeled = plumbing.NewHash(peeled)
			continue
		}
		id, name, ok := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#':
		case !ok || !plumbing.IsHash(id):
			return &LocalError{"packed-refs has a line that is no reference"}
		case len(l.Refs) >= maxRefs:
			return tooLong("its references", fmt.Sprint(maxRefs))
		case validName(name):
			l.set(plumbing.ReferenceName(name), plumbing.NewHash(id), plumbing.ZeroHash)
		}
	}
	return nil
}

// listLocal lists a repository on this machine. A child looks at tags only where
// packed-refs does not say what they are.
func (c Client) listLocal(ctx context.Context, r Remote) (l Listing, err error) {
	ep, err := r.Endpoint()
	if err != nil {
		return l, err
	}
	g, err := openLocal(ep.Path)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if l, err = g.refs(); err != nil {
		return l, err
	}
	var open []string
	for _, ref := range l.Refs {
		if ref.Name.IsTag() && ref.Peeled.IsZero() {
			open = append(open, ref.ID.String())
		}
	}
	if len(open) == 0 {
		return l, nil
	}
	answer, err := c.ofRepository(ctx, g, task{Do: taskPeel, Wants: open}, nil)
	for i, ref := range l.Refs {
		if peeled := answer.Peeled[ref.ID.String()]; ref.Name.IsTag() && plumbing.IsHash(peeled) {
			l.Refs[i].Peeled = plumbing.NewHash(peeled)
		}
	}
	return l, err
}

// ofRepository runs a child that reads a repository.
func (c Client) ofRepository(ctx context.Context, g *gitDir, t task, made func(io.Reader) error) (reply, error) {
	as, err := g.owner()
	if err != nil {
		return reply{}, err
	}
	t.Limits = c.Limits.Whole()
	return child{task: t, file: g.dir, owner: as, made: made}.run(ctx)
}

// receiveLocal has a child write a pack with what is wanted of a repository on
// this machine.
func (c Client) receiveLocal(ctx context.Context, r Remote, q Request, to *incoming) (err error) {
	ep, err := r.Endpoint()
	if err != nil {
		return err
	}
	g, err := openLocal(ep.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	l := c.Limits.Whole()
	full := &LimitError{What: "the pack", Setting: "disk", Limit: bytesText(l.Disk)}
	_, err = c.ofRepository(ctx, g, task{Do: taskPack, Wants: texts(q.Wants), Haves: texts(q.Haves)},
		func(r io.Reader) error { return to.fill(&boundedReader{r, l.Disk, full}, l) })
	return err
}

func texts(ids []plumbing.Hash) (out []string) {
	for _, id := range ids {
		out = append(out, id.String())
	}
	return out
}
