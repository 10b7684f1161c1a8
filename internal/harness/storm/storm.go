// Package storm runs a fleet of real processes, injects faults into it for a while, and has the log of its steps
// judged. Tests only.
package storm

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/harness/chance"
	"github.com/pullet/pullet/internal/harness/judge"
	"github.com/pullet/pullet/internal/harness/link"
	"github.com/pullet/pullet/internal/harness/rules"
)

// storm is a fleet of real processes and its faults.
type storm struct {
	*notes
	dir        string
	seed       uint64
	kind       Kind
	datastore  *datastore
	repository *repository
	operator   *operator
	hosts      *hosts
	operations *operations
}

// Run takes a fleet through a storm, and fails the test if it breaks a promise. The failure prints the seed, the faults
// and the broken promises. The name of the program etcd-member in PATH is that of cluster.Program.
func Run(t testing.TB, seed uint64, kind Kind) {
	t.Helper()
	s := newStorm(t, seed, kind)
	s.start()
	s.rage()
	s.finish(s.settle())
}

// newStorm makes a fleet with its first version, in which only etcd runs.
func newStorm(t testing.TB, seed uint64, kind Kind) *storm {
	dir := keptDir(t)
	n := newNotes(t, dir)
	roles, names := map[string]string{}, []string(nil)
	for i := range kind.Hosts {
		role := []string{"edge", "db", "web"}[i%3]
		names = append(names, fmt.Sprintf("%s%d", role, i/3+1))
		roles[names[i]] = role
	}
	s := &storm{notes: n, dir: dir, seed: seed, kind: kind}
	s.datastore = newDatastore(n, dir, kind)
	s.repository = newRepository(n, dir, kind, rules.First(roles, kind.OnLost))
	s.operator = &operator{notes: n, program: kind.Program, config: filepath.Join(dir, "operator/pullet.yaml")}
	s.hosts = &hosts{
		notes: n, dir: dir, program: kind.Program, long: kind.Duration >= 2*time.Minute,
		datastore: s.datastore, repository: s.repository, operator: s.operator,
	}
	for i, name := range names {
		s.hosts.list = append(s.hosts.list, s.hosts.add(name, name, roles[name], i%4 == 3))
	}
	if os.Geteuid() == 0 {
		if err := s.hosts.list[len(names)-1].mountSmallDisk(t); err != nil {
			t.Logf("full disks are left out: %v", err)
		}
	}
	s.hosts.configure("operator", "operator", "none", s.datastore.cluster.Addresses())
	s.operations = &operations{
		notes: n, dir: dir, operator: s.operator, hosts: s.hosts, datastore: s.datastore, repository: s.repository,
	}
	s.repository.push(false)
	return s
}

// keptDir returns a temporary directory that is kept if the test fails.
func keptDir(t testing.TB) string {
	dir, err := os.MkdirTemp("", "pullet-storm-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || os.Getenv("PULLET_TEST_KEEP") != "" {
			t.Logf("the log and the directories of all hosts are kept in %s", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts all hosts.
func (s *storm) start() {
	for _, h := range s.hosts.list {
		h.up()
		s.t.Cleanup(h.down)
	}
}

// lane is a sequence of faults with pauses.
type lane struct {
	from, to time.Duration // of a pause
	faults   []func(*rand.Rand)
}

// lanes returns the lanes of the storm. Each lane draws from its own part of the seed.
func (s *storm) lanes() []lane {
	often := func(faults ...func(*rand.Rand)) lane { return lane{500 * time.Millisecond, 5 * time.Second, faults} }
	h, d := s.hosts, s.datastore
	out := []lane{
		often(h.kill, h.kill, h.killPullet, h.killSteps, h.freeze, h.reinstall, h.revert, h.clone, h.removeState),
		often(h.kill, h.freeze, h.killPullet, h.killSteps),
		often(h.cut, h.cut, h.cut, h.revoke, h.fillDisk),
		often(s.operations.push),
		often(s.operations.operate),
		{10 * time.Second, 30 * time.Second, []func(*rand.Rand){d.compact, d.fill}},
		// Each of these begins a grace time, in which no host is admitted.
		{time.Minute, 2 * time.Minute, []func(*rand.Rand){d.hurtMember, d.hurtMember, d.blackout}},
	}
	if s.kind.Clocks {
		out = append(out, often(h.setClock))
	}
	return out
}

// rage injects faults for the duration of the storm. The faults of each lane are drawn from the seed. Their times
// depend on the machine.
func (s *storm) rage() {
	end := time.Now().Add(s.kind.Duration)
	var running sync.WaitGroup
	for i, lane := range s.lanes() {
		x := chance.Lane(s.seed, i+1)
		running.Go(func() {
			pause := chance.Between(x, lane.from, lane.to)
			for ; time.Now().Add(pause).Before(end); pause = chance.Between(x, lane.from, lane.to) {
				time.Sleep(pause)
				lane.faults[x.IntN(len(lane.faults))](x)
			}
		})
	}
	running.Go(func() {
		for ; time.Now().Before(end); time.Sleep(time.Second) {
			s.hosts.restartEnded()
		}
	})
	if s.kind.Duration >= 2*time.Minute && s.seed%3 == 0 {
		x := chance.Lane(s.seed, 100)
		running.Go(func() { s.restoreOften(x, end) })
	}
	running.Wait()
}

// restoreOften restores etcd now and then. Each restore loses agreements of the fleet.
func (s *storm) restoreOften(x *rand.Rand, end time.Time) {
	for {
		pause := chance.Between(x, 30*time.Second, 90*time.Second)
		if time.Now().Add(pause).After(end) {
			return
		}
		time.Sleep(pause)
		s.datastore.restore(x, s.operator.accept)
	}
}

// heal ends all faults, and undoes the commands of operators.
func (s *storm) heal(x *rand.Rand) {
	s.datastore.busy.Lock()
	defer s.datastore.busy.Unlock()
	s.datastore.makeRoom()
	for _, h := range s.hosts.list {
		h.link.Set(link.Open)
		if s.kind.Secure && s.kind.Clocks { // with a clock that is far off the certificate of etcd is out of date
			write(s.t, h.clock(), "0")
		}
	}
	s.operations.calm(x)
}

// stuckAfter is how long the fleet may make no progress after the faults: a lease of minutes may have to end.
const stuckAfter = 4 * time.Minute

// settle heals the fleet, as an operator does who reads the reasons in status, and waits until all hosts have the last
// version and hold no claim. It returns "", or the reason if for some minutes no other host got there: the whole time
// depends on the machine.
func (s *storm) settle() string {
	x := chance.Lane(s.seed, 101)
	s.heal(x)
	s.repository.rules = s.repository.rules.Fix()
	s.repository.push(false)
	s.say("settled")
	best, end := -1, time.Now().Add(stuckAfter)
	for fix := time.Now().Add(20 * time.Second); ; time.Sleep(300 * time.Millisecond) {
		s.hosts.restartEnded()
		done, why := s.unsettled()
		if why == "" {
			return ""
		}
		if done > best {
			best, end = done, time.Now().Add(stuckAfter)
		}
		if time.Now().After(end) {
			out, _ := s.operator.run("status", "-o", "wide")
			return fmt.Sprintf("the fleet has not settled: %s\n%s", why, out)
		}
		if time.Now().After(fix) {
			s.operations.calm(x)
			fix = time.Now().Add(20 * time.Second)
		}
	}
}

// unsettled returns the number of nodes that have the last version, and a reason why the fleet has not settled, or "".
func (s *storm) unsettled() (done int, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	got, err := s.datastore.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, err.Error()
	}
	last, exists := s.repository.tip(), map[string]bool{}
	for _, kv := range got.Kvs {
		key := strings.TrimPrefix(string(kv.Key), prefix)
		for _, held := range []string{"slot/", "total/", "semaphore/"} {
			if strings.HasPrefix(key, held) {
				why = key + " is held"
			}
		}
		if strings.HasPrefix(key, "rollout/"+last) && strings.Contains(key, "/queue/") {
			why = key + " is waiting"
		}
		exists[key] = true
	}
	for _, h := range s.hosts.list {
		running := "running_version/" + last + "/" + h.node
		if exists[running] {
			done++
		}
		for _, key := range []string{running, "status/configured/success/" + h.node, "status/validated/success/" + h.node} {
			if !exists[key] {
				why = key + " is missing"
			}
		}
	}
	return done, why
}

// finish stops everything, and fails the test if the log breaks a promise, a process crashed, or something is
// unsettled.
func (s *storm) finish(unsettled string) {
	s.t.Helper()
	s.datastore.stop()
	for _, h := range s.hosts.list {
		h.down()
	}
	l := s.read()
	v := judge.Judge(l)
	s.t.Logf("done: %s", summary(s.counts))
	s.t.Logf("judged: %s", summary(v.Seen))
	if crashed := crashes(s.t, s.dir); len(v.Breaches) > 0 || unsettled != "" || crashed != "" {
		s.t.Errorf("seed %d\nwhat was done:\n%s\nwhat broke:\n%s%s%s", s.seed, l.Schedule(), v, unsettled, crashed)
	}
	if v.Seen["admissions"] < len(s.hosts.list) || v.Seen["versions left"] == 0 {
		s.t.Error("hardly anything happened: this storm judges nothing")
	}
}
