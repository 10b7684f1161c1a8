package agent

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/state"
)

// TestRecordThatForgot: a host that was given up, and pulls again without a change, tells the fleet which version it
// runs.
func TestRecordThatForgot(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	s := state.Over(m.store.Client, "f", nil)
	if _, err := s.Nodes.Decommission(t.Context(), "web1", "ada", true); err != nil {
		t.Fatal(err)
	}
	if o := web1.overview(); o.Running["web1"] != "" {
		t.Errorf("%+v", o.Running)
	}
	if out := web1.exits(ExitOK, ""); out.Upgrade {
		t.Errorf("%+v", out)
	}
	if o := web1.overview(); o.Running["web1"] != web1.head() {
		t.Errorf("%+v", o.Running)
	}
}

// TestAcceptedRecord: a record that was restored, and that an operator accepted, learns at the host's next pull which
// slot the host has.
func TestAcceptedRecord(t *testing.T) {
	t.Parallel()
	web1, web2, m := pair(t, job("one", "exit 3"), nil)
	web1.exits(ExitError, "exit code 3")
	s := state.Over(m.store.Client, "f", nil)
	if _, err := s.Client.Delete(t.Context(), s.Rollouts.SlotPrefix("web"), clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if err := s.Doubts.Accept(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Switches.Pause(t.Context(), &state.Switch{Reason: "a feast", By: "ada", At: time.Now()}, 0); err != nil {
		t.Fatal(err)
	}
	web2.exits(ExitWaiting, "a feast")
	if o := web1.overview(); len(o.Slots["web"]) > 0 {
		t.Errorf("%+v", o.Slots)
	}
	if _, err := web1.with(Options{}); err != nil {
		t.Error(err)
	}
	o := web1.overview()
	for _, claim := range o.Slots["web"] {
		if claim.Node != "web1" {
			t.Errorf("%+v", o.Slots)
		}
	}
	if len(o.Slots["web"]) != 1 {
		t.Errorf("%+v", o.Slots)
	}
}

// TestSkippedNoMore: a host takes back that it skips a newer commit once the fleet has all that its repository offers.
func TestSkippedNoMore(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	first := web1.head()
	web1.commit("steps: [{name: motd, action: file.managed, parameters: {name: /etc/motd, content: '{{ vars.none }}'}}]\n")
	web1.exits(ExitError, "none")
	if o := web1.overview(); o.Skipped == nil || o.Skipped.Kind != state.SkipBroken || o.Skipped.By != "web1" {
		t.Errorf("%+v", o.Skipped)
	}
	web1.git("reset", "-q", "--hard", first)
	if out, err := web1.with(Options{AcceptRewind: true, By: "ada"}); err != nil || out.ExitCode() != ExitOK {
		t.Errorf("%v %s", err, saidBy(out, nil))
	}
	if o := web1.overview(); o.Skipped != nil || o.Current.ID != first {
		t.Errorf("%+v %+v", o.Skipped, o.Current)
	}
}

// TestMistakesOfServicesAndExtensions: a commit whose services or extensions are mistaken is not proposed, and the
// mistake is said at its place.
func TestMistakesOfServicesAndExtensions(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	first := web1.head()
	for _, file := range []string{"base/services.yaml", "extensions/motd.yaml"} {
		web1.write("repo/"+file, "nonsense: [1]\n")
		web1.git("add", "-A")
		web1.git("commit", "-qm", file)
		web1.exits(ExitError, file+":1:")
		if o := web1.overview(); o.Current.ID != first || o.Skipped == nil || o.Skipped.Kind != state.SkipBroken {
			t.Errorf("%s: %+v", file, o.Skipped)
		}
		web1.git("rm", "-q", file)
	}
}

// TestPlaceLeftAtAStep: a place at a serialized step that a killed pull left is given back: by the run of a version
// without that step, and by a host that waits for its turn with half of a version.
func TestPlaceLeftAtAStep(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	s := state.Over(m.store.Client, "f", nil)
	leaves := func() {
		t.Helper()
		claim := state.Claim{Node: "web1", Version: web1.head(), Rollout: web1.head(), Step: "site/join"}
		always := clientv3.Compare(clientv3.CreateRevision(s.Doubts.Key()), "=", 0)
		if _, err := lock.PutBack(t.Context(), s, &state.HeldPlace{Step: state.StepHash("site/join"), Claim: claim}, always); err != nil {
			t.Fatal(err)
		}
	}
	places := func(want int64) {
		t.Helper()
		got, err := s.Client.Get(t.Context(), s.Steps.SemaphorePrefix(state.StepHash("site/join")), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil || got.Count != want {
			t.Errorf("%v %+v, want %d", err, got, want)
		}
	}
	leaves()
	places(1)
	web1.commit(job("two", "exit 3"))
	web1.exits(ExitError, "exit code 3")
	places(0)
	leaves()
	if _, err := s.Switches.Pause(t.Context(), &state.Switch{Reason: "a feast", By: "ada", At: time.Now()}, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Client.Delete(t.Context(), s.Rollouts.SlotPrefix("web"), clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	web1.commit(job("three", "true"))
	web1.exits(ExitWaiting, "a feast")
	places(0)
}

// TestPlacesUntold: a host that holds a place, and whose record cannot be asked whether it went back, says so; one that
// holds nothing does not.
func TestPlacesUntold(t *testing.T) {
	t.Parallel()
	h := newHost(t, job("one", "true"))
	store, err := state.Open(t.Context(), state.Config{Fleet: "f", Dir: t.TempDir()})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, held := range []bool{false, true} {
		p := &places{node: "web1", log: h.entry()}
		if held {
			p.slot.Store(&state.HeldPlace{Group: "web", Claim: state.Claim{Node: "web1"}})
		}
		p.compare(t.Context(), store, state.Origin{Revision: 1}, time.Minute)
		if said := strings.Contains(h.log.String(), "does not know what this node holds"); said != held {
			t.Errorf("held: %t, %q", held, h.log.String())
		}
	}
}

// TestVersionWithoutCommits: a host takes no version that names no commit, whatever its id.
func TestVersionWithoutCommits(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	s := state.Over(m.store.Client, "f", nil)
	forged := state.Version{ID: puller.Version(nil), By: "intruder", Held: true}
	if _, err := s.Client.Txn(t.Context()).Then(state.Put(s.Versions.CurrentKey(), forged)).Commit(); err != nil {
		t.Fatal(err)
	}
	web1.exits(ExitRefused, "is not what the version's repositories are at")
	if web1.known().Running.ID != web1.head() || web1.file("etc/motd") != "one" {
		t.Errorf("%+v", web1.known().Running)
	}
}

// TestNewVersionWhileTheRecordWentBack: a host whose fleet's record was restored says so of a commit that is new to it.
func TestNewVersionWhileTheRecordWentBack(t *testing.T) {
	t.Parallel()
	web1, _, _ := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	local := web1.known()
	local.Store.Revision = 1 << 40
	if err := local.Save(web1.Paths.State); err != nil {
		t.Fatal(err)
	}
	web1.commit(job("two", "true"))
	out := web1.exits(ExitWaiting, "waiting for etcd: the fleet's record there was restored or replaced, and version "+state.Short(web1.head())+" is new here")
	if out.Wait.Kind != state.WaitStore || !strings.Contains(out.Wait.Clear, "pullet rollout resume --store") || web1.file("etc/motd") != "one" {
		t.Errorf("%+v", out.Wait)
	}
}

// TestOrphanOfARollout: a host that waits for a command of a killed pull, and for which the fleet has a newer version,
// tells the rollout for what it waits.
func TestOrphanOfARollout(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, job("one", "true"), map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	web1.exits(ExitOK, "")
	other := &apply.Host{Root: web1.Root, Notes: filepath.Join(web1.Paths.State, "commands")}
	ended := make(chan error, 1)
	go func() {
		_, err := other.Run(t.Context(), apply.Command{Args: apply.Shell("touch begun; until test -e go; do sleep 0.02; done")})
		ended <- err
	}()
	web1.started("begun")
	if _, err := web1.with(Options{}); err == nil {
		t.Error("nothing is waited for")
	}
	if st := web1.statuses()[state.Rollout]; st.State != state.Success {
		t.Errorf("the rollout waits for nothing: %+v", st)
	}
	web1.commit(job("two", "true"))
	web2.exits(ExitOK, "")
	if _, err := web1.with(Options{}); err == nil {
		t.Error("nothing is waited for")
	}
	if st := web1.statuses()[state.Rollout]; st.State != state.Pending || st.Kind != state.WaitOrphan || st.Version != web1.head() {
		t.Errorf("%+v", st)
	}
	web1.write("f/web1/root/go", "")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestNewerVersionAtABarrier: who waits for others in mid-run leaves for a version that is newer.
func TestNewerVersionAtABarrier(t *testing.T) {
	t.Parallel()
	web1, web2, _ := pair(t, "steps: [{name: meet, action: cmd.run, parameters: {cmd: 'true'}, runOptions: {sync: true}}]\n",
		map[string]string{"pullet.yaml": "rollout: {rollingRules: {global: 2}}\n"})
	waits, done := make(chan *lock.Wait, 10), make(chan *Outcome)
	go func() {
		out, err := web1.with(Options{Wait: 10 * time.Minute, Waiting: func(w *lock.Wait) { waits <- w }})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	if w := <-waits; w.Gate != "barrier site/meet" {
		t.Errorf("%+v", w)
	}
	web1.commit(job("two", "true"))
	web2.exits(ExitOK, "")
	if out := <-done; out.ExitCode() != ExitWaiting || out.Wait == nil || out.Wait.Kind != state.WaitNewer || out.Report.Failed() {
		t.Errorf("%s", saidBy(out, nil))
	}
	web1.exits(ExitOK, "")
	if web1.file("etc/motd") != "two" {
		t.Error("it does not follow")
	}
}
