package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/state"
)

// onBadDisk are a host's repositories, of which one request fails as on a bad disk.
type onBadDisk struct {
	Repositories
	at, asked int
	what      string // the request that failed
}

var errBadDisk = errors.New("input/output error")

func (b *onBadDisk) fails(what string) error {
	if b.asked++; b.asked != b.at {
		return nil
	}
	b.what = what
	return errBadDisk
}

func (b *onBadDisk) Pull(ctx context.Context) ([]puller.Head, error) {
	if err := b.fails("Pull"); err != nil {
		return nil, err
	}
	return b.Repositories.Pull(ctx)
}

func (b *onBadDisk) Relate(ctx context.Context, from, to puller.Head) (puller.Relation, error) {
	if err := b.fails("Relate"); err != nil {
		return puller.Unknown, err
	}
	return b.Repositories.Relate(ctx, from, to)
}

func (b *onBadDisk) Follows(ctx context.Context, own, h puller.Head) (puller.Head, bool, error) {
	if err := b.fails("Follows"); err != nil {
		return puller.Head{}, false, err
	}
	return b.Repositories.Follows(ctx, own, h)
}

func (b *onBadDisk) Resolve(ctx context.Context, repo, rev string) (puller.Head, error) {
	if err := b.fails("Resolve"); err != nil {
		return puller.Head{}, err
	}
	return b.Repositories.Resolve(ctx, repo, rev)
}

func (b *onBadDisk) Describe(ctx context.Context, h puller.Head) (subject, author string, err error) {
	if err := b.fails("Describe"); err != nil {
		return "", "", err
	}
	return b.Repositories.Describe(ctx, h)
}

func (b *onBadDisk) Accept(ctx context.Context, repo, commit, by string) error {
	if err := b.fails("Accept"); err != nil {
		return err
	}
	return b.Repositories.Accept(ctx, repo, commit, by)
}

func (b *onBadDisk) Snapshot(ctx context.Context, heads []puller.Head) (*puller.Snapshot, error) {
	if err := b.fails("Snapshot"); err != nil {
		return nil, err
	}
	return b.Repositories.Snapshot(ctx, heads)
}

// badDisk is an agent of the host, whose n-th request to its repositories fails.
func (h *host) badDisk(n int) (*Agent, *onBadDisk) {
	h.t.Helper()
	repos := filepath.Join(h.Paths.State, "repositories")
	p, err := puller.Open(repos, h.Repositories, gitremote.Limits{}, h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	bad := &onBadDisk{Repositories: p, at: n}
	a, err := NewIn(Outside{
		Record: state.Open, Repositories: bad, Actions: action.All(), Chance: rand.N[time.Duration],
		Host: Machine{
			ID: func() string { return "" }, Boot: apply.Boot(), Up: apply.Up, Inode: inode, Orphans: apply.Orphans,
			Facts: func() render.Facts { return facts.Gather(h.Root) },
		},
	}, h.Config, "test", h.entry())
	if err != nil {
		h.t.Fatal(err)
	}
	return a, bad
}

// eachBad does something with each request to the repositories failing once, and checks that this is said. Fewer than
// least requests are too few.
func (h *host) eachBad(least int, prepare func(n int), does func(*Agent) (*Outcome, error), is func(out *Outcome, err error) bool) {
	h.t.Helper()
	for n := 1; ; n++ {
		prepare(n)
		h.log.Reset()
		a, bad := h.badDisk(n)
		out, err := does(a)
		if closed := a.Close(); closed != nil {
			h.t.Error(closed)
		}
		if bad.what == "" {
			if n <= least {
				h.t.Errorf("there were %d requests, want %d", n-1, least)
			}
			return
		}
		said := saidBy(out, err) + h.log.String()
		if !strings.Contains(said, errBadDisk.Error()) {
			h.t.Errorf("request %d, %s, failed, and nothing says so:\n%s", n, bad.what, said)
		}
		harmless := bad.what == "Describe" || strings.Contains(said, "whether the fleet went back could not be found out")
		if !harmless && !is(out, err) { // a version is the same without its subjects and that warning
			h.t.Errorf("request %d, %s, failed: %v %+v", n, bad.what, err, out)
		}
	}
}

// pulls is a pull as eachBad has it.
func pulls(o Options) func(*Agent) (*Outcome, error) {
	o.Waiting = func(*lock.Wait) {}
	return func(a *Agent) (*Outcome, error) { return a.Pull(context.Background(), o) }
}

// TestNoFailedRepositoryIsSilent: whichever request to its repositories fails, a pull, a plan and a version to start
// say so: no version is proposed, taken or started that was not compared and compiled, and the next pull goes on.
func TestNoFailedRepositoryIsSilent(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	nothing := func(int) {}
	web1.exits(ExitOK, "")
	first := web1.head()
	stays := func(out *Outcome, err error) bool {
		return (err != nil || out.ExitCode() == ExitError) && web1.overview().Current.ID == first && web1.file("etc/motd") == "one"
	}
	// A commit that does not compile for the other host.
	web1.write("repo/jobs/two.yaml", "steps: [{name: motd, action: file.managed, parameters: {name: /etc/two, content: '{{ vars.none }}'}}]\n")
	web1.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}], web2: [{name: two}]}\n")
	web1.commit(job("two", "true"))
	web1.eachBad(5, nothing, pulls(Options{}), stays)
	web1.write("repo/base/jobs.yaml", "jobs: {'*': [{name: site}]}\n")
	// A commit that is all right: what a plan and an operator's command find in it.
	web1.commit(job("three", "true"))
	web1.eachBad(4, nothing, func(a *Agent) (*Outcome, error) { return a.Plan(context.Background(), "", Options{}) },
		func(_ *Outcome, err error) bool { return err != nil })
	s := web1.open()
	web1.eachBad(4, nothing, func(a *Agent) (*Outcome, error) {
		_, err := a.Prepare(context.Background(), s, []string{"main"}, Instructions{})
		return &Outcome{}, err
	}, func(_ *Outcome, err error) bool { return err != nil })
	web1.eachBad(7, func(n int) {
		if web1.overview().Current.ID == web1.head() { // it was proposed, or only a subject could not be read
			web1.exits(ExitOK, "")
			first = web1.head()
			web1.commit(job(fmt.Sprint("commit ", n), "true"))
		}
	}, pulls(Options{}), func(_ *Outcome, err error) bool { return err != nil && web1.known().Running.ID == first })
	// A version that another host proposed.
	web2.exits(ExitOK, "")
	web1.exits(ExitOK, "")
	first = web1.head()
	web1.commit(job("four", "true"))
	web2.exits(ExitOK, "")
	second := web1.head()
	web1.eachBad(5, nothing, pulls(Options{}), func(_ *Outcome, err error) bool {
		return err != nil && web1.known().Running.ID == first && web1.overview().Current.ID == second
	})
	// A rewritten history, which an operator accepts.
	web1.eachBad(6, func(n int) {
		web1.git("reset", "-q", "--hard", first)
		web1.commit(job(fmt.Sprint("rewritten ", n), "true"))
	}, pulls(Options{AcceptRewind: true, By: "ada"}), func(_ *Outcome, err error) bool {
		return err != nil && web1.known().Running.ID != web1.head()
	})
	if o := web1.overview(); o.Current.ID != web1.head() || o.Current.By != "ada" || len(o.Current.Rewound) != 1 {
		t.Errorf("%+v", o.Current)
	}
	// One that the fleet accepted before: it is not taken where it cannot be looked at.
	web2.eachBad(6, nothing, pulls(Options{}), func(out *Outcome, err error) bool {
		return (err != nil || out.ExitCode() == ExitRefused) && web2.known().Running.ID == second
	})
	if web2.known().Running.ID != web1.head() {
		t.Errorf("it runs %s", web2.known().Running)
	}
	// A host whose mirror still has what the fleet left by going back.
	web1.commit(job("back", "true"))
	back := web1.head()
	web1.exits(ExitOK, "")
	web1.commit(job("left", "true"))
	left := web1.head()
	web1.exits(ExitOK, "")
	mirror := filepath.Join(web1.home, "mirror")
	if err := os.CopyFS(mirror, os.DirFS(filepath.Join(web1.home, "repo"))); err != nil {
		t.Fatal(err)
	}
	web1.git("reset", "-q", "--hard", back)
	if out, err := web1.with(Options{AcceptRewind: true, By: "ada"}); err != nil || web1.overview().Current.ID != back {
		t.Errorf("%s", saidBy(out, err))
	}
	web2.Repositories = []puller.Source{{Name: "main", URL: mirror}}
	web2.eachBad(5, nothing, pulls(Options{}), func(out *Outcome, _ error) bool {
		return web2.known().Running.ID != left && web2.overview().Current.ID == back
	})
	if err := os.RemoveAll(filepath.Join(web1.home, "repo")); err != nil {
		t.Fatal(err)
	}
	web1.eachBad(2, nothing, pulls(Options{}), func(_ *Outcome, err error) bool { return err != nil })
}

// TestNewRepository: a repository that comes to the configurations later joins the fleet's version when an operator
// says so, also on hosts that run one without it.
func TestNewRepository(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	second := filepath.Join(web1.home, "second")
	if err := os.CopyFS(second, os.DirFS(filepath.Join(web1.home, "repo"))); err != nil {
		t.Fatal(err)
	}
	was := web1.head()
	web1.commit(job("two", "true")) // which the second repository, read last, replaces
	web1.exits(ExitOK, "")
	web2.exits(ExitOK, "")
	only := web1.Repositories
	both := append(only[:1:1], puller.Source{Name: "second", URL: second})
	web1.Repositories = both
	web1.exits(ExitRefused, "pullet rollout start second="+state.Short(was))
	if running := web1.known().Running; running.ID != web1.head() || web1.overview().Current.ID != web1.head() {
		t.Errorf("it runs %s", running)
	}
	a, err := New(web1.Config, "test", web1.entry())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := state.Over(m.store.Client, "f", nil)
	p, err := a.Prepare(t.Context(), s, []string{"second=" + was}, Instructions{})
	if err == nil {
		err = s.Versions.Move(t.Context(), p.Version, p.Current, p.Seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitOK, "")
	v := web1.overview().Current
	if len(v.Commits) != 2 || v.Commits[0].Commit != web1.head() || v.Commits[1].Commit != was || web1.file("etc/motd") != "one" {
		t.Errorf("%+v %q", v, web1.file("etc/motd"))
	}
	web2.Repositories = both
	web2.exits(ExitOK, "")
	if got := web2.file("etc/motd"); got != "one" || web2.overview().Running["web2"] != v.ID {
		t.Errorf("%q", got)
	}
	if got, err := a.Prepare(t.Context(), s, []string{"second=" + was}, Instructions{}); err != nil || got.Version.ID != v.ID {
		t.Errorf("%v %+v", err, got)
	}
}

// TestPlanSaysProblems: a plan says that the repository cannot be read, also where etcd is away.
func TestPlanSaysProblems(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	if err := os.Rename(filepath.Join(web1.home, "repo"), filepath.Join(web1.home, "away")); err != nil {
		t.Fatal(err)
	}
	for _, away := range []bool{false, true} {
		m.mu.Lock()
		m.refuse = func(string) bool { return away }
		m.mu.Unlock()
		if plan, err := web1.plan(""); err != nil || !strings.Contains(saidBy(plan, nil), "cannot read ") || plan.Report.Changed() > 0 {
			t.Errorf("etcd is away: %t: %v %s", away, err, saidBy(plan, nil))
		}
	}
}
