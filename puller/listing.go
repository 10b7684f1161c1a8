package puller

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/internal/safetext"
)

// listing is what a remote says it has.
type listing struct {
	branches map[string]string // name -> commit
	tags     []tag
}

// tag is a tag of a remote; for an annotated one commit is what it points to.
type tag struct {
	name, commit string
	id           plumbing.Hash
	annotated    bool
}

// offer is what a source selects from a listing.
type offer struct {
	commit, tag string
	id          plumbing.Hash // of what the remote has: the commit, or an annotated tag
	tagID       plumbing.Hash // of tag
}

func (o offer) hash() plumbing.Hash { return plumbing.NewHash(o.commit) }

// newListing sorts what a remote advertises.
func newListing(remote gitremote.Listing) listing {
	l := listing{branches: map[string]string{}}
	for _, ref := range remote.Refs {
		switch {
		case ref.Name.IsBranch():
			l.branches[ref.Name.Short()] = ref.ID.String()
		case ref.Name.IsTag() && !safetext.Obeyed(ref.Name.Short()): // no record can hold another name
			t := tag{name: ref.Name.Short(), id: ref.ID, annotated: !ref.Peeled.IsZero()}
			if t.annotated {
				t.commit = ref.Peeled.String()
			}
			l.tags = append(l.tags, t)
		}
	}
	return l
}

// shows reports a commit that a branch or a tag is at.
func (l listing) shows(commit string) bool {
	for _, at := range l.branches {
		if at == commit {
			return true
		}
	}
	return slices.ContainsFunc(l.tags, func(t tag) bool { return t.commit == commit || t.id.String() == commit })
}

// pick selects what a source follows.
func (s Source) pick(l listing) (offer, error) {
	if s.tagged() {
		return s.pickTag(l)
	}
	commit, ok := l.branches[s.branch()]
	if !ok {
		return offer{}, fmt.Errorf("there is no branch %q; it has: %s", s.branch(), some(l.branchNames()))
	}
	o := offer{commit: commit, id: plumbing.NewHash(commit)}
	for _, t := range l.tags {
		if t.annotated && t.commit == commit && (o.tag == "" || s.newer(t.name, o.tag)) {
			o.tag, o.tagID = t.name, t.id
		}
	}
	return o, nil
}

// pickTag selects the newest annotated tag that matches.
func (s Source) pickTag(l listing) (offer, error) {
	var best tag
	var light, unversioned []string
	for _, t := range l.tags {
		switch {
		case !s.matches(t.name):
		case !t.annotated:
			light = append(light, t.name)
		case s.version(t.name) == nil:
			unversioned = append(unversioned, t.name)
		case best.name == "" || s.newer(t.name, best.name):
			best = t
		}
	}
	switch {
	case best.name != "":
		return offer{commit: best.commit, tag: best.name, id: best.id, tagID: best.id}, nil
	case len(unversioned) > 0:
		return offer{}, fmt.Errorf(
			"no tag that matches %q is a version after %q: %s",
			s.Tag,
			literalPrefix(s.Tag),
			some(unversioned),
		)
	case len(light) > 0:
		ones := fmt.Sprintf("%d lightweight ones do (%s), which are not releases", len(light), some(light))
		if len(light) == 1 {
			ones = fmt.Sprintf("the lightweight %s does, which is no release", light[0])
		}
		return offer{}, fmt.Errorf(
			"no annotated tag matches %s; %s: make one with: git tag -a -m MESSAGE NAME COMMIT",
			s.follow(),
			ones,
		)
	}
	if below := l.below(s.Tag); strings.Contains(s.Tag, "*") && len(below) > 0 {
		return offer{}, fmt.Errorf(
			"no annotated tag matches %s: * does not stand for a slash, as in %s", s.follow(), some(below),
		)
	}
	return offer{}, fmt.Errorf(
		"no annotated tag matches %s: make one with: git tag -a -m MESSAGE NAME COMMIT",
		s.follow(),
	)
}

// below returns the annotated tags that a glob would match if * stood for slashes, too.
func (l listing) below(glob string) (names []string) {
	for _, t := range l.tags {
		flat := strings.ReplaceAll(t.name, "/", "-")
		if ok, _ := path.Match(strings.ReplaceAll(glob, "/", "-"), flat); ok && t.annotated { // check has parsed the glob
			names = append(names, t.name)
		}
	}
	return names
}

// leftOut returns which newer tags the followed one keeps out of effect, nil for none. A constraint leaves pre-releases
// out on purpose, and they are not named.
func (s Source) leftOut(l listing, followed string) error {
	if !s.tagged() {
		return nil
	}
	var tags []string
	for _, t := range l.tags {
		long := fourNumbers.FindStringSubmatch(t.name)
		switch {
		case s.matches(t.name) && !t.annotated && s.newer(t.name, followed):
			tags = append(tags, t.name+" is lightweight")
		case long != nil && (s.matches(t.name) || s.matches(long[1])) && !s.newer(followed, long[1]):
			tags = append(tags, t.name+" is no semantic version")
		}
	}
	if len(tags) == 0 {
		return nil
	}
	return &LeftOutError{Repo: s.Name, Followed: followed, Tags: tags}
}

// fourNumbers are names that end with one number more than versions have.
var fourNumbers = lazyregexp.New(`^(.*\d+\.\d+\.\d+)\.[\d.]+$`)

// matches says whether a tag is one that the source follows. A glob also
// matches names that turn out to be no versions, a constraint does not.
func (s Source) matches(name string) bool {
	if s.Tag != "" {
		ok, _ := path.Match(s.Tag, name) // check has parsed the glob
		return ok
	}
	v := s.version(name)
	c, err := semver.NewConstraint(s.Semver)
	return err == nil && v != nil && c.Check(v)
}

// version is a tag's name as a version, nil if it is none.
func (s Source) version(name string) *semver.Version {
	if rest, ok := strings.CutPrefix(name, literalPrefix(s.Tag)); ok {
		if v, err := semver.NewVersion(rest); err == nil {
			return v
		}
	}
	v, err := semver.NewVersion(name)
	if err != nil {
		return nil
	}
	return v
}

// newer says whether tag a is a higher version than tag b; names decide
// between equal versions, so that every node chooses the same.
func (s Source) newer(a, b string) bool {
	va, vb := s.version(a), s.version(b)
	switch {
	case va == nil && vb == nil:
		return a > b
	case va == nil || vb == nil:
		return vb == nil // a version before any other name
	}
	return cmp.Or(va.Compare(vb), cmp.Compare(a, b)) > 0
}

// literalPrefix is the part of a glob before its first special character.
func literalPrefix(glob string) string {
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		return glob[:i]
	}
	return ""
}

func (l listing) branchNames() []string {
	var names []string
	for name := range l.branches {
		names = append(names, name)
	}
	return names
}

// some names the first few of a list.
func some(names []string) string {
	slices.Sort(names)
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > 5:
		return strings.Join(names[:5], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
