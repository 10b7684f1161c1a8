package puller

import (
	"errors"
	"fmt"
	"path"
	"regexp"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/gitremote"
)

// Source is a git repository and what to follow in it. At most one of Ref, Tag
// and Semver is set; with none of them it is the branch main.
type Source struct {
	// Name identifies the repository in versions, messages and file names:
	// lower-case letters, digits, '-' and '_'.
	Name string `yaml:"name"`
	// URL is an https, http, ssh or file URL, user@host:path, or an absolute
	// path to a repository on this machine.
	URL string `yaml:"url"`
	// Ref is the branch to follow; default main.
	Ref string `yaml:"ref"`
	// Tag is a glob (as in path.Match) over annotated tags. The newest by
	// semantic version is followed; the version is what comes after the
	// glob's literal beginning. Pre-releases count.
	Tag string `yaml:"tag"`
	// Semver is a constraint such as ">=1.0 <2" over annotated tags that are
	// versions; the newest is followed. Pre-releases count only where the
	// constraint names one.
	Semver string `yaml:"semver"`
	// Auth says how to log in; file sources need none.
	Auth gitremote.Auth `yaml:"auth"`
	// TLS says whom to believe in https.
	TLS gitremote.TLS `yaml:"tls"`
	// Proxy is the URL of a proxy for https and http; default: that of
	// HTTPS_PROXY or HTTP_PROXY in the environment, but for hosts in NO_PROXY.
	Proxy string `yaml:"proxy"`
	// Verify says who must have signed what is offered; default: nobody.
	Verify Verify `yaml:"verify"`
}

// follow says in words what is followed; it is also how the record notices
// that the operator changed it.
func (s Source) follow() string {
	switch {
	case s.Tag != "":
		return "tag " + s.Tag
	case s.Semver != "":
		return "semver " + s.Semver
	}
	return "branch " + s.branch()
}

func (s Source) branch() string {
	if s.Ref == "" {
		return "main"
	}
	return s.Ref
}

func (s Source) tagged() bool { return s.Tag != "" || s.Semver != "" }

// remote is the repository that the source is in.
func (s Source) remote() gitremote.Remote {
	return gitremote.Remote{URL: s.URL, Auth: s.Auth, TLS: s.TLS, Proxy: s.Proxy}
}

// firstDepth is how much history the first clone takes: none where the
// transport can do that. It comes later, when something asks for it.
func (s Source) firstDepth() int {
	if s.remote().Local() || s.Verify.on() && (s.verifyMode() == verifyRange || s.Verify.Since != "") {
		return 0
	}
	return 1
}

// check returns all mistakes of one source.
func (s Source) check() error {
	var errs []error
	if !regexp.MustCompile(`^[a-z0-9_-]+$`).MatchString(s.Name) {
		errs = append(errs, errors.New("name must be lower-case letters, digits, '-' and '_'"))
	}
	errs = append(errs, s.checkFollow()...)
	errs = append(errs, s.remote().Check()...)
	errs = append(errs, s.checkVerify()...)
	for i, err := range errs {
		errs[i] = fmt.Errorf("repository %q: %w", s.Name, err)
	}
	return errors.Join(errs...)
}

func (s Source) checkFollow() (errs []error) {
	set := 0
	for _, v := range []string{s.Ref, s.Tag, s.Semver} {
		if v != "" {
			set++
		}
	}
	if set > 1 {
		errs = append(errs, errors.New("only one of ref, tag and semver can be followed"))
	}
	if err := plumbing.NewBranchReferenceName(s.branch()).Validate(); err != nil {
		errs = append(errs, fmt.Errorf("ref %q is not a branch name", s.Ref))
	}
	if _, err := path.Match(s.Tag, ""); err != nil {
		errs = append(errs, fmt.Errorf("tag %q is not a valid glob: %w", s.Tag, err))
	}
	if s.Semver == "" {
		return errs
	}
	if _, err := semver.NewConstraint(s.Semver); err != nil {
		errs = append(errs, fmt.Errorf("semver %q is not a valid constraint, such as '>=1.0 <2': %w", s.Semver, err))
	}
	return errs
}

// checkSources returns all mistakes of all sources at once.
func checkSources(sources []Source) error {
	if len(sources) == 0 {
		return errors.New("no repositories are configured")
	}
	var errs []error
	seen := map[string]bool{}
	for _, s := range sources {
		errs = append(errs, s.check())
		if seen[s.Name] {
			errs = append(errs, fmt.Errorf("repository %q: the name is used twice", s.Name))
		}
		seen[s.Name] = true
	}
	return errors.Join(errs...)
}
