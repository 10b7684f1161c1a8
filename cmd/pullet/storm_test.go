package main

import (
	"context"
	"crypto/sha256"

	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// storm is a fleet of real processes to which things happen. What they do is judged by the log of their steps:
// storm_log_test.go.
type storm struct {
	t     *testing.T
	dir   string
	seed  uint64
	log   *stormPen
	kind  stormKind
	repos []string // the state repositories

	cluster *cluster
	client  *clientv3.Client // without anything in between
	store   *state.Store
	hosts   []*stormHost
	era     int // how often etcd was restored
	stop    context.CancelFunc
	watched atomic.Int64 // the last revision that the log has
	halted  sync.Map     // gates that halt

	pushing sync.Mutex
	number  int // of the last version
	rules   *stormRules

	etcd   sync.Mutex // held while a fault is done to its members
	mu     sync.Mutex
	counts map[string]int // what was done
}

// stormKind is what a storm is like from its beginning.
type stormKind struct {
	members int
	secure  bool // TLS, users and roles of etcd
	repos   int
	hosts   int
	onLost  string
	last    time.Duration
	pullet  string            // the program
	clocks  bool              // those of hosts jump, for which the program is built anew
	shape   func(*stormRules) // what the rules of all versions have in common; nil is nothing
}

// shapes makes rules of those that were drawn.
func (k stormKind) shapes(r *stormRules) {
	if k.shape != nil {
		k.shape(r)
	}
}

// drawKind draws what a storm is like. Its size is what the machine gives.
func drawKind(x *rand.Rand, last time.Duration) stormKind {
	k := stormKind{members: 1, repos: 1, hosts: min(5+runtime.NumCPU(), 12), onLost: []string{"hold", "release"}[x.IntN(2)], last: last}
	if x.IntN(2) == 0 {
		k.members, k.secure = 3, x.IntN(2) == 0
	}
	if x.IntN(3) == 0 {
		k.repos = 2
	}
	k.clocks = x.IntN(4) == 0
	return k
}

func (k stormKind) String() string {
	return fmt.Sprintf("%d hosts, %d members of etcd (TLS and users: %v), %d repositories, onLost: %s, clocks that jump: %v, for %s",
		k.hosts, k.members, k.secure, k.repos, k.onLost, k.clocks, k.last)
}

// newStorm makes a fleet with its first version, in which nothing runs but etcd.
func newStorm(t *testing.T, seed uint64, kind stormKind) *storm {
	dir, err := os.MkdirTemp("", "pullet-storm-") // not the test's own, which goes with it: it is kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || os.Getenv("PULLET_TEST_KEEP") != "" {
			t.Logf("everything is kept in %s: log, and of each host its directory", dir)
		} else if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &storm{t: t, dir: dir, seed: seed, kind: kind, log: &stormPen{t, filepath.Join(dir, "log")}, repos: []string{"main", "extra"}[:kind.repos], counts: map[string]int{}}
	s.startEtcd()
	roles := []string{"edge", "db", "web"}
	for i := range kind.hosts {
		role := roles[i%3]
		name := fmt.Sprintf("%s%d", role, i/3+1)
		s.hosts = append(s.hosts, s.host(name, name, role, i%4 == 3))
	}
	if os.Geteuid() == 0 {
		if err := s.hosts[len(s.hosts)-1].smallDisk(); err != nil {
			t.Logf("a full disk is left out: %v", err)
		}
	}
	s.write("operator.yaml", s.config("operator", "operator", "none", s.addresses()))
	s.prepare()
	s.rules = firstRules(s.hosts, kind.onLost)
	kind.shapes(s.rules)
	s.push(s.rules, false)
	return s
}

// start starts all hosts.
func (s *storm) start() {
	for _, h := range s.hosts {
		h.up()
		s.t.Cleanup(h.down)
	}
}

func (s *storm) addresses() (out []string) {
	for _, address := range s.cluster.clients {
		out = append(out, s.scheme()+"://"+address)
	}
	return out
}

// did notes a fault, for people and for the summary.
func (s *storm) did(what, format string, args ...any) {
	s.mu.Lock()
	s.counts[what]++
	s.mu.Unlock()
	s.log.say("fault %s: %s", what, fmt.Sprintf(format, args...))
}

// operator runs a command of pullet as a person does, on a host that nothing happens to.
func (s *storm) operator(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, s.kind.pullet, append([]string{"--config", s.dir + "/operator.yaml"}, args...)...).CombinedOutput()
	what := "ok"
	if err != nil {
		what = strings.Join(strings.Fields(string(out)), " ")
	}
	s.log.say("operator %s: %s", strings.Join(args, " "), what)
	return string(out), err
}

// TestStorm takes a fleet through a storm, and judges what its steps wrote. PULLET_TEST_SEED names the storm,
// PULLET_STORM how long it lasts: scripts/storm sets them. A storm that fails prints its seed, what was broken, and
// what was done.
func TestStorm(t *testing.T) {
	last, seed := stormLasts(t), stormSeed(t)
	x := stormRand(seed, 0)
	kind := drawKind(x, last)
	t.Logf("seed %d: %s. The same again: scripts/storm %s %d", seed, kind, last, seed)
	if kind.pullet = "pullet"; kind.clocks {
		kind.pullet = buildPullet(t, t.TempDir(), jumpingClock(t)...)
	}
	s := newStorm(t, seed, kind)
	s.start()
	s.rage()
	unsettled := s.settle()
	s.end(unsettled)
}

// stormRand is chance for one lane of a storm. Seeds that are close to each other have nothing in common.
func stormRand(seed uint64, lane int) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, seed, lane))))
}

// stormLasts is how long the storm was asked to last. Where nobody asked, there is none.
func stormLasts(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PULLET_STORM")
	if text == "" {
		t.Skip("it takes minutes: scripts/storm")
	}
	last, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// stormSeed is the seed that was asked for, or any.
func stormSeed(t *testing.T) uint64 {
	text := os.Getenv("PULLET_TEST_SEED")
	if text == "" {
		return uint64(time.Now().UnixNano())
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// end stops everything, judges, and says what came of it.
func (s *storm) end(unsettled string) {
	s.t.Helper()
	s.stop()
	for _, h := range s.hosts {
		h.down()
	}
	text, err := os.ReadFile(s.log.path)
	if err != nil {
		s.t.Fatal(err)
	}
	l, err := readStorm(string(text))
	if err != nil {
		s.t.Fatal(err)
	}
	j := judgeStorm(l)
	s.t.Logf("done: %s", stormCounts(s.counts))
	s.t.Logf("judged: %s", stormCounts(j.seen))
	if crashed := s.crashes(); len(j.breaches) > 0 || unsettled != "" || crashed != "" {
		s.t.Errorf("seed %d\nwhat was done:\n%s\nwhat broke:\n%s%s%s", s.seed, l.schedule(), j.verdict(), unsettled, crashed)
	}
	if j.seen["admissions"] < len(s.hosts) || j.seen["versions left"] == 0 {
		s.t.Error("hardly anything happened: this storm judges nothing")
	}
}

// crashes are the ends of pullet that Go's runtime reports: nothing that a storm does may cause one.
func (s *storm) crashes() (out string) {
	logs, err := filepath.Glob(filepath.Join(s.dir, "*", "pullet.log"))
	if err != nil {
		s.t.Error(err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			s.t.Error(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") || strings.HasPrefix(line, "WARNING: DATA RACE") {
				out += fmt.Sprintf("%s: %s", log, line)
			}
		}
	}
	return out
}

func stormCounts(counts map[string]int) string {
	var out []string
	for what, n := range counts {
		out = append(out, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// stuckFor is how long the fleet may make no progress once nothing is wrong any more: a lease of minutes may have to
// end.
const stuckFor = 4 * time.Minute

// settle ends what is wrong, as operators do who read what status says, and waits until all nodes are at the last
// version and hold nothing. It says what is left when for some minutes no more nodes got there: how long all of it
// takes is up to the machine.
func (s *storm) settle() string {
	x := stormRand(s.seed, 101)
	s.heal(x)
	s.rules = s.rules.fix()
	s.push(s.rules, false)
	s.log.say("settled")
	best, end := -1, time.Now().Add(stuckFor)
	for fix := time.Now().Add(20 * time.Second); ; time.Sleep(300 * time.Millisecond) {
		s.restartEnded()
		done, why := s.unsettled()
		if why == "" {
			return ""
		}
		if done > best {
			best, end = done, time.Now().Add(stuckFor)
		}
		if time.Now().After(end) {
			out, _ := s.operator("status", "-o", "wide")
			return fmt.Sprintf("the fleet has not settled: %s\n%s", why, out)
		}
		if time.Now().After(fix) {
			s.calm(x)
			fix = time.Now().Add(20 * time.Second)
		}
	}
}

// unsettled says what is left to do in the fleet, and how many nodes are at the last version.
func (s *storm) unsettled() (done int, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	got, err := s.client.Get(ctx, "/pullet/default/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return 0, err.Error()
	}
	last, there := s.tip(), map[string]bool{}
	for _, kv := range got.Kvs {
		key := strings.TrimPrefix(string(kv.Key), "/pullet/default/")
		for _, held := range []string{"slot/", "total/", "semaphore/"} {
			if strings.HasPrefix(key, held) {
				why = key + " is held"
			}
		}
		if strings.HasPrefix(key, "rollout/"+last) && strings.Contains(key, "/queue/") {
			why = key + " is waiting"
		}
		there[key] = true
	}
	for _, h := range s.hosts {
		if there["running_version/"+last+"/"+h.node] {
			done++
		}
		for _, key := range []string{"running_version/" + last + "/" + h.node, "status/configured/success/" + h.node, "status/validated/success/" + h.node} {
			if !there[key] {
				why = "there is no " + key
			}
		}
	}
	return done, why
}

// anyHalted reports a halt in the rollout that goes on.
func (s *storm) anyHalted() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	current, _, err := s.store.Versions.Current(ctx)
	if err != nil || current == nil {
		return false
	}
	found := false
	s.halted.Range(func(key, halted any) bool {
		found = found || halted.(bool) && strings.HasPrefix(key.(string), current.Rollout()+"/")
		return !found
	})
	return found
}
