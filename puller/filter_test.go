package puller

import "testing"

// TestFilterIsRefused: a commit with a file of git-crypt is refused by name, and the last good one stays.
func TestFilterIsRefused(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	good := u.commit("files/key", "plain", ".gitattributes", "*.sh text\n")
	p := open(t, t.TempDir(), Source{Name: "main", URL: u.dir})
	pull(t, p)
	u.commit("files/key", "\x00GITCRYPT\x00cipher", ".gitattributes", "files/key filter=git-crypt diff=git-crypt\n")
	h := pull(t, p)
	if h.Commit != good {
		t.Errorf("the commit %s is in effect, want %s", h.Commit, good)
	}
	expect(t, h.Problem, `path "files/key": the filter git-crypt of .gitattributes makes the content of this file`)
}
