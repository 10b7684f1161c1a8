package puller

import (
	"os"
	"path/filepath"
	"testing"
)

// TestVerifySince: another repository of the same people, or an older commit, does not have since in its history.
func TestVerifySince(t *testing.T) {
	u := newSignedUpstream(t, "ops")
	old := u.add("ops", files{"a": "1"})
	since := u.add("ops", files{"a": "2"}, old)
	next := u.add("ops", files{"a": "3"}, since)
	merged := u.add("ops", files{"a": "3", "b": "1"}, u.add("ops", files{"b": "1"}), next)
	other := u.add("ops", files{"a": "sandbox"})
	src := u.source()
	src.Verify.Since = since
	const want = "does not have verify.since in its history"
	u.set(merged)
	for name, commit := range map[string]string{"another repository": other, "an older commit": old} {
		t.Run(name, func(t *testing.T) {
			u.set(commit)
			expectRefusal(t, open(t, t.TempDir(), src), "", "commit "+short(commit)+" "+want, "see whether the server has the right repository")
		})
	}
	for name, commit := range map[string]string{"since": since, "a later one": next, "a merge": merged} {
		t.Run(name, func(t *testing.T) {
			u.set(commit)
			if h := pull(t, open(t, t.TempDir(), src)); h.Problem != nil || h.Commit != commit {
				t.Error(h.Problem)
			}
		})
	}
	t.Run("set later", func(t *testing.T) {
		dir, without := t.TempDir(), u.source()
		u.set(other)
		p := open(t, dir, without)
		pull(t, p)
		must(t, p.Close())
		expectRefusal(t, open(t, dir, src), other, want)
	})
	t.Run("moved on", func(t *testing.T) {
		dir, later := t.TempDir(), src
		u.set(next)
		p := open(t, dir, src)
		pull(t, p)
		must(t, p.Close())
		later.Verify.Since = next
		p = open(t, dir, later)
		if h := pull(t, p); h.Problem != nil {
			t.Fatal(h.Problem)
		}
		_, err := p.Snapshot(t.Context(), []Head{{Repo: "main", Commit: since}})
		expect(t, err, want)
		u.set(merged)
		if h := pull(t, p); h.Problem != nil || h.Commit != merged {
			t.Error(h.Problem)
		}
	})
}

// TestVerifySinceBehindMistakes: since passes over what nobody was allowed to sign, also on a host that verified older
// commits.
func TestVerifySinceBehindMistakes(t *testing.T) {
	s := newContentsScene(t)
	dir := t.TempDir()
	p := open(t, dir, s.source())
	s.set(s.base)
	pull(t, p)
	since := s.dev(s.base, "jobs/db/main", "2") // what an operator looked at
	next := s.dev(since, "jobs/db/main", "2", "jobs/web", "2")
	s.set(next)
	expectRefusal(t, p, s.base, `changes "jobs/db/main"`)
	must(t, p.Close())
	src := s.source()
	src.Verify.Since = since
	p = open(t, dir, src)
	if h := pull(t, p); h.Problem != nil || h.Commit != next {
		t.Fatal(h.Problem)
	}
	s.set(s.dev(next, "jobs/db/main", "3"))
	expectRefusal(t, p, next, `changes "jobs/db/main"`)
}

// TestVerifySinceOfTags: a signed tag of another repository is refused, too.
func TestVerifySinceOfTags(t *testing.T) {
	u, k := newUpstream(t), newKeyring(t)
	alice := k.ssh("alice", "ed25519")
	since := u.commit("a", "1")
	u.git(append(alice, "tag", "-a", "-m", "v1.0", "v1.0")...)
	src := Source{Name: "main", URL: u.dir, Tag: "v*", Verify: Verify{Since: since, AllowedSigners: k.file("allowed", k.allow("alice", ""))}}
	dir := t.TempDir()
	if h := pull(t, open(t, dir, src)); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	next := u.commit("a", "2")
	u.git(append(alice, "tag", "-a", "-m", "v1.1", "v1.1")...)
	p := open(t, dir, src)
	if h := pull(t, p); h.Problem != nil || h.Commit != next {
		t.Fatal(h.Problem)
	}
	u.git("checkout", "-q", "--orphan", "other")
	must(t, os.WriteFile(filepath.Join(u.work, "a"), []byte("sandbox"), 0o600))
	u.git("commit", "-q", "-a", "-m", "sandbox")
	u.git(append(alice, "tag", "-a", "-m", "v1.2", "v1.2")...)
	expectRefusal(t, p, next, "does not have verify.since in its history")
	must(t, p.Close())
	if h := pull(t, open(t, dir, src)); h.Problem == nil || h.Commit != next {
		t.Errorf("%+v", h)
	}
}
