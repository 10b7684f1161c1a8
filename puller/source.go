package puller

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
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
	Auth Auth `yaml:"auth"`
}

// Auth names the files with a source's credentials. They are read at each use,
// so they can be rotated under a running agent, and must be readable by their
// owner only.
type Auth struct {
	// SSHKey is a private key without a passphrase.
	SSHKey string `yaml:"sshKey"`
	// KnownHosts is the only place where an ssh server's host key is looked
	// up; a server that is not in it is refused.
	KnownHosts string `yaml:"knownHosts"`
	// Username is the user for https; with TokenFile default git.
	Username string `yaml:"username"`
	// PasswordFile holds the password of Username.
	PasswordFile string `yaml:"passwordFile"`
	// TokenFile holds an access token, as GitHub, GitLab and Gitea issue them.
	TokenFile string `yaml:"tokenFile"`
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

// shown is the URL as messages may show it: a user may be needed to understand
// an ssh URL, everything else before the @ or after the ? may be a secret.
func (s Source) shown() string {
	scheme, rest, ok := strings.Cut(s.URL, "://")
	if !ok {
		return s.URL
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	u.RawQuery, u.Fragment = "", ""
	if u.User != nil && scheme == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	return u.String()
}

// endpoint is the parsed URL.
func (s Source) endpoint() (*transport.Endpoint, error) {
	ep, err := transport.NewEndpoint(s.URL)
	if err != nil {
		// The cause quotes the whole URL, secrets included.
		return nil, fmt.Errorf("url %s cannot be parsed", s.shown())
	}
	switch ep.Protocol {
	case "http", "https", "ssh":
		return ep, nil
	case "file":
		if !strings.HasPrefix(s.URL, "file://") && !filepath.IsAbs(s.URL) {
			return nil, fmt.Errorf("url %s is neither a URL nor an absolute path", s.URL)
		}
		return ep, nil
	}
	return nil, fmt.Errorf("url %s: %s is not supported: use https, http, ssh, file or an absolute path", s.shown(), ep.Protocol)
}

// check returns all mistakes of one source.
func (s Source) check() error {
	var errs []error
	if !regexp.MustCompile(`^[a-z0-9_-]+$`).MatchString(s.Name) {
		errs = append(errs, errors.New("name must be lower-case letters, digits, '-' and '_'"))
	}
	errs = append(errs, s.checkFollow()...)
	errs = append(errs, s.checkURL()...)
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

func (s Source) checkURL() []error {
	if s.URL == "" {
		return []error{errors.New("url is missing")}
	}
	ep, err := s.endpoint()
	if err != nil {
		return []error{err}
	}
	return s.Auth.check(ep.Protocol)
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
