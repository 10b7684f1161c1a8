package puller

import (
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// contentsScene is a repository with a commit of ops that the host has, and what it is offered then. ops may change
// all, dev neither jobs/db nor the rules.
type contentsScene struct {
	*signedUpstream
	first files
	base  string
}

// ops and dev write a commit with changes of the first files.
func (s *contentsScene) ops(parent string, changes ...string) string {
	return s.add("ops", s.first.with(changes...), parent)
}
func (s *contentsScene) dev(parent string, changes ...string) string {
	return s.add("dev", s.first.with(changes...), parent)
}

// rules gives jobs/db and the rules to ops, and all else to everybody.
const rules = "jobs/db** : ops\n.pullet/** : ops\n"

// TestContents: a host takes a content of a path from who may change it, and from nobody else, whatever leads to it.
func TestContents(t *testing.T) {
	const db, web, signers = "jobs/db/main", "jobs/web", ".pullet/signers"
	for name, c := range map[string]struct {
		offer func(*contentsScene) string
		want  string // of the refusal; "" is none
	}{
		"a change by dev":                   {func(s *contentsScene) string { return s.dev(s.base, db, "evil") }, `changes "jobs/db/main", which is for ops`},
		"a change by ops":                   {func(s *contentsScene) string { return s.ops(s.base, db, "2") }, ""},
		"a change of what is for everybody": {func(s *contentsScene) string { return s.dev(s.base, web, "2", "new", "1") }, ""},
		"a mode":                            {func(s *contentsScene) string { return s.dev(s.base, db, executable+"1") }, db},
		"a link":                            {func(s *contentsScene) string { return s.dev(s.base, db, symlink+"1") }, db},
		"a directory":                       {func(s *contentsScene) string { return s.dev(s.base, db, "", db+"/x", "1") }, db},
		"a file":                            {func(s *contentsScene) string { return s.dev(s.base, db, "", "jobs/db/other", "", "jobs/db", "1") }, `"jobs/db`},
		"a removal":                         {func(s *contentsScene) string { return s.dev(s.base, db, "") }, db},
		"rules":                             {func(s *contentsScene) string { return s.dev(s.base, signers, "# none\n") }, signers},
		"rules as a link":                   {func(s *contentsScene) string { return s.dev(s.base, signers, symlink+"x") }, signers},
		"rules as a directory":              {func(s *contentsScene) string { return s.dev(s.base, signers, "", signers+"/x", "1") }, signers},
		"no directory of rules":             {func(s *contentsScene) string { return s.dev(s.base, signers, "", ".pullet", "1") }, signers},
		"a merge the other way round that removes rules": {func(s *contentsScene) string {
			bare := files{web: "1"}
			return s.add("dev", bare, s.add("dev", bare), s.base)
		}, `"` + signers},
		"a merge of an orphan that removes rules": {func(s *contentsScene) string {
			bare := files{web: "1"}
			return s.add("dev", bare, s.base, s.add("dev", bare))
		}, signers},
		"an octopus that removes rules": {func(s *contentsScene) string {
			bare := files{web: "1"}
			return s.add("dev", bare, s.add("dev", bare), s.dev(s.base, web, "2"), s.base)
		}, signers},
		"an orphan": {func(s *contentsScene) string { return s.add("dev", s.first.with(db, "evil")) }, "was rewritten"},
		"an orphan merged with its files": {func(s *contentsScene) string {
			return s.add("dev", s.first.with("tools/x", "1"), s.base, s.add("dev", files{"tools/x": "1"}))
		}, ""},
		"a side branch that deletes rules": {func(s *contentsScene) string {
			return s.add("dev", s.first.with(signers, ""), s.base, s.dev(s.base, signers, ""))
		}, signers},
		"a side branch that ops approves": {func(s *contentsScene) string {
			return s.add("ops", s.first.with(db, "2"), s.base, s.dev(s.base, db, "2"))
		}, ""},
		"a side branch that ops merges the other way round": {func(s *contentsScene) string {
			return s.add("ops", s.first.with(db, "evil"), s.dev(s.base, db, "evil"), s.base)
		}, db},
		"a commit of ops upon a change by dev": {func(s *contentsScene) string {
			return s.ops(s.dev(s.base, db, "evil"), db, "evil", web, "2")
		}, "signed by dev"},
		"a side merge that takes a path back": {func(s *contentsScene) string {
			fix := s.ops(s.base, db, "fixed")
			open := s.ops(fix, db, "open")
			side := s.dev(open)
			return s.dev(s.add("dev", s.first, side, s.base), web, "2")
		}, db},
		"a fix that dev takes back before the host pulls": {func(s *contentsScene) string { return s.dev(s.ops(s.base, db, "fixed")) }, db},
		"a fix that a merge by dev leaves out": {func(s *contentsScene) string {
			return s.add("dev", s.first, s.base, s.ops(s.base, db, "fixed"))
		}, db},
		"a fix that ops takes back":    {func(s *contentsScene) string { return s.ops(s.ops(s.base, db, "fixed")) }, ""},
		"a change that dev takes back": {func(s *contentsScene) string { return s.dev(s.dev(s.base, db, "evil")) }, ""},
		"a conflict that ops resolved, opened again by dev": {func(s *contentsScene) string {
			one, two := s.ops(s.base, db, "one"), s.ops(s.base, db, "two")
			resolved := s.add("ops", s.first.with(db, "one"), one, two)
			return s.add("dev", s.first.with(db, "two"), resolved, two)
		}, db},
		"a conflict that dev resolves with what ops wrote": {func(s *contentsScene) string {
			return s.add("dev", s.first.with(db, "two"), s.ops(s.base, db, "one"), s.ops(s.base, db, "two"))
		}, ""},
		"a conflict that dev resolves in another way": {func(s *contentsScene) string {
			return s.add("dev", s.first.with(db, "both"), s.ops(s.base, db, "one"), s.ops(s.base, db, "two"))
		}, db},
		"a branch of ops that has an old main, merged over the fix": {func(s *contentsScene) string {
			branch := s.add("ops", s.first.with(web, "2", db, "old"), s.ops(s.base, web, "2"), s.ops(s.base, db, "old"))
			fix := s.ops(s.trunk(branch, 1), db, "fixed")
			return s.add("dev", s.first.with(web, "2", db, "old"), fix, branch)
		}, db},
		"a branch of ops that has an old main, merged as git does": {func(s *contentsScene) string {
			branch := s.add("ops", s.first.with(web, "2", db, "old"), s.ops(s.base, web, "2"), s.ops(s.base, db, "old"))
			fix := s.ops(s.trunk(branch, 1), db, "fixed")
			return s.add("dev", s.first.with(web, "2", db, "fixed"), fix, branch)
		}, ""},
		"a branch from before a rule": {func(s *contentsScene) string {
			side := s.dev(s.base, web, "evil")
			ruled := s.ops(s.base, signers, rules+"jobs/web : ops\n")
			return s.add("dev", s.first.with(signers, rules+"jobs/web : ops\n", web, "evil"), ruled, side)
		}, `"jobs/web", which is for ops`},
		"a branch from before a rule, the other way round": {func(s *contentsScene) string {
			side := s.dev(s.base, web, "evil")
			ruled := s.ops(s.base, signers, rules+"jobs/web : ops\n")
			return s.add("dev", s.first.with(signers, rules+"jobs/web : ops\n", web, "evil"), side, ruled)
		}, `"jobs/web", which is for ops`},
		"a right that ops gives": {func(s *contentsScene) string {
			given := s.ops(s.base, signers, rules+"jobs/db/** : dev\n")
			return s.dev(given, signers, rules+"jobs/db/** : dev\n", db, "2")
		}, ""},
		"a right that dev takes": {func(s *contentsScene) string {
			taken := s.dev(s.base, signers, rules+"jobs/db/** : dev\n")
			return s.dev(s.dev(taken, signers, rules+"jobs/db/** : dev\n", db, "2"), db, "2")
		}, db},
		"rules beside rules": {func(s *contentsScene) string {
			one := s.ops(s.base, signers, strings.ReplaceAll(rules, "ops", "dev"))
			two := s.ops(s.base, signers, rules+"x : ops\n")
			return s.add("ops", s.first.with(signers, rules), one, two)
		}, "is for dev"},
		"rules beside rules that ops settles": {func(s *contentsScene) string {
			taken := s.ops(s.base, signers, rules+"x : dev\n")
			one := s.ops(taken, signers, strings.ReplaceAll(rules, ".pullet/** : ops", ".pullet/** : dev, ops"))
			two := s.dev(one, signers, strings.ReplaceAll(rules, ".pullet/** : ops", ".pullet/** : dev, ops")+"y : dev\n")
			three := s.ops(one, signers, rules)
			return s.add("ops", s.first.with(signers, rules), three, two)
		}, ""},
		"rules that nobody can read": {func(s *contentsScene) string { return s.ops(s.base, signers, "nonsense\n") }, "does not say who may sign: .pullet/signers:1"},
		"a submodule":                {func(s *contentsScene) string { return s.dev(s.base, db, submodule+"1") }, "a submodule"},
		"a submodule that was there": {func(s *contentsScene) string { return s.dev(s.dev(s.base, db, submodule+"1"), web, "2") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newContentsScene(t)
			p := open(t, t.TempDir(), s.source())
			s.set(s.base)
			if h := pull(t, p); h.Problem != nil {
				t.Fatal(h.Problem)
			}
			offered := c.offer(s)
			s.set(offered)
			h := pull(t, p)
			switch {
			case c.want != "":
				expect(t, h.Problem, c.want)
				if h.Commit != s.base {
					t.Errorf("the head is %s, not the base", h.Commit)
				}
			case h.Problem != nil || h.Commit != offered:
				t.Error(h.Problem)
			}
		})
	}
}

func newContentsScene(t *testing.T) *contentsScene {
	s := &contentsScene{signedUpstream: newSignedUpstream(t, "ops", "dev")}
	s.first = files{"jobs/db/main": "1", "jobs/web": "1", ".pullet/signers": rules, "jobs/db/other": "1"}
	s.base = s.add("ops", s.first, s.add("ops", s.first.with("jobs/db/main", "vulnerable")))
	return s
}

// trunk returns a parent of a commit.
func (s *contentsScene) trunk(commit string, n int) string {
	return strings.Fields(s.run(s.dir, "rev-list", "--parents", "-1", commit))[n+1]
}

// TestContentsBetween: a commit in the history of one that was verified is held against the rules for itself: what was
// taken back behind it was in it.
func TestContentsBetween(t *testing.T) {
	s := newContentsScene(t)
	p := open(t, t.TempDir(), s.source())
	s.set(s.base)
	pull(t, p)
	evil := s.dev(s.base, "jobs/db/main", "evil")
	fine := s.dev(evil, "jobs/web", "2")
	last := s.ops(fine, "jobs/db/main", "2")
	s.set(last)
	if h := pull(t, p); h.Problem != nil || h.Commit != last {
		t.Fatal(h.Problem)
	}
	_, err := p.Snapshot(t.Context(), []Head{{Repo: "main", Commit: evil}})
	expect(t, err, `changes "jobs/db/main", which is for ops`)
	if got := content(t, p, Head{Repo: "main", Commit: fine}, "jobs/web"); got != "2" {
		t.Error(got)
	}
	next := s.ops(last, "jobs/db/main", "3")
	s.set(next)
	if h := pull(t, p); h.Problem != nil || h.Commit != next {
		t.Error(h.Problem)
	}
}

// TestContentsFirst: a host that verified nothing yet believes the rules of the history, and refuses the merge that
// removes them.
func TestContentsFirst(t *testing.T) {
	s := newContentsScene(t)
	bare := files{"jobs/web": "1"}
	for name, commit := range map[string]string{
		"other way round": s.add("dev", bare, s.add("dev", bare), s.base),
		"orphan":          s.add("dev", bare, s.base, s.add("dev", bare)),
		"own rules":       s.add("dev", files{".pullet/signers": "** : dev\n"}, s.add("dev", files{".pullet/signers": "** : dev\n"}), s.base),
		"change":          s.dev(s.base, "jobs/db/main", "evil"),
	} {
		s.set(commit)
		t.Run(name, func(t *testing.T) { expectRefusal(t, open(t, t.TempDir(), s.source()), "", "which is for") })
	}
	s.set(s.base)
	if h := pull(t, open(t, t.TempDir(), s.source())); h.Problem != nil {
		t.Error(h.Problem)
	}
}

// TestContentsRewritten: an operator accepts that the branch was rewritten, and so no rights.
func TestContentsRewritten(t *testing.T) {
	s := newContentsScene(t)
	fix := s.ops(s.base, "jobs/db/main", "fixed")
	for who, refused := range map[string]bool{"dev": true, "ops": false} {
		t.Run(who, func(t *testing.T) {
			p := open(t, t.TempDir(), s.source())
			s.set(fix)
			pull(t, p)
			other := s.add(who, s.first.with("jobs/web", "2"), s.base)
			s.set(other)
			pull(t, p)
			must(t, p.Accept(t.Context(), "main", other, "root"))
			_, err := p.Snapshot(t.Context(), []Head{{Repo: "main", Commit: other}})
			if refused {
				expect(t, err, `changes "jobs/db/main", which is for ops`)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestContentsDates: commits of the trusted history stay that, also where dev dates a commit so that a walk by dates
// does not find them.
func TestContentsDates(t *testing.T) {
	s := newContentsScene(t)
	p := open(t, t.TempDir(), s.source())
	vulnerable := s.trunk(s.base, 0)
	s.at = time.Unix(1000, 0)
	early := s.dev(s.base, "jobs/web", "2")
	s.at = time.Time{}
	fix := s.ops(early, "jobs/db/main", "fixed")
	s.set(fix)
	if h := pull(t, p); h.Problem != nil {
		t.Fatal(h.Problem)
	}
	old := s.first.with("jobs/db/main", "vulnerable")
	side := s.add("dev", old.with("jobs/web", "3"), vulnerable)
	s.set(s.add("dev", old.with("jobs/web", "3"), side, fix))
	expectRefusal(t, p, fix, `changes "jobs/db/main", which is for ops`)
}

// TestContentsOfTwoReadings: a directory with two entries of one name is refused in the middle of a history, too.
func TestContentsOfTwoReadings(t *testing.T) {
	s := newContentsScene(t)
	p := open(t, t.TempDir(), s.source())
	s.set(s.base)
	pull(t, p)
	none, all := s.tree(files{"signers": "# nothing\n"}), s.run(s.dir, "rev-parse", s.base+":.pullet")
	jobs := s.run(s.dir, "rev-parse", s.base+":jobs")
	for _, order := range [][2]string{{none.String(), all}, {all, none.String()}} {
		var text []byte
		for _, e := range [][2]string{{".pullet", order[0]}, {".pullet", order[1]}, {"jobs", jobs}} {
			id := plumbing.NewHash(e[1])
			text = append(text, "40000 "+e[0]+"\x00"+string(id[:])...)
		}
		o := s.repo.Storer.NewEncodedObject()
		o.SetType(plumbing.TreeObject)
		w, err := o.Writer()
		must(t, err)
		_, err = w.Write(text)
		must(t, err)
		twice := s.addTree("dev", s.keep(o), s.base)
		s.set(s.dev(twice, "jobs/db/main", "evil"))
		expectRefusal(t, p, s.base, "commit "+short(twice)+` cannot be read: entry ".pullet": the name exists twice`)
	}
}
