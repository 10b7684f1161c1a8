package puller

import (
	"fmt"
	"strings"
	"testing"
)

// TestTagsLeftOut: what keeps newer tags from being followed is said, and nothing of older ones.
func TestTagsLeftOut(t *testing.T) {
	for _, c := range []struct {
		src                  Source
		tags, followed, want string // a lightweight tag begins with -
	}{
		{Source{Tag: "v*"}, "v1.0.0 v2.0.0", "v2.0.0", ""},
		{Source{Tag: "v*"}, "v1.0.0 -v2.0.0", "v1.0.0", "v2.0.0 is lightweight"},
		{Source{Tag: "v*"}, "v1.0.0 -v0.9.0 -nightly -vnext", "v1.0.0", ""},
		{Source{Tag: "v*"}, "v1.2.3 v1.2.3.4 v1.2.2.9 v1.3.0.1", "v1.2.3", "v1.2.3.4 is no semantic version, v1.3.0.1 is no semantic version"},
		{Source{Semver: ">=1 <2"}, "v1.0.0 -v1.1.0 -v2.0.0 v1.0.1.1 v3.0.0.1", "v1.0.0", "v1.0.1.1 is no semantic version, v1.1.0 is lightweight"},
		{Source{Semver: ">=1"}, "v1.0.0 v2.0.0-rc.1", "v1.0.0", ""},
		{Source{Ref: "main"}, "v1.0.0 -v2.0.0", "v1.0.0", ""},
	} {
		l := listing{}
		for name := range strings.FieldsSeq(c.tags) {
			name, light := strings.CutPrefix(name, "-")
			l.tags = append(l.tags, tag{name: name, annotated: !light, commit: strings.Repeat("1", 40)})
		}
		got := c.src.leftOut(l, c.followed)
		if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), fmt.Sprintf("are left out: %s; ", c.want)) {
			t.Errorf("%+v %s: %v, want %q", c.src, c.tags, got, c.want)
		}
		if o, err := c.src.pick(listing{map[string]string{"main": strings.Repeat("1", 40)}, l.tags}); err != nil || o.tag != c.followed && c.src.tagged() {
			t.Errorf("%+v %s: %+v %v is followed", c.src, c.tags, o, err)
		}
	}
}

func TestTagGlob(t *testing.T) {
	for _, kind := range []string{"file", "http"} {
		t.Run(kind, func(t *testing.T) { testTagGlob(t, kind) })
	}
}

func testTagGlob(t *testing.T, kind string) {
	u := newUpstream(t)
	src := sources(t, u)[kind]
	src.Tag = "v*"
	u.commit("a", "1")
	u.release("v1.9.0")
	want := u.commit("a", "2")
	u.release("v1.10.0")
	u.commit("a", "3")
	u.release("other-7")
	u.git("tag", "v2.0.0") // lightweight
	p := open(t, t.TempDir(), src)
	h := pull(t, p)
	if h.Commit != want || h.Tag != "v1.10.0" || h.Problem != nil {
		t.Errorf("%+v, want v1.10.0 at %s", h, want)
	}
	next := u.commit("a", "4")
	u.release("v1.11")
	if h := pull(t, p); h.Commit != next || h.Tag != "v1.11" || h.Problem != nil {
		t.Errorf("%+v, want v1.11 at %s", h, next)
	}
	if got := content(t, p, h, "a"); got != "2" {
		t.Errorf("a at v1.10.0 is %q", got)
	}
}

func TestSemver(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.release("v1.2.0")
	u.release("nightly")
	u.commit("a", "2")
	u.release("v2.0.0")
	src := Source{Name: "main", URL: u.dir, Semver: ">=1.0 <2"}
	if h := pull(t, open(t, t.TempDir(), src)); h.Tag != "v1.2.0" {
		t.Errorf("%+v", h)
	}
}

func TestTagErrors(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.git("tag", "v1")
	u.git("tag", "v2")
	u.release("x-latest")
	u.release("app/v1.0.0")
	for _, c := range []struct {
		src   Source
		parts []string
	}{
		{Source{Tag: "v*"}, []string{"no annotated tag matches tag v*", "2 lightweight ones", "v1, v2", "git tag -a"}},
		{Source{Tag: "x-*"}, []string{`"x-*"`, "x-latest", "is a version"}},
		{Source{Tag: "*.*.*"}, []string{"no annotated tag matches tag *.*.*", "* does not stand for a slash, as in app/v1.0.0"}},
		{Source{Semver: ">=9"}, []string{"no annotated tag matches semver >=9", "git tag -a"}},
		{Source{Ref: "prod"}, []string{`no branch "prod"`, "it has: main", `repository "main"`, "git ls-remote " + u.dir}},
	} {
		c.src.Name, c.src.URL = "main", u.dir
		_, err := open(t, t.TempDir(), c.src).Pull(t.Context())
		expect(t, err, c.parts...)
	}
}

func TestBranchRelease(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	if h := pull(t, p); h.Tag != "" {
		t.Errorf("tag %q", h.Tag)
	}
	u.release("v1.2")
	u.release("v1.10")
	u.git("tag", "v9")
	h := pull(t, p)
	if h.Tag != "v1.10" {
		t.Errorf("tag %q", h.Tag)
	}
	if fresh := pull(t, open(t, t.TempDir(), p.repos[0].src)); fresh.Tag != "v1.10" {
		t.Errorf("a fresh clone: %+v", fresh)
	}
	if release, version := Release([]Head{h}), Version([]Head{h}); release != "v1.10" || version != h.Commit {
		t.Errorf("%q %q", release, version)
	}
}

func TestMovedAndDeletedTag(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	u.release("v1.0")
	good := u.commit("a", "2")
	u.release("v1.1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir, Tag: "v*"})
	pull(t, p)

	moved := u.commit("a", "3")
	u.release("v1.1")
	h := pull(t, p)
	expect(t, h.Problem, `tag "v1.1" was moved`, short(good), short(moved), "--accept-rewind")
	if h.Commit != good || h.Tag != "v1.1" {
		t.Errorf("%+v", h)
	}
	must(t, p.Accept(t.Context(), "main", moved, "root"))
	if h := pull(t, p); h.Commit != moved || h.Problem != nil {
		t.Errorf("after Accept: %+v", h)
	}

	u.git("tag", "-d", "v1.1")
	h = pull(t, p)
	expect(t, h.Problem, `release "v1.1" is gone, the newest is "v1.0" now`, "--accept-rewind")
	if h.Commit != moved {
		t.Errorf("%+v", h)
	}
}

func TestFollowSomethingElse(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	old := u.commit("a", "1")
	u.release("v1.0")
	u.commit("a", "2")
	dir := t.TempDir()
	pull(t, open(t, dir, Source{Name: "main", URL: u.dir}))
	h := pull(t, open(t, dir, Source{Name: "main", URL: u.dir, Tag: "v*"}))
	if h.Commit != old || h.Problem != nil {
		t.Errorf("%+v", h)
	}
}
