package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/safetext"
)

// gitPlace is what stands where a checkout is to be.
type gitPlace int

const (
	gitNothing  gitPlace = iota // nothing, or an empty directory
	gitHalf                     // a checkout that was cut off
	gitCheckout                 // a checkout
)

// gitHalfway is the file in .git that stands for a checkout that was begun and not ended: what is in the directory then
// is ours.
const gitHalfway = "pullet-checkout"

// gitDone is the commit that was checked out last.
const gitDone plumbing.ReferenceName = pulletRefs + "checkout"

// inspect says what stands at the place of the checkout, and opens it where it is a directory.
func (a *Checkout) inspect(at *hostfile.Entry) (gitPlace, *hostfile.Dir, error) {
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return gitNothing, nil, nil
	case err != nil:
		return 0, nil, err
	case !info.IsDir():
		return 0, nil, fmt.Errorf("%s is not a directory: remove it with file.absent first", a.Name)
	}
	dir, err := at.Dir()
	if err != nil {
		return 0, nil, err
	}
	what, err := a.lookInto(dir)
	if err != nil {
		dir.Close()
		return 0, nil, err
	}
	return what, dir, nil
}

func (a *Checkout) lookInto(dir *hostfile.Dir) (gitPlace, error) {
	names, err := dir.Names()
	if err != nil || len(names) == 0 {
		return gitNothing, err
	}
	own, err := dir.Entry(".git")
	if err != nil {
		return 0, err
	}
	defer own.Close()
	info, err := own.Lstat()
	switch {
	case hostfile.NotThere(err):
		return 0, fmt.Errorf("%s is there and is no checkout: move it away, or remove it with file.absent", a.Name)
	case err != nil:
		return 0, err
	case !info.IsDir():
		return 0, fmt.Errorf(
			"%s is a work tree of a repository elsewhere: move it away, or remove it with file.absent",
			a.Name,
		)
	}
	mark, err := dir.Entry(path.Join(".git", gitHalfway))
	if err != nil {
		return 0, err
	}
	defer mark.Close()
	if mark.Exists() {
		return gitHalf, nil
	}
	return gitCheckout, nil
}

// gitTree is a checkout: a repository and its work tree.
type gitTree struct {
	*git.Repository
	dir     workTree      // its directory is of whoever opened the tree
	own     *hostfile.Dir // .git
	storage *filesystem.Storage
}

// storageIn is the repository in a directory.
func storageIn(own *hostfile.Dir) *filesystem.Storage {
	return filesystem.NewStorage(wholeRefs{gitDisk{own}}, cache.NewObjectLRUDefault())
}

func openGitTree(dir *hostfile.Dir) (*gitTree, error) {
	at, err := dir.Entry(".git")
	if err != nil {
		return nil, err
	}
	defer at.Close()
	own, err := at.Dir()
	if err != nil {
		return nil, err
	}
	st := storageIn(own)
	r, err := git.Open(st, gitDisk{dir})
	if err != nil {
		own.Close()
		return nil, errors.Join(fmt.Errorf("its repository cannot be read: %w", err), st.Close())
	}
	return &gitTree{r, workTree{dir}, own, st}, nil
}

// initGitTree begins a checkout anew, in place of one that was cut off before it was one.
func initGitTree(ctx context.Context, dir *hostfile.Dir) (*gitTree, error) {
	at, err := dir.Entry(".git")
	if err != nil {
		return nil, err
	}
	defer at.Close()
	if err := at.RemoveAll(ctx); err != nil {
		return nil, err
	}
	own, err := at.Mkdir(0o755)
	if err != nil {
		return nil, err
	}
	st := storageIn(own)
	g := &gitTree{nil, workTree{dir}, own, st}
	mark, err := gitDisk{own}.Create(gitHalfway)
	if err == nil {
		err = mark.Close()
	}
	if err == nil {
		g.Repository, err = git.Init(st, gitDisk{dir})
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Close lets go of the files.
func (g *gitTree) Close() error {
	err := g.storage.Close()
	g.own.Close()
	return err
}

// url is that of the remote; "" when there is none.
func (g *gitTree) url() string {
	r, err := g.Remote("origin")
	if err != nil || len(r.Config().URLs) == 0 {
		return ""
	}
	return r.Config().URLs[0]
}

func (g *gitTree) setURL(url string) error {
	if g.url() == url {
		return nil
	}
	c, err := g.Config()
	if err != nil {
		return err
	}
	c.Remotes["origin"] = &config.RemoteConfig{
		Name:  "origin",
		URLs:  []string{url},
		Fetch: []config.RefSpec{"+refs/heads/*:refs/remotes/origin/*"},
	}
	return g.SetConfig(c)
}

// head is the commit that is checked out; zero when none is.
func (g *gitTree) head() (plumbing.Hash, error) {
	ref, err := g.Head()
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return plumbing.ZeroHash, nil
	}
	if err != nil {
		return plumbing.ZeroHash, err
	}
	return ref.Hash(), nil
}

// leftAt reports whether the commit is the one that pullet checked out last.
func (g *gitTree) leftAt(commit plumbing.Hash) bool {
	ref, err := g.Reference(gitDone, false)
	return err == nil && ref.Hash() == commit
}

func (g *gitTree) has(commit plumbing.Hash) bool {
	_, err := g.CommitObject(commit)
	return err == nil
}

// resolve makes what was fetched the target.
func (g *gitTree) resolve(t *gitTarget) error {
	if t.ref == "" {
		if !g.has(t.commit) {
			return fmt.Errorf(
				"%s does not offer the commit %s: it may not be pushed yet, or its branch was deleted",
				g.url(),
				t.commit,
			)
		}
		return nil
	}
	ref, err := g.Reference(t.tracking(), true)
	if err != nil {
		return err
	}
	commit, err := peel(g.storage, ref.Hash())
	if err != nil {
		return err
	}
	if t.commit = commit; !g.has(commit) {
		return fmt.Errorf("%s: %s is no commit", g.url(), t.ref.Short())
	}
	return nil
}

// local names what in a checkout is nobody else's: changed files, and commits that the remote does not have. "" is
// nothing.
func (g *gitTree) local(t gitTarget) (string, error) {
	changed, err := g.changed()
	if err != nil {
		return "", err
	}
	var all []string
	if len(changed) > 0 {
		all = append(all, "local changes of "+someNames(changed))
	}
	commits, err := g.ownCommits(t)
	if len(commits) > 0 {
		all = append(all, "commits of its own, "+someNames(commits))
	}
	return strings.Join(all, " and "), err
}

// someNames are the first of a few names, in order.
func someNames(names []string) string {
	slices.Sort(names)
	return safetext.Some(names, 5)
}

// ownCommits returns what is checked out, and the branches that are about to be moved or removed, where neither the
// remote is known to have them nor pullet brought them.
func (g *gitTree) ownCommits(t gitTarget) ([]string, error) {
	refs, err := g.References()
	if err != nil {
		return nil, err
	}
	foreign, own := map[plumbing.Hash]bool{t.commit: true}, map[plumbing.Hash]bool{}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		switch name := ref.Name(); {
		case ref.Type() != plumbing.HashReference:
		case name.IsRemote() || name.IsTag() || strings.HasPrefix(name.String(), pulletRefs):
			foreign[ref.Hash()] = true
		case t.ref.IsBranch() && (name == t.ref || excludes(name, t.ref)):
			own[ref.Hash()] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if head, err := g.head(); err != nil || !head.IsZero() {
		own[head] = true
	}
	var out []string
	for commit := range own {
		if !foreign[commit] && !g.precedes(commit, slices.Collect(maps.Keys(foreign))) {
			out = append(out, shortCommit(commit))
		}
	}
	return out, nil
}

// precedes reports that a commit is in the history of another. A history that was cut short does not show it.
func (g *gitTree) precedes(commit plumbing.Hash, others []plumbing.Hash) bool {
	old, err := g.CommitObject(commit)
	return err == nil && slices.ContainsFunc(others, func(hash plumbing.Hash) bool {
		hash, err := peel(g.storage, hash)
		if err != nil {
			return false
		}
		later, err := g.CommitObject(hash)
		if err != nil {
			return false
		}
		yes, err := old.IsAncestor(later)
		return err == nil && yes
	})
}

// differentOwners counts the files of a tree that belong to others, and gives them to the wanted ones on demand.
func differentOwners(ctx context.Context, top *hostfile.Dir, w place.Wanted, set bool) (n int, err error) {
	if w.UID < 0 && w.GID < 0 && w.Known() == nil {
		return 0, nil
	}
	one := func(info fs.FileInfo, on place.Settable) error {
		if len(w.Differs(info)) == 0 {
			return nil
		}
		n++
		if !set {
			return nil
		}
		return w.Set(on)
	}
	info, err := top.Stat()
	if err == nil {
		err = one(info, top)
	}
	if err == nil {
		err = top.Walk(ctx, func(_ string, e *hostfile.Entry, info hostfile.Info) error { return one(info, e) })
	}
	return n, err
}
