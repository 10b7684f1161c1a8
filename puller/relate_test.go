package puller

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/tier"
)

func TestRelate(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "http", "ssh"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "ssh" {
				tier.Long(t, "git's protocol is the same as over http")
			}
			u := newUpstream(t)
			old := u.commit("a", "1")
			u.commit("a", "2")
			head := u.commit("a", "3")
			u.git("checkout", "-q", "-b", "side", old)
			side := u.commit("b", "1")
			u.git("checkout", "-q", "main")
			p := open(t, t.TempDir(), sources(t, u)[kind])
			pull(t, p)
			next := u.commit("a", "4") // not pulled yet
			check := func(from, to string, want Relation) {
				t.Helper()
				got, err := p.Relate(t.Context(), Head{Repo: "main", Commit: from}, Head{Repo: "main", Commit: to})
				must(t, err)
				if got != want {
					t.Errorf("%s to %s is %v, want %v", short(from), short(to), got, want)
				}
			}
			check(head, head, Same)
			check(old, head, Newer)
			check(head, old, Older)
			check(next, head, Older)
			check(side, head, Unknown) // on a branch that is not followed
			check("0123456789012345678901234567890123456789", head, Unknown)
		})
	}
}

func TestRelateDiverged(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	pull(t, p)
	good := u.commit("a", "2")
	pull(t, p)
	u.git("commit", "-q", "--amend", "-m", "other")
	other := u.head()
	pull(t, p)
	got, err := p.Relate(t.Context(), Head{Repo: "main", Commit: other}, Head{Repo: "main", Commit: good})
	must(t, err)
	if got != Diverged {
		t.Error(got)
	}
}

func TestRelateTags(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.release("v1.0")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir, Tag: "v*"})
	head := func(commit, tag string) Head { return Head{Repo: "main", Commit: commit, Tag: tag} }
	for _, c := range []struct {
		from, to Head
		want     Relation
	}{
		{head("a", "v1.9"), head("b", "v1.10"), Newer},
		{head("a", "v2.0"), head("b", "v2.0-rc1"), Older},
		{head("a", "v1.0"), head("b", "v1.0"), Diverged},
		{head("a", "v1.0"), head("a", "v1.0"), Same},
	} {
		got, err := p.Relate(t.Context(), c.from, c.to)
		must(t, err)
		if got != c.want {
			t.Errorf("%s to %s is %v, want %v", c.from.Tag, c.to.Tag, got, c.want)
		}
	}
	_, err := p.Relate(t.Context(), head("a", ""), Head{Repo: "x"})
	expect(t, err, `"main" and "x"`)
}

// TestRelateCut: where history is missing the answer is the one that holds as far as it goes, and says so: what is
// missing makes nothing newer or older.
func TestRelateCut(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	old := u.commit("a", "1")
	head := u.commit("a", "2")
	u.git("checkout", "-q", "-b", "side", old)
	side := u.commit("b", "1")
	u.git("checkout", "-q", "main")
	const missing = "0123456789012345678901234567890123456789"
	for name, c := range map[string]struct {
		clone []string
		pairs [][2]string
	}{
		"shallow": {[]string{"--depth", "1", "--no-single-branch"}, [][2]string{{head, side}, {side, head}, {head, missing}, {missing, head}}},
		"whole":   {nil, [][2]string{{head, missing}, {missing, head}}},
	} {
		dir := filepath.Join(t.TempDir(), "main.git")
		u.run(u.work, append(append([]string{"clone", "-q", "--bare"}, c.clone...), "file://"+u.dir, dir)...)
		s := newStore("main", dir)
		for _, pair := range c.pairs {
			got, err := s.relate(t.Context(), plumbing.NewHash(pair[0]), plumbing.NewHash(pair[1]))
			if got != Diverged || !errors.Is(err, errCut) {
				t.Errorf("%s: %s to %s is %v, %v", name, short(pair[0]), short(pair[1]), got, err)
			}
		}
		must(t, s.reset())
	}
}

// TestRelateByAncestry: versions are compared only where the source follows tags and both heads have one that is a
// version.
func TestRelateByAncestry(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	old := u.commit("a", "1")
	head := u.commit("a", "2")
	u.release("v1.0")
	for name, src := range map[string]Source{"a branch": {Name: "main", URL: u.dir}, "tags": {Name: "main", URL: u.dir, Tag: "v*"}} {
		p := open(t, t.TempDir(), src)
		pull(t, p)
		for _, tags := range [][2]string{{"", "v1.0"}, {"v1.0", ""}, {"v1.0", "vnext"}, {"vnext", "v1.0"}, {"v2.0", "v1.0"}} {
			if name == "tags" && tags[0] == "v2.0" {
				continue
			}
			for _, c := range []struct {
				from, to string
				want     Relation
			}{{old, head, Newer}, {head, old, Older}} {
				got, err := p.Relate(t.Context(), Head{Repo: "main", Commit: c.from, Tag: tags[0]}, Head{Repo: "main", Commit: c.to, Tag: tags[1]})
				must(t, err)
				if got != c.want {
					t.Errorf("%s: %s %q to %s %q is %v, want %v", name, short(c.from), tags[0], short(c.to), tags[1], got, c.want)
				}
			}
		}
	}
}
