package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// gitRemote is where a checkout comes from.
type gitRemote struct {
	gitremote.Remote
	git gitremote.Client
	url string // as the step has it
}

// remote is the one of the parameters, with its files where they are on the host.
func (a *Checkout) remote(h *apply.Host) (*gitRemote, error) {
	r := &gitRemote{
		git:    h.Git,
		url:    a.URL,
		Remote: gitremote.Remote{URL: a.URL, Auth: gitremote.Auth{Username: a.Auth.Username}},
	}
	r.git.Limits.Time = a.Timeout.Std()
	own := map[*string]string{
		&r.Auth.SSHKey: a.Auth.SSHKey, &r.Auth.KnownHosts: a.Auth.KnownHosts,
		&r.Auth.PasswordFile: a.Auth.PasswordFile, &r.Auth.TokenFile: a.Auth.TokenFile, &r.TLS.CA: a.TLS.CA,
	}
	if a.endpoint.Protocol == "file" {
		own[&r.URL] = a.endpoint.Path
	}
	for to, name := range own {
		if name == "" {
			continue
		}
		at, err := h.Resolve(name)
		if err != nil {
			return nil, err
		}
		*to = at
	}
	return r, nil
}

// list asks the remote for its references: one request.
func (r *gitRemote) list(ctx context.Context) (gitremote.Listing, error) {
	l, err := r.git.List(ctx, r.Remote)
	return l, r.explain(ctx, err)
}

func (r *gitRemote) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = apply.WhyEnded(ctx)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot read %s: %w; try: %s", r.url, err, r.Try())
}

// fetch gets what a target needs. Not every server gives a commit for its id: then all branches and tags are fetched,
// to find it among them.
func (r *gitRemote) fetch(ctx context.Context, tree *gitTree, t gitTarget, depth int) error {
	if t.ref != "" && !r.Local() {
		return r.download(ctx, tree, depth, map[plumbing.ReferenceName]plumbing.Hash{t.tracking(): t.id})
	}
	if !r.Local() &&
		r.download(ctx, tree, depth, map[plumbing.ReferenceName]plumbing.Hash{gitWanted: t.commit}) == nil {
		return nil
	}
	l, err := r.list(ctx)
	if err != nil {
		return err
	}
	all := map[plumbing.ReferenceName]plumbing.Hash{}
	for _, ref := range l.Refs {
		if ref.Name.IsBranch() || ref.Name.IsTag() {
			all[gitTarget{ref: ref.Name}.tracking()] = ref.ID
		}
	}
	if r.Local() && t.ref == "" { // a commit that no branch has is there for its id, or it is not there
		exact := map[plumbing.ReferenceName]plumbing.Hash{gitWanted: t.commit}
		if err := r.download(ctx, tree, 0, exact); err != nil {
			if _, unknown := errors.AsType[*gitremote.LocalError](err); !unknown {
				return err
			}
		}
	}
	return r.download(ctx, tree, wholeHistory, all)
}

// wholeHistory is the depth of a fetch that also brings what a checkout lacks that has only the end of its history.
const wholeHistory = -1

// download gets references and what belongs to them. A depth is fetched anew: what is here is no help for it.
func (r *gitRemote) download(
	ctx context.Context,
	tree *gitTree,
	depth int,
	refs map[plumbing.ReferenceName]plumbing.Hash,
) error {
	q := gitremote.Request{Depth: max(depth, 0), Place: tree.placePack}
	for _, id := range refs {
		q.Wants = append(q.Wants, id)
	}
	shallow, err := tree.storage.Shallow()
	if err != nil {
		return err
	}
	lacks := depth == wholeHistory && len(shallow) > 0
	if q.Depth == 0 && !lacks {
		q.Shallow = shallow
		if q.Haves, err = tree.haves(); err != nil {
			return err
		}
	}
	got, err := r.git.Fetch(ctx, r.Remote, q)
	if err != nil {
		return r.explain(ctx, err)
	}
	if len(got.Shallow) > 0 {
		if err := tree.storage.SetShallow(append(shallow, got.Shallow...)); err != nil {
			return err
		}
	}
	if lacks {
		if err := tree.storage.Filesystem().Remove("shallow"); err != nil {
			return err
		}
	}
	tree.storage.Reindex()
	return tree.setRefs(refs)
}

// placePack puts a pack, or its index, among the others.
func (g *gitTree) placePack(name, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	const dir = "objects/pack"
	disk, part := g.storage.Filesystem(), path.Join(dir, "tmp_"+name)
	out, err := disk.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, disk.Remove(part))
	}
	return disk.Rename(part, path.Join(dir, name))
}

// maxHaves is how many commits a remote is told of at most.
const maxHaves = 1000

// haves returns the commits that references of a checkout name, for the remote to leave out: what is checked out comes
// first.
func (g *gitTree) haves() ([]plumbing.Hash, error) {
	head, err := g.head()
	if err != nil {
		return nil, err
	}
	refs, err := g.References()
	if err != nil {
		return nil, err
	}
	var haves []plumbing.Hash
	add := func(hash plumbing.Hash) {
		if commit, err := peel(g.storage, hash); err == nil && g.has(commit) && !slices.Contains(haves, commit) {
			haves = append(haves, commit)
		}
	}
	add(head)
	for len(haves) < maxHaves {
		ref, err := refs.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if ref.Type() == plumbing.HashReference {
			add(ref.Hash())
		}
	}
	return haves, nil
}

// peel follows a tag to what it points to in the end.
func peel(st *filesystem.Storage, hash plumbing.Hash) (plumbing.Hash, error) {
	for {
		o, err := st.EncodedObject(plumbing.AnyObject, hash)
		if err != nil || o.Type() != plumbing.TagObject {
			return hash, err
		}
		t, err := object.DecodeTag(st, o)
		if err != nil {
			return hash, err
		}
		hash = t.Target
	}
}

// gitTarget is what is to be checked out.
type gitTarget struct {
	ref    plumbing.ReferenceName // a branch or a tag of the remote; "" for a commit alone
	id     plumbing.Hash          // that the remote has for ref: of a commit, or of an annotated tag
	commit plumbing.Hash
}

// gitWanted is where a commit is kept that is fetched for its id.
const gitWanted plumbing.ReferenceName = pulletRefs + "wanted"

func (t gitTarget) String() string {
	if t.ref == "" {
		return shortCommit(t.commit)
	}
	return t.ref.Short() + " at " + shortCommit(t.commit)
}

// tracking is the remote's reference as the checkout knows it.
func (t gitTarget) tracking() plumbing.ReferenceName {
	if t.ref.IsBranch() {
		return plumbing.NewRemoteReferenceName("origin", t.ref.Short())
	}
	return t.ref
}

func shortCommit(h plumbing.Hash) string { return h.String()[:8] }

var someHex = lazyregexp.New("^[0-9a-f]{7,64}$")

// pick finds what a name means at the remote: a branch before a tag of the same name, as git does.
func (r *gitRemote) pick(l gitremote.Listing, name string) (gitTarget, error) {
	refs, names := map[plumbing.ReferenceName]gitremote.Ref{}, []string{}
	for _, ref := range l.Refs {
		refs[ref.Name] = ref
		names = append(names, ref.Name.Short())
	}
	wanted := plumbing.NewBranchReferenceName(name)
	if name == "" || name == plumbing.HEAD.String() {
		wanted = l.Head
		if head, ok := refs[plumbing.HEAD]; ok && wanted == "" {
			return gitTarget{commit: head.ID}, nil
		}
	}
	for _, name := range []plumbing.ReferenceName{wanted, plumbing.NewTagReferenceName(name)} {
		ref, ok := refs[name]
		if !ok {
			continue
		}
		t := gitTarget{name, ref.ID, ref.ID}
		if !ref.Peeled.IsZero() {
			t.commit = ref.Peeled
		}
		return t, nil
	}
	hint := ""
	if near := render.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	switch {
	case wanted == "":
		return gitTarget{}, fmt.Errorf("%s has no branch that its HEAD names: give ref", r.url)
	case someHex.MatchString(name):
		hint = ": a commit is written with all of its 40 digits"
	}
	return gitTarget{}, fmt.Errorf("%s has no branch or tag %q%s", r.url, name, hint)
}
