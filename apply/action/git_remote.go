package action

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// gitRemote is where a checkout comes from.
type gitRemote struct {
	url   string
	path  string // of a repository on this host; "" for one elsewhere
	auth  transport.AuthMethod
	limit time.Duration // for a fetch
}

// How long a remote may take to say what it has, and how long a conversation that was cut off has to leave the disk alone.
const (
	gitListTimeout = 30 * time.Second
	gitStopTimeout = time.Second
)

// remote is the one of the parameters, with the credentials as their files hold them now.
func (a *GitCheckout) remote(h *apply.Host) (*gitRemote, error) {
	r := &gitRemote{url: a.URL, limit: a.Timeout.Std()}
	var err error
	switch file := a.Auth.TokenFile + a.Auth.PasswordFile; { // Bind allows one of them
	case a.endpoint.Protocol == "file":
		r.path, err = h.Resolve(a.endpoint.Path)
	case a.endpoint.Protocol == "ssh":
		r.auth, err = newGitSSH(h, a.endpoint, a.Auth)
	case file != "":
		secret, bad := readSecret(h, file)
		name := a.Auth.Username
		if name == "" {
			name = "git"
		}
		r.auth, err = &http.BasicAuth{Username: name, Password: strings.TrimSpace(string(secret))}, bad
	}
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	return r, nil
}

// list asks the remote for its references: one request.
func (r *gitRemote) list(ctx context.Context) ([]*plumbing.Reference, error) {
	var refs []*plumbing.Reference
	err := r.talk(ctx, gitListTimeout, func(ctx context.Context) (err error) {
		if r.path != "" {
			refs, err = listLocal(r.path)
			return err
		}
		o := &git.ListOptions{Auth: r.auth, PeelingOption: git.AppendPeeled}
		refs, err = r.origin(memory.NewStorage()).ListContext(ctx, o)
		return err
	})
	if err != nil { // one that is left behind may still write to refs
		return nil, err
	}
	return refs, nil
}

func (r *gitRemote) origin(st storage.Storer) *git.Remote {
	return git.NewRemote(st, &config.RemoteConfig{Name: "origin", URLs: []string{r.url}})
}

// fetch gets what a target needs. Not every server gives a commit for its id: then all branches and tags are fetched, to find it among them.
func (r *gitRemote) fetch(ctx context.Context, tree *gitTree, t gitTarget, depth int) error {
	if r.path != "" {
		return r.talk(ctx, r.limit, func(ctx context.Context) error { return copyLocal(ctx, r.path, tree, t) })
	}
	if t.ref == "" {
		exact := config.RefSpec(t.commit.String() + ":" + string(gitWanted))
		if r.download(ctx, tree, depth, exact) == nil && tree.has(t.commit) {
			return nil
		}
		if err := r.download(ctx, tree, tree.wholeDepth(), "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*"); err != nil {
			return err
		}
		return tree.isWhole()
	}
	return r.download(ctx, tree, depth, config.RefSpec("+"+t.ref+":"+t.tracking()))
}

func (r *gitRemote) download(ctx context.Context, tree *gitTree, depth int, specs ...config.RefSpec) error {
	tags := git.TagFollowing
	if depth > 0 {
		tags = git.NoTags
	}
	return r.talk(ctx, r.limit, func(ctx context.Context) error {
		o := &git.FetchOptions{RefSpecs: specs, Depth: depth, Auth: r.auth, Tags: tags, Force: true}
		if err := r.origin(tree.storage).FetchContext(ctx, o); !errors.Is(err, git.NoErrAlreadyUpToDate) {
			return err
		}
		return nil
	})
}

// talk runs a conversation within its time. The library does not heed its context while it connects, so a stuck one is left behind: it
// fails when it goes on, and at worst adds objects that nobody needs.
func (r *gitRemote) talk(ctx context.Context, limit time.Duration, op func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- op(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(gitStopTimeout):
		}
	}
	if ctx.Err() != nil {
		err = whyEnded(ctx)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot read %s: %w; try: git ls-remote %s", r.url, explainGit(err), r.url)
}

// explainGit adds what helps. The library has no typed errors for what is told by its text, and quotes whole answers with those that it has.
func explainGit(err error) error {
	for known, hint := range map[error]string{
		transport.ErrAuthenticationRequired: "check auth",
		transport.ErrAuthorizationFailed:    "check what auth may read",
		transport.ErrRepositoryNotFound:     "check the url; many servers also say so when the credentials may not see it",
		transport.ErrEmptyRemoteRepository:  "push a commit first",
	} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %s", known, hint)
		}
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	switch {
	case strings.Contains(text, "unable to authenticate"):
		return errors.New(text + ": the server does not accept auth.sshKey: add its public half as a deploy key")
	case strings.Contains(text, "no common algorithm for host key"):
		return errors.New(text + ": the server's host keys are of other types than those in auth.knownHosts: add them with ssh-keyscan and compare fingerprints")
	}
	return err
}

// gitTarget is what is to be checked out.
type gitTarget struct {
	ref    plumbing.ReferenceName // a branch or a tag of the remote; "" for a commit alone
	commit plumbing.Hash
}

// gitWanted is where a commit is kept that is fetched for its id.
const gitWanted plumbing.ReferenceName = "refs/pullet/wanted"

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

var someHex = regexp.MustCompile("^[0-9a-f]{7,64}$")

// pick finds what a name means at the remote: a branch before a tag of the same name, as git does.
func (r *gitRemote) pick(refs []*plumbing.Reference, name string) (gitTarget, error) {
	hashes, names := map[plumbing.ReferenceName]plumbing.Hash{}, []string{}
	wanted := plumbing.NewBranchReferenceName(name)
	for _, ref := range refs {
		if ref.Type() == plumbing.HashReference {
			hashes[ref.Name()] = ref.Hash()
			names = append(names, ref.Name().Short())
		}
		if name == "" && ref.Name() == plumbing.HEAD {
			if wanted = ref.Target(); ref.Type() == plumbing.HashReference {
				return gitTarget{commit: ref.Hash()}, nil
			}
		}
	}
	for _, ref := range []plumbing.ReferenceName{wanted, plumbing.NewTagReferenceName(name)} {
		hash, ok := hashes[ref]
		if peeled, annotated := hashes[ref+"^{}"]; annotated {
			hash = peeled
		}
		if ok {
			return gitTarget{ref, hash}, nil
		}
	}
	hint := ""
	if near := render.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	switch {
	case name == "":
		return gitTarget{}, fmt.Errorf("%s has no branch that its HEAD names: give ref", r.url)
	case someHex.MatchString(name):
		hint = ": a commit is written with all of its 40 digits"
	}
	return gitTarget{}, fmt.Errorf("%s has no branch or tag %q%s", r.url, name, hint)
}
