package puller

import (
	"strings"
	"testing"

	"github.com/pullet/pullet/internal/gitremote"
)

const pointer = gitremote.PointerStart + "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"

// TestSubmoduleIsRefused: a commit with a submodule is refused by name, and the
// last good one stays.
func TestSubmoduleIsRefused(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	good := u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	pull(t, p)
	u.git("update-index", "--add", "--cacheinfo", "160000,"+good+",files/module")
	u.git("commit", "-q", "-m", "module")
	bad := u.head()
	h := pull(t, p)
	want := `repository "main": commit ` + short(bad) + ` cannot be used: path "files/module": a submodule, which pullet does not fetch: put its files into the repository; push a commit that fixes it`
	if h.Commit != good || h.Problem == nil || h.Problem.Error() != want {
		t.Errorf("%+v\nwant %s", h, want)
	}
}

// TestLFSIsRefused: a commit with a pointer is refused by name. One that slips
// in, because nothing says that LFS is used, is refused when it is read.
func TestLFSIsRefused(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	good := u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	pull(t, p)
	bad := u.commit("files/logo.png", pointer, ".gitattributes", "*.png filter=lfs diff=lfs merge=lfs -text\n")
	h := pull(t, p)
	want := `repository "main": commit ` + short(bad) + ` cannot be used: path "files/logo.png": a file that is kept in git LFS, which pullet does not fetch: put it into the repository as it is; push a commit that fixes it`
	if h.Commit != good || h.Problem == nil || h.Problem.Error() != want {
		t.Errorf("%+v\nwant %s", h, want)
	}
	u.git("rm", "-q", ".gitattributes")
	u.commit("b", strings.Repeat("b", 200))
	h = pull(t, p)
	s, err := p.Snapshot(t.Context(), []Head{h})
	must(t, err)
	f, err := s.Layers[0].FS.Open("files/logo.png")
	must(t, err)
	_, err = f.Read(make([]byte, 10))
	expect(t, err, "files/logo.png", "kept in git LFS")
}
