package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/lock"
	"github.com/pullet/pullet/state"
)

// manager is systemd as a service sees it: the socket to which it sends.
type manager struct {
	t *testing.T
	*net.UnixConn
}

func newManager(t *testing.T, watchdog string) *manager {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdog)
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	return &manager{t, conn}
}

// hears expects the next message.
func (m *manager) hears(when, pattern string) {
	m.t.Helper()
	buf := make([]byte, 4096)
	if err := m.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		m.t.Fatal(err)
	}
	n, err := m.Read(buf)
	if err != nil {
		m.t.Fatalf("%s: %v", when, err)
	}
	if got := string(buf[:n]); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
		m.t.Errorf("%s: systemd hears\n%s\nwant\n%s", when, got, pattern)
	}
}

// TestUnit: systemd hears that the agent is up with the first phase of the first pull, what it is at, by when it is
// heard of again, and how a pull ended; a reload ends with the first phase behind it.
func TestUnit(t *testing.T) {
	m := newManager(t, "5000000")
	u := newUnit()
	seen := 0
	o := u.watches(agent.Observer{
		Waiting: func(*lock.Wait) { seen++ }, Begin: func(apply.Begun) { seen++ }, Pulled: func(*agent.Outcome, error) { seen++ },
	})
	o.AtWork(20 * time.Second)
	m.hears("the start", "WATCHDOG_USEC=25000000")
	o.Phase(agent.PhaseJoin)
	m.hears("the first phase", "READY=1\nSTATUS=reading the fleet's record")
	o.Phase(agent.PhaseWait)
	m.hears("the next phase", "STATUS=waiting for its turn")
	turn := &lock.Wait{Gate: "slot web (1 at a time)", Reason: "web2 holds it\nMAINPID=1", Remedy: state.Act("look")}
	o.Waiting(turn)
	m.hears("a wait", `STATUS=waiting for slot web \(1 at a time\): web2 holds it.MAINPID=1`)
	o.Phase(agent.PhaseApply)
	m.hears("another phase", "STATUS=applying the version")
	o.Phase(agent.PhaseWait)
	m.hears("the same wait again", `STATUS=waiting for slot web .*`)
	o.Begin(apply.Begun{Title: "site/motd", Doing: "replace /etc/motd", Number: 3, Total: 12})
	m.hears("a step", "STATUS=step 3 of 12: site/motd")
	o.Pulled(&agent.Outcome{Version: &state.Version{ID: "0123456789abcdef", Release: "v1.2"}}, nil)
	m.hears("the end of a pull", "STATUS=up to date at v1.2")
	o.Rests(time.Now().Add(5 * time.Minute))
	m.hears("a pause", `STATUS=up to date at v1.2 since \d\d:\d\d, next pull \d\d:\d\d`)
	u.reloads()
	m.hears("a reload", `RELOADING=1\nMONOTONIC_USEC=\d+\nSTATUS=reading the configuration`)
	o.Phase(agent.PhaseJoin)
	m.hears("its end", "READY=1\nSTATUS=reading the fleet's record")
	o.Phase(agent.PhaseWait)
	m.hears("another pull", "STATUS=waiting for its turn")
	u.stops(5 * time.Minute)
	m.hears("a stop", "STOPPING=1\nSTATUS=ending\nEXTEND_TIMEOUT_USEC=360000000")
	if seen != 3 {
		t.Errorf("the other observer saw %d of 3", seen)
	}
	if os.Getenv("NOTIFY_SOCKET") == "" || os.Getenv("WATCHDOG_USEC") == "" {
		t.Error("the program that takes the place of this one would not know of systemd")
	}
}

// TestUnitOfAPullElsewhere: an agent that cannot begin with a pull, because another one is at work, is up.
func TestUnitOfAPullElsewhere(t *testing.T) {
	m := newManager(t, "")
	u := newUnit()
	o := u.watches(agent.Observer{Pulled: func(*agent.Outcome, error) {}})
	if o.AtWork != nil {
		t.Error("systemd does not watch, and is told by when it hears of the agent")
	}
	o.Pulled(&agent.Outcome{}, &state.LockedError{})
	m.hears("a pull that could not be made", "READY=1\nSTATUS=the pull could not be made")
}

// TestUnitWithoutSystemd: nobody is told, and nothing fails. A socket that is gone is logged once.
func TestUnitWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	newUnit().says("anything")
	m := newManager(t, "1000000")
	m.Close()
	os.Remove(os.Getenv("NOTIFY_SOCKET"))
	var log strings.Builder
	u := newUnit()
	u.log = (&app{err: &log}).logger()
	u.says("anything")
	u.says("anything else")
	if n := strings.Count(log.String(), "systemd does not learn how the agent is"); n != 1 {
		t.Errorf("%d lines: %s", n, log.String())
	}
}

// TestUnitStatus: what came of a pull, in words that any user of the host may read.
func TestUnitStatus(t *testing.T) {
	v := &state.Version{ID: "0123456789abcdef"}
	report := func(o apply.Outcome) *apply.Report {
		return &apply.Report{Version: v.ID, Release: "v1.2", Counts: map[apply.Outcome]int{o: 1}}
	}
	secret := errors.New("hunter2")
	for _, c := range []struct {
		out  agent.Outcome
		err  error
		want string
	}{
		{agent.Outcome{Version: v, Report: report(apply.OK)}, nil, "up to date at 01234567"},
		{agent.Outcome{Version: v, Report: report(apply.Failed)}, nil, "failed at v1.2"},
		{agent.Outcome{Version: v, Report: report(apply.Pending)}, nil, "not finished with 01234567"},
		{agent.Outcome{Version: v, Failures: []error{secret}}, nil, "failed"},
		{agent.Outcome{Version: v, Refused: []error{secret}}, nil, "refused what its repositories or the fleet offer"},
		{agent.Outcome{Version: v, Wait: &lock.Wait{Gate: "role web", Reason: "held by web2"}}, nil, "waiting for role web: held by web2"},
		{agent.Outcome{Version: v, Wait: &lock.Wait{Kind: state.WaitCondition, Gate: "condition when of a/b", Reason: "hunter2"}}, nil, "waiting for condition when of a/b"},
		{agent.Outcome{}, nil, "without a version"},
		{agent.Outcome{}, secret, "the pull could not be made"},
	} {
		if got := cameOf(&c.out, c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
