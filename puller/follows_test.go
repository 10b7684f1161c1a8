package puller

import (
	"errors"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

// TestFollowsOnly: a tag that is not followed brings no commit into a store, whoever names it, and a tag that is
// followed does.
func TestFollowsOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "http", "ssh"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "ssh" {
				tier.Long(t, "git's protocol is the same as over http")
			}
			u := newUpstream(t)
			first := u.commit("a", "1")
			u.release("v1.0")
			u.git("checkout", "-q", "-b", "side")
			aside := u.commit("b", "1")
			u.release("v1.1")
			stray := u.commit("b", "2")
			u.release("nightly")
			u.git("checkout", "-q", "main")
			last := u.commit("a", "2")
			u.release("v2.0")
			src := sources(t, u)[kind]
			for _, c := range []struct {
				follow, commit, tag string
				want                bool
				named               string
			}{
				{"", last, "", true, "v2.0"}, {"", first, "v1.0", true, ""}, {"", aside, "v1.1", false, ""}, {"", stray, "", false, ""},
				{"v*", first, "nightly", true, "v1.0"}, {"v*", aside, "", true, "v1.1"}, {"v*", stray, "nightly", false, ""},
			} {
				src.Tag = c.follow
				p := open(t, t.TempDir(), src)
				own := pull(t, p)
				h, followed, err := p.Follows(t.Context(), own, Head{Repo: "main", Commit: c.commit})
				must(t, err)
				_, err = p.Snapshot(t.Context(), []Head{{Repo: "main", Commit: c.commit, Tag: c.tag}})
				var missing *MissingCommitError
				switch {
				case c.want && (!followed || err != nil || h.Tag != c.named):
					t.Errorf("%+v: %+v, followed %v, %v", c, h, followed, err)
				case !c.want && followed && !errors.As(err, &missing):
					t.Errorf("%+v: %+v is applied: %v", c, h, err)
				}
			}
		})
	}
}

// TestFollowsOnward: the fleet's version may be a commit that was merged after this host asked its repository.
func TestFollowsOnward(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	own := pull(t, p)
	next := u.commit("a", "2")
	u.commit("a", "3")
	u.git("checkout", "-q", "-b", "side")
	aside := u.commit("b", "1")
	for commit, want := range map[string]bool{next: true, aside: false} {
		if _, followed, err := p.Follows(t.Context(), own, Head{Repo: "main", Commit: commit}); followed != want || err != nil {
			t.Errorf("%s: followed %v, %v", commit, followed, err)
		}
	}
}
