package puller

import (
	"errors"
	"testing"

	"github.com/pullet/pullet/internal/tier"
)

// TestResolve: a revision is found over every transport, also where the store began without its history; what other
// nodes could not fetch is refused.
func TestResolve(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "http", "ssh"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "ssh" {
				tier.Long(t, "git's protocol is the same as over http")
			}
			u := newUpstream(t)
			old := u.commit("a", "1")
			u.release("v1")
			middle := u.commit("a", "2")
			head := u.commit("a", "3")
			u.git("checkout", "-q", "-b", "side", old)
			stray := u.commit("b", "1")
			u.git("checkout", "-q", "-b", "tagged", old)
			u.commit("c", "1")
			u.release("v2")
			u.git("checkout", "-q", "main")
			p := open(t, t.TempDir(), sources(t, u)[kind])
			pull(t, p)
			for rev, want := range map[string]Head{
				"main": {Commit: head}, head: {Commit: head}, middle[:8]: {Commit: middle}, middle: {Commit: middle},
				"v1": {Commit: old, Tag: "v1"}, old[:9]: {Commit: old, Tag: "v1"},
			} {
				want.Repo = "main"
				got, err := p.Resolve(t.Context(), "main", rev)
				must(t, err)
				if got != want {
					t.Errorf("%s is %+v, want %+v", rev, got, want)
				}
				if _, err := p.Snapshot(t.Context(), []Head{got}); err != nil {
					t.Errorf("%s: %v", rev, err)
				}
			}
			for _, rev := range []string{"side", stray, "v2", "tagged", "v3", "0123456789", "abc", "zzzzzzzz", "0123456789012345678901234567890123456789"} {
				var revision *RevisionError
				if got, err := p.Resolve(t.Context(), "main", rev); !errors.As(err, &revision) {
					t.Errorf("%s: %+v, %v", rev, got, err)
				}
			}
			_, err := p.Resolve(t.Context(), "other", "main")
			expect(t, err, `no repository "other"`)
		})
	}
}

// TestResolveRelease: where tags are followed, one of them may stand anywhere, and no other tag helps a commit that is
// not in the history of the newest.
func TestResolveRelease(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	old := u.commit("a", "1")
	u.release("v1.0")
	u.git("checkout", "-q", "-b", "side")
	aside := u.commit("b", "1")
	u.release("v1.1")
	u.commit("b", "2")
	u.release("nightly")
	u.git("checkout", "-q", "main")
	u.commit("a", "2")
	u.release("v2.0")
	u.commit("a", "3")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url, Tag: "v*"})
	pull(t, p)
	for rev, want := range map[string]Head{"v1.0": {Commit: old, Tag: "v1.0"}, "v1.1": {Commit: aside, Tag: "v1.1"}} {
		if got, err := p.Resolve(t.Context(), "main", rev); err != nil || got.Commit != want.Commit || got.Tag != want.Tag {
			t.Errorf("%s is %+v, %v, want %+v", rev, got, err, want)
		}
	}
	for _, rev := range []string{"nightly", "side", "main"} {
		_, err := p.Resolve(t.Context(), "main", rev)
		expect(t, err, `repository "main": `+rev+" is neither in the history of v2.0 nor a release that matches tag v*, which hosts follow, so they would refuse it: "+
			"release it under a name that matches: git tag -a -m MESSAGE NAME COMMIT, and push the tag")
	}
}

// TestResolveStaysShallow: a part of an id that the store has costs no history.
func TestResolveStaysShallow(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	head := u.commit("a", "2")
	p := open(t, t.TempDir(), sources(t, u)["http"])
	pull(t, p)
	got, err := p.Resolve(t.Context(), "main", head[:8])
	must(t, err)
	if !p.repos[0].store.shallow() || got.Commit != head {
		t.Errorf("%+v, shallow: %v", got, p.repos[0].store.shallow())
	}
	if _, err := p.Resolve(t.Context(), "main", "01234567"); err == nil || p.repos[0].store.shallow() {
		t.Errorf("%v: an id that is unknown was not looked for in the whole history", err)
	}
}
