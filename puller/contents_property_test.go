package puller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"pgregory.net/rapid"

	"github.com/pullet/pullet/internal/trust"
)

// drawnCommit is a commit of a drawn history.
type drawnCommit struct {
	id, who string
	files   files
	parents []int
}

// drawnHistory is a history with the commit that the host has; -1: none.
type drawnHistory struct {
	commits []drawnCommit
	base    int
}

// drawnRules are the rules that drawn commits have; "" is none.
var drawnRules = []string{"", ".pullet/** : x\na : x\n", ".pullet/** : x\na : y\n", ".pullet/** : x, y\nb/c : y\n"}

var drawnPaths = []string{"a", "b/c", trust.RulesFile}

// drawHistory draws commits on any parents. Their files are those of a parent or of another commit, with a change or
// without: so merges of all kinds are frequent.
func drawHistory(t *rapid.T, u *signedUpstream) (h drawnHistory) {
	for i := range rapid.IntRange(2, 8).Draw(t, "commits") {
		c := drawnCommit{who: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "who"), files: files{}}
		if i > 0 && rapid.IntRange(0, 9).Draw(t, "orphan") > 0 {
			first := rapid.IntRange(max(0, i-3), i-1)
			c.parents = slices.Compact(rapid.SliceOfN(first, 1, 3).Draw(t, "parents"))
		}
		for _, path := range drawnPaths {
			var text string
			switch from := rapid.IntRange(0, 9).Draw(t, "from"); {
			case from < 6 && len(c.parents) > 0:
				text = h.commits[c.parents[from%len(c.parents)]].files[path]
			case from < 8 && i > 0:
				text = h.commits[rapid.IntRange(0, i-1).Draw(t, "other")].files[path]
			case path == trust.RulesFile:
				text = rapid.SampledFrom(drawnRules).Draw(t, "rules")
			default:
				text = rapid.SampledFrom([]string{"", "1", "2", executable + "1"}).Draw(t, "text")
			}
			if text != "" {
				c.files[path] = text
			}
		}
		var ids []string
		for _, p := range c.parents {
			ids = append(ids, h.commits[p].id)
		}
		c.id = u.add(c.who, c.files, ids...)
		h.commits = append(h.commits, c)
	}
	h.base = rapid.IntRange(-1, len(h.commits)-2).Draw(t, "base")
	return h
}

// model says who decided on which content, in the shortest way: with sets of all ancestors, path by path.
type model struct {
	drawnHistory
	past    []map[int]bool // by commit: it and its ancestors; the last one is the offered one, merged into the base
	decided map[string]map[int]bool
	older   map[string]map[int]map[string]bool // contents of trusted commits and of nothing, by path and commit
	wrong   map[string]map[int]bool
	merged  int // 1 if the offered commit is merged into the base
}

// latest returns those of some commits that no other one has in its past.
func (m *model) latest(all map[int]bool) map[int]bool {
	some := maps.Clone(all)
	maps.DeleteFunc(some, func(at int, _ bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(all)), func(other int) bool { return other != at && m.has(other, at) })
	})
	return some
}

// has reports whether a commit has another one in its past; without a base, every commit has nothing there.
func (m *model) has(commit, other int) bool {
	return other == -1 && m.base == -1 || commit >= 0 && m.past[commit][other]
}

// heads returns the contents that count where commits meet: those decided last, or else the older ones.
func (m *model) heads(path string, commits ...int) (contents map[string]bool) {
	known := map[int]bool{}
	for _, c := range commits {
		for at := range m.decided[path] {
			if m.has(c, at) {
				known[at] = true
			}
		}
		if m.has(c, m.base) || len(commits) == 0 && m.base == -1 {
			known[m.base] = true
		}
	}
	contents = map[string]bool{}
	for at := range m.latest(known) {
		contents[m.at(at, path)] = true
	}
	if len(known) == 0 {
		for _, c := range commits {
			maps.Copy(contents, m.older[path][c])
		}
	}
	return contents
}

func (m *model) at(commit int, path string) string {
	if commit < 0 {
		return ""
	}
	return m.commits[commit].files[path]
}

// force returns the commits whose rules count for a commit.
func (m *model) force(c int, beside bool) map[int]bool {
	all := map[int]bool{m.base: true}
	for at := range m.decided[trust.RulesFile] {
		if at != c && (m.has(c, at) || beside && !m.has(at, c)) {
			all[at] = true
		}
	}
	return m.latest(all)
}

func (m *model) may(c int, path string, beside bool) bool {
	for at := range m.force(c, beside) {
		if !m.allows(at, c, path) {
			return false
		}
	}
	return true
}

// allows reports whether the rules of a commit let the signer of another one change a path.
func (m *model) allows(at, c int, path string) bool {
	r, err := trust.ReadRules(trust.File{Content: []byte(m.at(at, trust.RulesFile))})
	return err == nil && r.Allow(trust.Signer{Names: []string{m.commits[c].who}}, path) == nil
}

// follow follows a path through the commits of the range.
func (m *model) follow(path string, steps []int, beside bool) {
	for _, c := range steps {
		own := m.at(c, path)
		parents := m.commits[c].parents
		if len(parents) == 0 {
			parents = []int{-1}
		}
		heads, known := m.heads(path, parents...), map[string]bool{}
		for _, p := range parents {
			maps.Copy(known, m.heads(path, p))
		}
		old := !slices.ContainsFunc(parents, func(p int) bool { return m.has(p, m.base) || m.anyDecided(path, p) })
		may := m.may(c, path, beside)
		if path == trust.RulesFile && beside && c < len(m.past)-m.merged {
			may = m.decided[path][c]
		}
		switch {
		case heads[own] && (len(heads) == 1 || old):
		case may && (own != m.at(parents[0], path) || known[own]):
			m.decided[path][c] = true
		case !heads[own]:
			m.wrong[path][c] = true
		}
		if m.older[path][c] = heads; heads[own] {
			m.older[path][c] = map[string]bool{own: true}
		}
	}
}

func (m *model) anyDecided(path string, c int) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(m.decided[path])), func(at int) bool { return m.has(c, at) })
}

// takes reports whether a host with the base takes the last commit.
func (h drawnHistory) takes() bool {
	m := &model{drawnHistory: h, decided: map[string]map[int]bool{}, older: map[string]map[int]map[string]bool{}, wrong: map[string]map[int]bool{}}
	last := len(h.commits) - 1
	for i, c := range h.commits {
		m.past = append(m.past, map[int]bool{i: true})
		for _, p := range c.parents {
			maps.Copy(m.past[i], m.past[p])
		}
	}
	var steps []int
	for c := range h.commits {
		if m.past[last][c] && (h.base < 0 || !m.past[h.base][c]) {
			steps = append(steps, c)
		}
	}
	offered := last
	if !m.has(last, h.base) { // as if its signer merged it into the base
		offered, m.merged = last+1, 1
		m.commits = append(slices.Clone(h.commits), drawnCommit{who: h.commits[last].who, files: h.commits[last].files, parents: []int{h.base, last}})
		m.past = append(m.past, map[int]bool{offered: true})
		maps.Copy(m.past[offered], m.past[last])
		maps.Copy(m.past[offered], m.past[h.base])
	}
	for _, path := range drawnPaths {
		m.decided[path], m.wrong[path] = map[int]bool{}, map[int]bool{}
		m.older[path] = map[int]map[string]bool{-1: {"": true}}
		for c := range m.past[max(h.base, 0)] {
			if h.base >= 0 {
				m.older[path][c] = map[string]bool{h.commits[c].files[path]: true}
			}
		}
	}
	m.follow(trust.RulesFile, steps, false)
	for c := range m.decided[trust.RulesFile] {
		for beside := range m.force(c, true) {
			settled := slices.ContainsFunc(slices.Collect(maps.Keys(m.decided[trust.RulesFile])), func(later int) bool {
				return later != c && m.has(later, c) && m.has(later, beside)
			})
			if !m.allows(beside, c, trust.RulesFile) && !settled {
				return false
			}
		}
	}
	if offered != last {
		steps = append(steps, offered)
	}
	for _, path := range drawnPaths {
		rulings := maps.Clone(m.decided[path])
		m.follow(path, steps, true)
		if path == trust.RulesFile {
			m.decided[path] = rulings
		}
		if m.wrong[path][offered] {
			return false
		}
	}
	return true
}

// TestContentsOfAnyHistory holds what is refused against the model.
func TestContentsOfAnyHistory(t *testing.T) {
	u := newSignedUpstream(t, "x", "y")
	u.commit("f", "1") // a HEAD
	st := newStore("main", u.dir)
	taken, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t, u)
		must(u.t, st.reset())
		var rec record
		if h.base >= 0 {
			rec.Verified = verification{Mode: verifyRange, Commits: []string{h.commits[h.base].id}}
		}
		v, err := newVerifier(u.source(), st, rec)
		must(u.t, err)
		err = v.verify(u.t.Context(), plumbing.NewHash(h.commits[len(h.commits)-1].id), tag{})
		want := h.takes()
		if want {
			taken++
		} else {
			refused++
		}
		if (err == nil) != want {
			t.Fatalf("%v, want it taken: %v\nbase %d\n%s", err, want, h.base, h)
		}
	})
	t.Logf("%d taken, %d refused", taken, refused)
}

func (h drawnHistory) String() string {
	var b strings.Builder
	for i, c := range h.commits {
		fmt.Fprintf(&b, "%d %s of %v: %v (%s)\n", i, c.who, c.parents, c.files, short(c.id))
	}
	return b.String()
}
