package main

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// process is a child that can be killed, stopped and started again. It ends with the test, whatever becomes of that.
type process struct {
	name string
	args []string
	env  []string // beside the test's own
	log  string   // file that its outputs are appended to

	mustLive bool // until it is killed: its end is an error

	busy   sync.Mutex // held while a fault is done to it
	cmd    *exec.Cmd
	killed *atomic.Bool
	done   chan struct{} // closed when it ended
}

func (p *process) start(t testing.TB) {
	t.Helper() // and no Fatal: faults start it again beside the test
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Error(err)
		return
	}
	defer out.Close()
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd, killed, done, started := p.cmd, &atomic.Bool{}, make(chan struct{}), make(chan error)
	go func() {
		// The child is killed when the thread ends that started it, as threads of other tests do: this one waits.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		defer close(done)
		if err := cmd.Wait(); p.mustLive && !killed.Load() {
			t.Errorf("%s ended by itself: %v\n%s", p.name, err, p.said())
		}
	}()
	if err := <-started; err != nil {
		t.Error(err)
		return
	}
	p.killed, p.done = killed, done
}

// said is the end of its log.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):])
}

// runs reports that it was started and has not ended.
func (p *process) runs() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the process as kill -9 does: alone, or with all that it started. One that did not start has ended.
func (p *process) kill(whole bool) {
	if p.done == nil {
		return
	}
	p.killed.Store(true)
	p.stop(whole).signal(syscall.SIGKILL)
	<-p.done
}

// noted is a test that notes its errors.
type noted struct {
	testing.TB
	errors []string
}

func (n *noted) Errorf(format string, args ...any) {
	n.errors = append(n.errors, fmt.Sprintf(format, args...))
}

// TestProcessEnds: a process that has to live says so when it ends by itself, with the end of its log; one that is
// killed does not, nor one that may end.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]*process{
		"by itself": {args: []string{"sh", "-c", "echo because; exit 3"}, mustLive: true},
		"killed":    {args: []string{"sleep", "60"}, mustLive: true},
		"may end":   {args: []string{"false"}},
	} {
		p.name, p.log = name, filepath.Join(t.TempDir(), "log")
		test := &noted{TB: t}
		if p.start(test); name == "killed" {
			if !p.runs() {
				t.Error("it does not run")
			}
			p.kill(false)
		}
		<-p.done
		got := strings.Join(test.errors, "\n")
		if want := map[string]string{"by itself": "by itself ended by itself: exit status 3\nbecause\n"}[name]; got != want || p.runs() {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// stop freezes the process, alone or with all that it started, and returns who that is.
func (p *process) stop(whole bool) frozen {
	f := frozen{p.cmd.Process, nil}
	if p.cmd.Process.Signal(syscall.SIGSTOP) != nil || !whole { // it has ended: its number may be another's
		return f
	}
	f.children = children(p.cmd.Process.Pid) // from here on it starts none, and forgets none that ends
	for i := 0; i < len(f.children); i++ {
		_ = syscall.Kill(f.children[i], syscall.SIGSTOP)
		f.children = append(f.children, children(f.children[i])...)
	}
	return f
}

// frozen is a process that was stopped, with what it started.
type frozen struct {
	process  *os.Process
	children []int
}

func (f frozen) signal(s syscall.Signal) {
	for _, pid := range f.children {
		_ = syscall.Kill(pid, s) // it may have ended
	}
	_ = f.process.Signal(s)
}

// children are the processes that a process started and that have not ended.
func children(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, one := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(one); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// etcdMember is the name under which the test binary is a member of an etcd cluster: NAME DIR CLIENT PEER CLUSTER
// QUOTA. An https CLIENT has its certificate in the directory above its own.
const etcdMember = "etcd-member"

func runEtcdMember() {
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = os.Args[1], os.Args[2], os.Args[5]
	client, peer := mustURL(os.Args[3]), mustURL(os.Args[4])
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	if client.Scheme == "https" {
		home := filepath.Dir(c.Dir)
		c.ClientTLSInfo = transport.TLSInfo{CertFile: home + "/cert.pem", KeyFile: home + "/key.pem"}
	}
	var err error
	if c.QuotaBackendBytes, err = strconv.ParseInt(os.Args[6], 10, 64); err != nil {
		panic(err)
	}
	c.LogLevel = "warn"
	c.UnsafeNoFsync = true // a kill leaves what the kernel has
	e, err := embed.StartEtcd(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, <-e.Err())
	os.Exit(1)
}

func mustURL(s string) url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return *u
}

// TestProcessOutlivesThreads: a process lives on when the thread ends of who started it.
func TestProcessOutlivesThreads(t *testing.T) {
	t.Parallel()
	p := &process{name: "sleep", args: []string{"sleep", "60"}, log: filepath.Join(t.TempDir(), "log"), mustLive: true}
	started := make(chan bool)
	go func() {
		defer close(started)
		runtime.LockOSThread() // not unlocked: the thread ends
		p.start(t)
	}()
	<-started
	select {
	case <-p.done:
		t.Error("it ended with the thread")
	case <-time.After(200 * time.Millisecond):
	}
	p.kill(false)
}
