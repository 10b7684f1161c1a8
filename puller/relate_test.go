package puller

import "testing"

func TestRelate(t *testing.T) {
	for _, kind := range []string{"file", "http", "ssh"} {
		t.Run(kind, func(t *testing.T) {
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
	u := newUpstream(t)
	u.commit("a", "1")
	p := open(t, t.TempDir(), Source{Name: "main", URL: serveHTTP(t, u).url})
	pull(t, p)
	good := u.commit("a", "2")
	pull(t, p)
	u.git("commit", "-q", "--amend", "-m", "other")
	other := u.push()
	pull(t, p)
	got, err := p.Relate(t.Context(), Head{Repo: "main", Commit: other}, Head{Repo: "main", Commit: good})
	must(t, err)
	if got != Diverged {
		t.Error(got)
	}
}

func TestRelateTags(t *testing.T) {
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
