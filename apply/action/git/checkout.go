package git

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/render"
)

// Checkout is a directory with the files of a git repository at a branch, a tag or a commit. A branch is followed: each
// check asks the remote where it is, and a remote that does not answer is an error. A commit id that is checked out
// needs no remote. State is the commit. No git program is needed.
//
// A directory that is not there appears as a whole, when all of it was fetched; later changes are made in place. What
// is interrupted, the next run finishes. Files that the repository does not know stay as they are. Changes of those
// that it knows, and commits that the remote does not have, are an error that names them; with force they are
// discarded. A commit with submodules or with files that are kept in git LFS is refused: neither is fetched. So is one
// with files that another filter of .gitattributes changes, such as git-crypt: no filter runs.
//
// A url that is a path, or file://, is a repository on the host itself.
//
// Example:
//
//	steps:
//	  - name: shop
//	    action: git.checkout
//	    parameters:
//	      name: /srv/shop
//	      url: git@git.example.org:web/shop.git
//	      ref: v1.4.2
//	      depth: 1
//	      owner: shop
//	      auth:
//	        sshKey: /etc/pullet/shop_key
//	        knownHosts: /etc/pullet/known_hosts
type Checkout struct {
	Name string `yaml:"name,required"` // absolute path of the directory
	URL  string `yaml:"url,required"`  // ssh, https, http, file:// or a path
	// a branch, a tag, a whole commit id, or HEAD; default: HEAD, the branch that the remote's HEAD names
	Ref     string          `yaml:"ref"`
	Depth   int             `yaml:"depth"`   // how many commits back are fetched, of remotes; 0: all
	Force   bool            `yaml:"force"`   // discard what was changed in the directory
	Owner   string          `yaml:"owner"`   // of all files: name or number
	Group   string          `yaml:"group"`   // of all files: name or number
	Timeout render.Duration `yaml:"timeout"` // how long a fetch may take; default 5m
	Auth    Auth            `yaml:"auth"`    // how to log in
	TLS     TLS             `yaml:"tls"`     // whom to believe in https

	endpoint *transport.Endpoint
}

// TLS says whom to believe in https.
type TLS struct {
	// a file with certificates of the authority that signed the server's, in PEM; default: those of the host
	CA string `yaml:"ca"`
}

func newCheckout() apply.Action { return &Checkout{Timeout: render.Duration(5 * time.Minute)} }

// Bind checks the parameters.
func (a *Checkout) Bind(apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	if err := a.checkURL(); err != nil {
		return err
	}
	switch {
	case a.Depth < 0:
		return apply.BadParam("depth", "is less than 0")
	case a.Timeout <= 0:
		return apply.BadParam("timeout", "must be more than 0")
	case a.Ref != "" && plumbing.NewBranchReferenceName(a.Ref).Validate() != nil:
		return apply.BadParam("ref", "%q is neither a branch nor a tag nor a commit", a.Ref)
	}
	if a.TLS.CA != "" && (a.endpoint.Protocol != "https" || !filepath.IsAbs(a.TLS.CA)) {
		return apply.BadParam("tls", "ca is the absolute path of a file, for https urls")
	}
	if u, err := url.Parse(a.URL); err == nil && a.Auth.TokenFile+a.Auth.PasswordFile != "" && apply.Cleartext(u) {
		return apply.BadParam("url", "is http, and the credentials could be read on the way: use https")
	}
	return a.Auth.check(a.endpoint.Protocol)
}

// checkURL reads the URL. It is kept in the checkout and shown in messages, so it holds no secret.
func (a *Checkout) checkURL() error {
	var err error
	if a.endpoint, err = gitremote.ParseURL(a.URL); err != nil { // it quotes the whole url
		return apply.BadParam("url", "cannot be parsed: write https://HOST/PATH, git@HOST:PATH, or an absolute path")
	}
	switch web := strings.HasPrefix(a.endpoint.Protocol, "http"); {
	case a.endpoint.Password != "" || web && a.endpoint.User != "":
		return apply.BadParam("url", "holds a user or password: put them into auth, the secret in a file")
	case web || a.endpoint.Protocol == "ssh":
		return nil
	case a.endpoint.Protocol == "file" && (filepath.IsAbs(a.URL) || strings.HasPrefix(a.URL, "file:///")):
		return nil
	}
	return apply.BadParam(
		"url",
		"%q is not supported: write https://HOST/PATH, git@HOST:PATH, or an absolute path",
		a.shownURL(),
	)
}

func (a *Checkout) shownURL() string {
	if u, err := url.Parse(a.URL); err == nil {
		return safetext.URL(u)
	}
	return a.URL
}

var commitID = lazyregexp.New("^[0-9a-f]{40}$")

// target is what is to be checked out. Only a commit id needs no question to the remote.
func (a *Checkout) target(ctx context.Context, h *apply.Host) (gitTarget, error) {
	if commitID.MatchString(a.Ref) {
		return gitTarget{commit: plumbing.NewHash(a.Ref)}, nil
	}
	r, err := a.remote(h)
	if err != nil {
		return gitTarget{}, err
	}
	refs, err := r.list(ctx)
	if err != nil {
		return gitTarget{}, err
	}
	return r.pick(refs, a.Ref)
}

// Manages is the directory: a checkout is not removed.
func (a *Checkout) Manages() []apply.Resource {
	return []apply.Resource{{ID: "checkout in " + path.Clean(a.Name), Fills: path.Clean(a.Name)}}
}

// Check compares the directory with the remote.
func (a *Checkout) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	w, err := a.permissions().Wanted(h)
	if err != nil {
		return apply.Change{}, err
	}
	at, err := h.Follow(a.Name)
	if err != nil {
		return apply.Change{}, err
	}
	defer at.Close()
	what, dir, err := a.inspect(at)
	if err != nil {
		return apply.Change{}, err
	}
	defer dir.Close()
	t, err := a.target(ctx, h)
	if err != nil {
		return apply.Change{}, err
	}
	switch what {
	case gitNothing:
		return apply.Change{Summary: "clone " + t.String()}, nil
	case gitHalf:
		return apply.Change{Summary: "finish what was cut off: " + t.String()}, nil
	}
	tree, err := openGitTree(dir)
	if err != nil {
		return apply.Change{}, fmt.Errorf("%s: %w", a.Name, err)
	}
	defer tree.Close()
	return a.compare(ctx, tree, t, w)
}

func (a *Checkout) permissions() place.Permissions {
	return place.Permissions{Owner: a.Owner, Group: a.Group}
}

// compare names what of a checkout is not as it should be.
func (a *Checkout) compare(ctx context.Context, tree *gitTree, t gitTarget, w place.Wanted) (apply.Change, error) {
	var differs []string
	if have := tree.url(); have != a.URL {
		differs = append(differs, fmt.Sprintf("url %s -> %s", (&Checkout{URL: have}).shownURL(), a.shownURL()))
	}
	head, err := tree.head()
	if err != nil {
		return apply.Change{}, fmt.Errorf("%s: %w", a.Name, err)
	}
	if head != t.commit {
		differs = append(differs, fmt.Sprintf("%s -> %s", shortCommit(head), t))
	}
	local, err := tree.local(t)
	if err != nil {
		return apply.Change{}, fmt.Errorf("%s: %w", a.Name, err)
	}
	if local != "" && !a.Force {
		return apply.Change{}, a.localError(local)
	}
	if local != "" {
		differs = append(differs, "discard "+local)
	}
	n, err := differentOwners(ctx, tree.dir.Dir, w, false)
	if n > 0 {
		differs = append(differs, fmt.Sprintf("owner of %d files", n))
	}
	moved := t.ref != "" && head != t.commit && len(differs) == 1 && tree.leftAt(head)
	return apply.Change{Summary: strings.Join(differs, ", "), Outside: moved}, err
}

func (a *Checkout) localError(local string) error {
	return fmt.Errorf("%s has %s: take them away, or discard them with force: true", a.Name, local)
}

// Apply fetches and checks out.
func (a *Checkout) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	w, err := a.permissions().Wanted(h)
	if err := errors.Join(err, w.Known()); err != nil {
		return apply.Output{}, err
	}
	at, err := h.Follow(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	defer at.Close()
	what, dir, err := a.inspect(at)
	if err != nil {
		return apply.Output{}, err
	}
	defer dir.Close()
	t, err := a.target(ctx, h)
	if err != nil {
		return apply.Output{}, err
	}
	if dir == nil {
		err = a.clone(ctx, h, at, &t, w)
	} else {
		err = a.update(ctx, h, dir, what, &t, w)
	}
	if err != nil {
		return apply.Output{}, err
	}
	return apply.Output{State: t.commit.String()}, nil
}

// clone makes the directory beside its place and renames it.
func (a *Checkout) clone(ctx context.Context, h *apply.Host, at *hostfile.Entry, t *gitTarget, w place.Wanted) error {
	if err := at.MakeParents(0o755); err != nil {
		return err
	}
	part, err := at.Beside("." + path.Base(at.Path()) + ".pullet")
	if err != nil {
		return err
	}
	defer part.Close()
	if err := part.RemoveAll(ctx); err != nil { // of a run that was cut off
		return err
	}
	dir, err := part.Mkdir(0o755)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = a.update(ctx, h, dir, gitNothing, t, w)
	if err == nil {
		err = part.Rename(at)
	}
	if err != nil {
		return errors.Join(err, part.RemoveAll(context.WithoutCancel(ctx)))
	}
	return at.SyncDir()
}

// update brings a directory to the target. From the moment at which it may hold half of another version it says so, for
// the next run.
func (a *Checkout) update(
	ctx context.Context,
	h *apply.Host,
	dir *hostfile.Dir,
	what gitPlace,
	t *gitTarget,
	w place.Wanted,
) error {
	tree, err := openGitTree(dir)
	if what != gitCheckout && err != nil {
		tree, err = initGitTree(ctx, dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	defer tree.Close()
	if err := a.fetch(ctx, h, tree, t); err != nil {
		return err
	}
	if what == gitCheckout && !a.Force {
		local, err := tree.inTheWay(*t)
		if err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if local != "" {
			return a.localError(local)
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := tree.checkout(ctx, *t); err != nil {
		return fmt.Errorf("%s: %w; the next run goes on", a.Name, err)
	}
	return tree.finish(ctx, t.commit, w)
}

// fetch gets what the target needs. A branch may have moved on since the remote was asked: what came is the target
// then.
func (a *Checkout) fetch(ctx context.Context, h *apply.Host, tree *gitTree, t *gitTarget) error {
	if err := errors.Join(tree.setURL(a.URL), tree.tidyPacks()); err != nil {
		return err
	}
	if t.ref == "" && tree.has(t.commit) {
		return nil
	}
	r, err := a.remote(h)
	if err != nil {
		return err
	}
	if err := r.fetch(ctx, tree, *t, a.Depth); err != nil {
		return err
	}
	return tree.resolve(t)
}
