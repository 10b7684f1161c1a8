package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/render"
)

// serviceHost is a host of the lab, with one of the two ways to its units.
type serviceHost struct {
	*testing.T
	h   *apply.Host
	m   units
	way string // a prefix for names that no other test has used: the journal remembers
}

// onHost runs a test on a host of the lab: once over the bus and once by systemctl.
func onHost(t *testing.T, test func(s serviceHost)) {
	t.Helper()
	if os.Getenv("PULLET_WHOLE_HOST") == "" {
		t.Skip("needs a whole host: the lab's tests run it with PULLET_WHOLE_HOST=1")
	}
	t.Attr("host", "whole") // by which the lab's test counts these
	h := &apply.Host{Root: "/"}
	bus := openUnits(t.Context(), h)
	if _, ok := bus.(*systemBus); !ok {
		t.Fatalf("the way to the units is %T, want the bus", bus)
	}
	for name, m := range map[string]units{"bus": bus, "systemctl": systemctl{h}} {
		t.Run(name, func(t *testing.T) { test(serviceHost{t, h, m, fmt.Sprintf("%s%d", name, time.Now().UnixNano())}) })
	}
}

// units writes unit files, and makes the host forget them when the test ends.
func (s serviceHost) unit(name, text string) {
	s.Helper()
	path := "/etc/systemd/system/" + name
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		stop := name
		if strings.Contains(name, "@.") {
			stop = strings.Replace(name, "@.", "@*.", 1)
		}
		s.sh("systemctl stop '" + stop + "'; systemctl reset-failed '" + stop + "' 2>/dev/null; systemctl disable -q " + name + " 2>/dev/null; rm -f " + path + "; systemctl daemon-reload")
	})
}

func (s serviceHost) sh(line string) string {
	s.Helper()
	out, err := exec.Command("/bin/sh", "-c", line).CombinedOutput()
	if err != nil {
		s.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s serviceHost) bind(a Ensure) *Ensure {
	s.Helper()
	if a.Settle == 0 {
		a.Settle = serviceSettle
	}
	if err := a.Bind(apply.Binding{}); err != nil {
		s.Fatal(err)
	}
	return &a
}

// check is the summary of a change and the state that was found.
func (s serviceHost) check(a *Ensure) apply.Change {
	s.Helper()
	c, err := a.check(s.Context(), s.h, s.m)
	if err != nil {
		s.Fatalf("check: %v", err)
	}
	return c
}

// change expects a summary, applies it, and expects that nothing is left to be done.
func (s serviceHost) change(a *Ensure, want, state string) {
	s.Helper()
	if c := s.check(a); c.Summary != want {
		s.Fatalf("check: %q (%s), want %q", c.Summary, c.State, want)
	}
	out, err := a.apply(s.Context(), s.h, s.m)
	if err != nil || out.State != state {
		s.Fatalf("apply: state %q, %v; want %q", out.State, err, state)
	}
	if a.Unchecked() {
		return
	}
	if c := s.check(a); c.Summary != "" || c.State != state {
		s.Errorf("check after apply: %q, state %q; want none, %q", c.Summary, c.State, state)
	}
}

// fails expects an error in one line that says all of this.
func (s serviceHost) fails(err error, says ...string) {
	s.Helper()
	if err == nil {
		s.Fatalf("no error, want one that says %q", says)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			s.Errorf("%v\nwant %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		s.Errorf("%q has several lines", err)
	}
}

const sleeps = "ExecStart=/usr/bin/sleep 1d\n"

// TestServiceStarts: what is started is in the state that its kind has then, and stays so.
func TestServiceStarts(t *testing.T) {
	for _, c := range []struct{ name, file, text, state string }{
		{"simple", "simple.service", "[Service]\n" + sleeps, "running"},
		{"notify", "notify.service", "[Service]\nType=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'systemd-notify --ready; exec sleep 1d'\n", "running"},
		{"forking", "fork.service", "[Service]\nType=forking\nExecStart=/bin/sh -c 'sleep 1d &'\n", "running"},
		{"oneshot", "once.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n", "dead"},
		{"oneshot that remains", "stays.service", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n", "exited"},
		{"slow", "slow.service", "[Service]\nExecStartPre=/usr/bin/sleep 3\n" + sleeps, "running"},
		{"instance", "app@.service", "[Service]\nExecStart=/bin/sh -c '[ %i = one ] && exec sleep 1d'\n", "running"},
		{"timer", "simple.timer", "[Timer]\nOnActiveSec=1d\nUnit=p-tick.service\n", "waiting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onHost(t, func(s serviceHost) {
				s.unit("p-tick.service", "[Service]\n"+sleeps)
				file := s.way + "-" + c.file
				s.unit(file, c.text)
				name := strings.Replace(file, "@.", "@one.", 1)
				s.change(s.bind(Ensure{Name: name, State: render.Strings{"started"}}), "start", c.state)
				stop := s.bind(Ensure{Name: name, State: render.Strings{"stopped"}})
				if c.state == "dead" {
					return
				}
				s.change(stop, "stop", "dead")
			})
		})
	}
}

// TestServiceSocket: a socket listens, and its service starts with the first connection.
func TestServiceSocket(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.unit("p-sock.service", "[Service]\n"+sleeps)
		s.unit("p-sock.socket", "[Socket]\nListenStream=/run/p-sock\n[Install]\nWantedBy=sockets.target\n")
		s.change(s.bind(Ensure{Name: "p-sock.socket", State: render.Strings{"started", "enabled"}}), "enable (sockets.target), start", "listening")
		s.change(s.bind(Ensure{Name: "p-sock.socket", State: render.Strings{"stopped", "disabled"}}), "disable (sockets.target), stop", "dead")
	})
}

// TestServiceFails: the error says how it went, quotes the journal, and names a command.
func TestServiceFails(t *testing.T) {
	for i, c := range []struct {
		name, text string
		says       []string
	}{
		{"exits at once", "ExecStart=/bin/sh -c 'echo no such thing >&2; exit 3'\n", []string{
			"BAD started and did not stay up: it is failed (failed), exit-code, exit status 3; its journal: ", "no such thing", "; see systemctl status BAD"}},
		{"exits well", "ExecStart=/bin/true\n", []string{"started and did not stay up: it is inactive (dead)"}},
		{"exits within the settle time", "ExecStart=/bin/sh -c 'sleep 0.6; exit 4'\n", []string{"started and did not stay up", "exit status 4"}},
		{"is restarted for ever", "Restart=always\nRestartSec=50ms\nStartLimitBurst=1000\nExecStart=/bin/sh -c 'exit 5'\n", []string{"started and did not stay up"}},
		{"is killed", "ExecStart=/bin/sh -c 'kill -9 $$$$'\n", []string{"signal 9 (killed)"}},
		{"no such program", "ExecStart=/nowhere\n", []string{"BAD ", "203"}},
		{"its preparation fails", "ExecStartPre=/bin/sh -c 'echo not ready; exit 6'\n" + sleeps, []string{
			"BAD did not start: it is failed (failed), exit-code; its journal: ", "not ready"}},
		{"is never ready", "Type=notify\nTimeoutStartSec=500ms\n" + sleeps, []string{"BAD did not start: it is failed (failed), timeout"}},
		{"oneshot", "Type=oneshot\nExecStart=/bin/sh -c 'exit 7'\n", []string{"did not start", "exit status 7"}},
		{"a condition", sleeps + "[Unit]\nConditionPathExists=/nowhere\n", []string{"BAD started and did not stay up: it is inactive (dead); its journal: ", "unmet condition check (ConditionPathExists=/nowhere)"}},
		{"a condition of a oneshot", "Type=oneshot\nExecStart=/bin/true\n[Unit]\nConditionPathExists=/nowhere\n", []string{"BAD did not start: ", "unmet condition check"}},
		{"an assertion", sleeps + "[Unit]\nAssertPathExists=/nowhere\n", []string{"an Assert of its unit does not hold"}},
		{"what it requires", sleeps + "[Unit]\nRequires=p-needed.service\nAfter=p-needed.service\n", []string{
			"a unit that it requires failed; systemctl list-dependencies BAD shows which"}},
		{"its file is wrong", "Type=simple\n", []string{"start BAD: ", "bad"}},
		{"not by hand", sleeps + "[Unit]\nRefuseManualStart=yes\n", []string{"start BAD: ", "requested by dependency only"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			onHost(t, func(s serviceHost) {
				s.unit("p-needed.service", "[Service]\nType=oneshot\nExecStart=/bin/false\n")
				name := fmt.Sprintf("%s-bad%d.service", s.way, i)
				s.unit(name, "[Service]\n"+c.text)
				a := s.bind(Ensure{Name: name, State: render.Strings{"started"}})
				if found := s.check(a); found.Summary != "start" {
					s.Fatalf("check: %q", found.Summary)
				}
				_, err := a.apply(s.Context(), s.h, s.m)
				for _, want := range c.says {
					s.fails(err, strings.ReplaceAll(want, "BAD", name))
				}
			})
		})
	}
}

// TestServiceTimeout: the step does not wait longer than it says, nor longer than its run.
func TestServiceTimeout(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.unit("p-slow.service", "[Service]\nExecStartPre=/usr/bin/sleep 30\n"+sleeps)
		a := s.bind(Ensure{Name: "p-slow", State: render.Strings{"started"}, Timeout: render.Duration(300 * time.Millisecond)})
		_, err := a.apply(s.Context(), s.h, s.m)
		s.fails(err, "p-slow.service did not start within 300ms: it is activating (start-pre), and systemd goes on with it", "; see systemctl status p-slow.service")
		ctx, cancel := context.WithCancel(s.Context())
		time.AfterFunc(300*time.Millisecond, cancel)
		began := time.Now()
		_, err = s.bind(Ensure{Name: "p-slow", State: render.Strings{"started"}}).apply(ctx, s.h, s.m)
		s.fails(err, "start p-slow.service: the run was stopped; systemd goes on")
		if took := time.Since(began); took > patience.Stretch(2*time.Second) {
			s.Errorf("it took %s", took)
		}
	})
}

// TestServiceReacts: what is watched restarts or reloads what runs, and starts nothing that is not wanted.
func TestServiceReacts(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.unit("p-web.service", "[Service]\nExecReload=/bin/sh -c 'echo reloaded >>/run/p-web'\n"+sleeps)
		pid := func() string { return s.sh("systemctl show -P MainPID p-web") }
		react := func(a Ensure, same bool, state string) {
			s.Helper()
			out, err := s.bind(a).react(s.Context(), s.h, s.m)
			if err != nil || out.Same != same || out.State != state {
				s.Errorf("react: same %t, state %q, %v; want %t, %q", out.Same, out.State, err, same, state)
			}
		}
		react(Ensure{Name: "p-web", State: render.Strings{"stopped"}}, true, "dead")
		react(Ensure{Name: "p-web", State: render.Strings{"disabled"}}, true, "dead")
		started := Ensure{Name: "p-web", State: render.Strings{"started"}}
		s.change(s.bind(started), "start", "running")
		first := pid()
		react(started, false, "running")
		second := pid()
		if first == second {
			s.Error("it was not restarted")
		}
		s.sh("rm -f /run/p-web")
		reload := started
		reload.Reload = true
		react(reload, false, "running")
		if said := s.sh("cat /run/p-web"); said != "reloaded" || pid() != second {
			s.Errorf("it was not reloaded: %q, %s -> %s", said, second, pid())
		}
		s.sh("sed -i 's/reloaded/failed; exit 9/' /etc/systemd/system/p-web.service")
		_, err := s.bind(reload).react(s.Context(), s.h, s.m)
		s.fails(err, "p-web.service did not reload: it is active (running)", "; see systemctl status")
		s.sh("sed -i '/Reload/d' /etc/systemd/system/p-web.service")
		_, err = s.bind(reload).react(s.Context(), s.h, s.m)
		s.fails(err, "p-web.service cannot reload: its unit has no ExecReload=")
	})
}

// TestServiceRestarted: these states are done whenever they are applied, and start what does not run.
func TestServiceRestarted(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.unit("p-web.service", "[Service]\nExecReload=/bin/true\n"+sleeps)
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"reloaded"}}), "reload", "running")
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"reloaded"}}), "reload", "running")
		first := s.sh("systemctl show -P MainPID p-web")
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"restarted"}}), "restart", "running")
		if s.sh("systemctl show -P MainPID p-web") == first {
			s.Error("it was not restarted")
		}
	})
}

// TestServiceReadsFilesAnew: a changed unit file, a drop-in and a new unit count from the next start on, without a word
// in the job.
func TestServiceReadsFilesAnew(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.unit("p-web.service", "[Service]\n"+sleeps)
		started := s.bind(Ensure{Name: "p-web", State: render.Strings{"started"}})
		s.change(started, "start", "running")
		s.unit("p-web.service", "[Service]\nExecStart=/usr/bin/sleep 2d\n")
		if _, err := started.react(s.Context(), s.h, s.m); err != nil {
			s.Fatal(err)
		}
		if line := s.sh("tr '\\0' ' ' </proc/$(systemctl show -P MainPID p-web)/cmdline"); line != "/usr/bin/sleep 2d" {
			s.Errorf("it runs %q", line)
		}
		// systemd knows of no directory that was not there when it read its files, and says that the unit is up to
		// date.
		s.sh("mkdir /etc/systemd/system/p-web.service.d; printf '[Service]\nEnvironment=DROPPED=in\n' >/etc/systemd/system/p-web.service.d/a.conf")
		s.Cleanup(func() { s.sh("rm -r /etc/systemd/system/p-web.service.d; systemctl daemon-reload") })
		if _, err := started.react(s.Context(), s.h, s.m); err != nil {
			s.Fatal(err)
		}
		s.sh("tr '\\0' '\\n' </proc/$(systemctl show -P MainPID p-web)/environ | grep -x DROPPED=in")
	})
}

// TestServiceEnabled: what is in the files counts, also when they were changed by hand.
func TestServiceEnabled(t *testing.T) {
	const link = "/etc/systemd/system/multi-user.target.wants/p-web.service"
	onHost(t, func(s serviceHost) {
		s.unit("p-web.service", "[Service]\n"+sleeps+"[Install]\nWantedBy=multi-user.target\n")
		on, off := s.bind(Ensure{Name: "p-web", State: render.Strings{"enabled"}}), s.bind(Ensure{Name: "p-web", State: render.Strings{"disabled"}})
		s.change(on, "enable (multi-user.target)", "dead")
		s.sh("test -L " + link + " && rm " + link)
		s.change(on, "enable (multi-user.target)", "dead")
		if wants := s.sh("systemctl show -P Wants multi-user.target"); !strings.Contains(wants, "p-web.service") {
			s.Errorf("systemd does not know it: %s", wants)
		}
		s.change(off, "disable (multi-user.target)", "dead")
		s.sh("systemctl enable -q --runtime p-web")
		s.change(on, "enable (multi-user.target)", "dead")
		s.change(off, "disable (multi-user.target)", "dead")
		if c := s.check(off); c.Summary != "" {
			s.Errorf("enabled until the next boot: %q", c.Summary)
		}
	})
}

// TestServiceMasked: a mask is named, and can be taken away and given.
func TestServiceMasked(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.sh("mkdir -p /usr/local/lib/systemd/system; printf '[Service]\nExecStart=/usr/bin/sleep 1d\n' >/usr/local/lib/systemd/system/p-web.service; systemctl daemon-reload")
		s.Cleanup(func() {
			s.sh("systemctl unmask -q p-web; systemctl unmask -q --runtime p-web; systemctl stop p-web; rm /usr/local/lib/systemd/system/p-web.service; systemctl daemon-reload")
		})
		started := s.bind(Ensure{Name: "p-web", State: render.Strings{"started"}})
		s.change(started, "start", "running")
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"stopped", "masked"}}), "stop, mask", "dead")
		_, err := started.check(s.Context(), s.h, s.m)
		s.fails(err, "p-web.service is masked by /etc/systemd/system/p-web.service -> /dev/null and cannot be started: add masked: false")
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"unmasked", "started"}}), "unmask, start", "running")
		s.sh("systemctl stop p-web; systemctl mask -q --runtime p-web")
		_, err = started.check(s.Context(), s.h, s.m)
		s.fails(err, "masked by /run/systemd/system/p-web.service -> /dev/null")
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"unmasked"}}), "unmask", "dead")
	})
}

// TestServiceUnknown: a plan does not need the unit, a run does.
func TestServiceUnknown(t *testing.T) {
	onHost(t, func(s serviceHost) {
		a := s.bind(Ensure{Name: "systemd-journalt", State: render.Strings{"started", "enabled"}})
		if c := s.check(a); c.Summary != "enable, start" || c.State != "not-found" {
			s.Errorf("check: %q, %q", c.Summary, c.State)
		}
		_, err := a.apply(s.Context(), s.h, s.m)
		s.fails(err, `there is no unit systemd-journalt.service on this host (did you mean "systemd-journald"?)`)
		if c := s.check(s.bind(Ensure{Name: "p-none", State: render.Strings{"stopped", "disabled"}})); c.Summary != "" {
			s.Errorf("what is not there is to be: %q", c.Summary)
		}
	})
}

// TestServiceOfSysV: a script of SysV is started by systemd and enabled by its own links.
func TestServiceOfSysV(t *testing.T) {
	onHost(t, func(s serviceHost) {
		const script = "#!/bin/sh\n### BEGIN INIT INFO\n# Provides: p-old\n# Default-Start: 2 3 4 5\n# Default-Stop: 0 1 6\n### END INIT INFO\n" +
			"case $1 in start) sleep 1d >/dev/null 2>&1 & ;; esac\n"
		if err := os.WriteFile("/etc/init.d/p-old", []byte(script), 0o755); err != nil {
			s.Fatal(err)
		}
		s.Cleanup(func() {
			s.sh("systemctl stop p-old; rm /etc/init.d/p-old; update-rc.d p-old remove; systemctl daemon-reload")
		})
		s.change(s.bind(Ensure{Name: "p-old", State: render.Strings{"started", "enabled"}}), "enable, start", "running")
		s.change(s.bind(Ensure{Name: "p-old", State: render.Strings{"stopped", "disabled"}}), "disable, stop", "dead")
	})
}

// TestServiceAfterManyFailures: a service that failed too often for systemd starts once its cause is gone.
func TestServiceAfterManyFailures(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.sh("rm -f /run/p-cause")
		s.unit("p-web.service", "[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=2\n[Service]\nExecStartPre=/usr/bin/test -e /run/p-cause\n"+sleeps)
		s.sh("systemctl daemon-reload; for i in 1 2 3; do systemctl start p-web; done; touch /run/p-cause; ! systemctl start p-web")
		s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"started"}}), "start", "running")
	})
}

// TestServiceConnection: a bus that goes away is connected anew.
func TestServiceConnection(t *testing.T) {
	onHost(t, func(s serviceHost) {
		s.unit("p-slow.service", "[Service]\nExecStartPre=/usr/bin/sleep 3\n"+sleeps)
		done := make(chan error, 1)
		a := s.bind(Ensure{Name: "p-slow", State: render.Strings{"started"}})
		go func() {
			_, err := a.apply(s.Context(), s.h, s.m)
			done <- err
		}()
		for s.sh("systemctl show -P ActiveState p-slow") != "activating" {
			if s.Context().Err() != nil || len(done) > 0 {
				s.Fatalf("it is not starting: %v", <-done)
			}
		}
		s.sh("systemctl daemon-reexec")
		err := <-done
		if _, bus := s.m.(*systemBus); bus && err != nil {
			s.Errorf("systemd started itself anew during the job: %v", err)
		}
		if c := s.check(a); c.Summary != "" && err == nil {
			s.Errorf("check: %q", c.Summary)
		}
	})
}

// again runs a test of this program in another way: as the environment variable tells it.
func again(t *testing.T, variable string) apply.Command {
	t.Helper()
	return apply.Command{Args: []string{"/proc/self/exe", "-test.run=^" + t.Name() + "$"}, Env: map[string]string{variable: "1", "PULLET_WHOLE_HOST": "1"}}
}

// TestServiceNotPermitted: a user who may not start services is told so.
func TestServiceNotPermitted(t *testing.T) {
	if os.Getenv("PULLET_AS_NOBODY") == "" {
		onHost(t, func(s serviceHost) {
			s.unit("p-web.service", "[Service]\n"+sleeps)
			s.sh("systemctl daemon-reload")
			command := again(t, "PULLET_AS_NOBODY")
			command.User = "nobody"
			if out, err := s.h.Run(s.Context(), command); err != nil || out.ExitCode != 0 {
				s.Errorf("%v %s %s", err, out.StdOut, out.StdErr)
			}
		})
		return
	}
	h := &apply.Host{Root: "/"}
	for _, m := range []units{openUnits(t.Context(), h), systemctl{h}} {
		if result, err := m.job(t.Context(), "start", "p-web.service"); !errors.Is(err, errNotPermitted) {
			t.Errorf("%T: %q, %v", m, result, err)
		}
	}
}

// TestServiceInAChroot: from a chroot the services of the host around it are not touched, though its bus can be
// reached.
func TestServiceInAChroot(t *testing.T) {
	if os.Getenv("PULLET_IN_CHROOT") != "" {
		insideChroot(t)
		return
	}
	onHost(t, func(s serviceHost) {
		s.unit("p-web.service", "[Service]\n"+sleeps+"[Install]\nWantedBy=multi-user.target\n")
		dir := s.TempDir()
		s.sh("cd " + dir + " && mkdir -p etc/systemd/system && cp /etc/systemd/system/p-web.service etc/systemd/system/ && " +
			"for d in usr run proc dev; do mkdir $d && mount --rbind --make-rslave /$d $d; done && for d in bin lib lib64; do ln -s usr/$d; done")
		s.Cleanup(func() { s.sh("for d in usr run proc dev; do umount -l " + dir + "/$d; done") })
		inside := &apply.Host{Root: dir}
		command := again(t, "PULLET_IN_CHROOT")
		command.Chroot = true
		if out, err := inside.Run(s.Context(), command); err != nil || out.ExitCode != 0 {
			s.Errorf("%v %s %s", err, out.StdOut, out.StdErr)
		}
		if state := s.sh("systemctl is-active p-web; systemctl is-enabled p-web; true"); state != "inactive\ndisabled" {
			s.Errorf("the host's own service: %s", state)
		}
		s.sh("test -L " + dir + "/etc/systemd/system/multi-user.target.wants/p-web.service")
	})
}

// insideChroot enables a service there, and fails to start it.
func insideChroot(t *testing.T) {
	t.Helper()
	h := &apply.Host{Root: "/"}
	s := serviceHost{T: t, h: h, m: openUnits(t.Context(), h)}
	s.change(s.bind(Ensure{Name: "p-web", State: render.Strings{"enabled", "stopped"}}), "enable (multi-user.target)", "enabled")
	started := s.bind(Ensure{Name: "p-web", State: render.Strings{"started"}})
	if c := s.check(started); c.Summary != "start" {
		t.Errorf("check: %q", c.Summary)
	}
	_, err := started.apply(t.Context(), h, s.m)
	s.fails(err, "start p-web.service: systemd does not run here (a container or a chroot?)")
}
