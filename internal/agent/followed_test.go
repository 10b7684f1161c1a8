package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// head is the commit that the repository is at.
func (h *host) head() string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.home, "repo/.git/refs/heads/main"))
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// known is what the host knows of itself.
func (h *host) known() state.Local {
	h.t.Helper()
	local, err := state.LoadLocal(h.Paths.State)
	if err != nil {
		h.t.Fatal(err)
	}
	return local
}

// TestStaleRepository: a host that cannot read its repository, or reads one that is behind, goes on with its commit and
// says so: in its own record, with since when, and in the fleet's. It forgets that when the repository is back.
func TestStaleRepository(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.pull()
	repo, away := filepath.Join(h.home, "repo"), filepath.Join(h.home, "away")
	if err := os.Rename(repo, away); err != nil {
		t.Fatal(err)
	}
	h.write("root/etc/motd", "by hand")
	out := h.exits(ExitOK, "")
	h.warned(out, "cannot read ")
	trouble := h.known().Troubles["main"]
	if h.file("etc/motd") != "one" || trouble.Kind != state.WaitStale || trouble.Since.IsZero() || !strings.Contains(trouble.Why, "; the node goes on with commit ") || !strings.HasPrefix(trouble.Clear, "try: git ls-remote ") {
		t.Errorf("%q %+v", h.file("etc/motd"), trouble)
	}
	h.said(state.Configured, state.Success, string(state.WaitStale), "the node goes on with commit ")
	h.pull()
	if again := h.known().Troubles["main"]; again != trouble {
		t.Errorf("%+v became %+v", trouble, again)
	}
	if st := h.statuses()[state.Configured]; !st.Since.Equal(trouble.Since) || st.Clear != trouble.Clear {
		t.Errorf("%+v", st)
	}
	if err := os.Rename(away, repo); err != nil {
		t.Fatal(err)
	}
	h.commit(job("two", "true"))
	h.exits(ExitOK, "")
	h.said(state.Configured, state.Success, "", "")
	if got := h.statuses()[state.Configured].Reason + h.file("etc/motd"); got != "two" || len(h.known().Troubles) > 0 {
		t.Errorf("%q %v", got, h.known().Troubles)
	}
	h.git("reset", "-q", "--hard", "HEAD~1")
	h.warned(h.exits(ExitOK, ""), "the remote is behind")
	h.said(state.Configured, state.Success, string(state.WaitStale), "the remote is behind")
	if h.file("etc/motd") != "two" {
		t.Error("it went back")
	}
}

// TestNoRepository: a host that never saw its repository cannot pull; one whose first commit cannot be used says so as
// a refusal.
func TestNoRepository(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	h.Repositories[0].URL = filepath.Join(h.home, "none")
	out, err := h.with(Options{})
	if err == nil || !strings.Contains(err.Error(), "none") || out.ExitCode() != ExitOK || out.Report != nil {
		t.Errorf("%v %+v", err, out)
	}
	h.said(state.Configured, state.Failed, "", "none")
	h.Repositories[0].URL = filepath.Join(h.home, "repo")
	h.exits(ExitOK, "")
}

// TestRewrittenHistory: a rewritten history is refused, and what runs is checked. An operator accepts it on one host;
// the others follow, say who accepted it, and one whose mirror still has the commit that was left neither goes back to
// it nor takes the fleet there.
func TestRewrittenHistory(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.commit(job("two", "true"))
	left := web1.head()
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	mirror := filepath.Join(web1.home, "mirror")
	if err := os.CopyFS(mirror, os.DirFS(filepath.Join(web1.home, "repo"))); err != nil {
		t.Fatal(err)
	}
	web1.git("reset", "-q", "--hard", "HEAD~1")
	web1.commit(job("three", "true"))
	taken := web1.head()
	web1.write("f/web1/root/etc/motd", "by hand")
	out := web1.exits(ExitRefused, `branch "main" was rewritten`)
	if out.Report == nil || web1.file("etc/motd") != "two" || len(out.Refused) != 1 {
		t.Errorf("%+v", out)
	}
	web1.said(state.Configured, state.Failed, string(state.WaitRefused), "was rewritten")
	web2.exits(ExitRefused, "was rewritten")

	out, err := web1.with(Options{AcceptRewind: true, By: "ada"})
	moved := "from " + state.Short(left) + " to " + state.Short(taken)
	if err != nil || out.ExitCode() != ExitOK || web1.file("etc/motd") != "three" {
		t.Errorf("%v %s", err, saidBy(out, nil))
	}
	web1.warned(out, `repository "main": rewind accepted by ada, `+moved)
	o := web1.overview()
	want := state.Commit{Repo: "main", Commit: taken, Left: left}
	if c := o.Current; c.By != "ada" || c.Reason != "rewind accepted "+moved || len(c.Rewound) != 1 || c.Rewound[0].Commit != want.Commit || c.Rewound[0].Left != want.Left || c.ID != taken {
		t.Errorf("%+v", o.Current)
	}
	web2.exits(ExitOK, "")
	if web2.file("etc/motd") != "three" || !strings.Contains(web2.log.String(), "follows the rewind "+moved+" that the fleet (ada) accepted") {
		t.Error(web2.log.String())
	}
	// A third host, whose mirror still has what was left.
	web3 := web1.member("f", "web3", "web", web1.Etcd.Endpoints[0])
	web3.Repositories = []puller.Source{{Name: "main", URL: mirror}}
	web3.exits(ExitWaiting, "its remote does not have "+state.Short(taken))
	if o := web3.overview(); o.Current.ID != taken {
		t.Errorf("the fleet went back to %s", o.Current.ID)
	}
	web1.exits(ExitOK, "")
	if local := web1.known(); len(local.Troubles) > 0 {
		t.Errorf("%+v", local.Troubles)
	}
	web1.commit(job("four", "true"))
	web2.exits(ExitOK, "")
	if o := web2.overview(); o.Current.By != "web2" || len(o.Current.Rewound) != 1 || o.Current.Previous != taken {
		t.Errorf("%+v", o.Current)
	}
}

// TestAcceptedBack: the fleet goes back to an older commit, as after a stale mirror that somebody accepted. A host
// whose remote is ahead says so.
func TestAcceptedBack(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	first := web1.head()
	mirror := filepath.Join(web1.home, "mirror")
	if err := os.CopyFS(mirror, os.DirFS(filepath.Join(web1.home, "repo"))); err != nil {
		t.Fatal(err)
	}
	web1.commit(job("two", "true"))
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	ahead := web1.Repositories
	web1.Repositories = []puller.Source{{Name: "main", URL: mirror}}
	web1.warned(web1.exits(ExitOK, ""), "the remote is behind")
	out, err := web1.with(Options{AcceptRewind: true, By: "ada"})
	if err != nil || out.ExitCode() != ExitOK || web1.file("etc/motd") != "one" || web1.overview().Current.ID != first {
		t.Errorf("%v %s", err, saidBy(out, nil))
	}
	out = web2.exits(ExitOK, "the fleet went back to "+state.Short(first)+", a rewind that ada accepted, but the remote of this host still offers "+state.Short(web1.head()))
	if web2.file("etc/motd") != "one" || web2.overview().Current.ID != first {
		t.Errorf("%s", saidBy(out, nil))
	}
	web1.Repositories = ahead
	web1.exits(ExitOK, "")
	if web1.file("etc/motd") != "one" {
		t.Error("it went forward again by itself")
	}
}

// TestVersionThatNobodyConfirms: a host takes no version that its own repository does not confirm. It goes on with its
// own, says who set that version, and plans nothing of it.
func TestVersionThatNobodyConfirms(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	first := web1.head()
	web1.exits(ExitOK, "")
	web1.commit(job("two", "true"))
	web1.exits(ExitOK, "")
	second := web1.head()
	web1.git("checkout", "-q", "-b", "side")
	web1.commit(job("evil", "true"))
	web1.git("tag", "-a", "v9", "-m", "v9")
	text, err := os.ReadFile(filepath.Join(web1.home, "repo/.git/refs/heads/side"))
	if err != nil {
		t.Fatal(err)
	}
	side := strings.TrimSpace(string(text))
	web1.git("checkout", "-q", "main")
	for _, c := range []struct{ id, commit, tag, by, why string }{
		{first, first, "", "intruder", "set by intruder, is refused by this host: commit " + state.Short(first) + " goes back behind what this host runs (" + state.Short(second) + "), and nobody undid that"},
		{side, side, "v9", "", "set by somebody, is refused by this host: commit " + state.Short(side) + " is not in the history of branch main of repository \"main\""},
		{second, side, "", "intruder", "is not what the version's repositories are at"},
	} {
		s := web1.open()
		_, rev, err := s.Versions.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		forged := state.Version{ID: c.id, By: c.by, Commits: []state.Commit{{Repo: "main", Commit: c.commit, Tag: c.tag}}, Held: true}
		if _, err := s.Client.Txn(t.Context()).Then(state.Put(s.Versions.CurrentKey(), forged)).Commit(); err != nil {
			t.Fatal(err, rev)
		}
		web1.write("f/web1/root/etc/motd", "by hand")
		out := web1.exits(ExitRefused, c.why)
		if web1.file("etc/motd") != "two" || out.Version.ID != second || web1.overview().Current.By != c.by {
			t.Errorf("%s: %+v", c.why, out)
		}
		web1.said(state.Configured, state.Failed, string(state.WaitRefused), c.why)
		if st := web1.statuses()[state.Configured]; st.Clear != "to leave it: pullet rollout undo" {
			t.Errorf("%+v", st.Remedy)
		}
		out, err = web1.plan("")
		if err != nil || out.Version.ID != second || len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Error(), c.why) || out.Report.Changed() > 0 {
			t.Errorf("a plan: %v %+v", err, out)
		}
	}
	// One that runs nothing yet does nothing, nor plans.
	web2.exits(ExitRefused, "is refused by this host")
	if _, err := web2.plan(""); err == nil || !strings.Contains(err.Error(), "is refused by this host") || web2.file("etc/motd") != "" {
		t.Errorf("a plan: %v", err)
	}
	web2.said(state.Configured, state.Failed, string(state.WaitRefused), "is refused by this host")
}
