package apply

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/apply/proc"
	"github.com/pullet/pullet/internal/patience"
)

// mustRun runs a shell command and returns what it printed.
func mustRun(t *testing.T, h *Host, c Command) string {
	t.Helper()
	out, err := h.Run(t.Context(), c)
	if err != nil || out.ExitCode != 0 {
		t.Fatalf("%v: %+v", err, out)
	}
	return strings.TrimSpace(out.StdOut)
}

// TestOwnSession: a command leads its session and its process group, and has no terminal.
func TestOwnSession(t *testing.T) {
	h := &Host{Root: "/"}
	got := mustRun(t, h, Command{Args: Shell(`read -r pid name state parent group session tty rest < /proc/$$/stat; echo $pid $group $session $tty`)})
	fields := strings.Fields(got)
	if len(fields) != 4 || fields[0] != fields[1] || fields[0] != fields[2] || fields[3] != "0" {
		t.Errorf("process, group, session and terminal: %s", got)
	}
}

// TestNothingInherited: no file that whoever started the agent left open is open in a command, and it reads nothing.
func TestNothingInherited(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := syscall.Open(secret, syscall.O_RDONLY, 0) // not closed in children, as a shell hands files on
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(left)
	got := mustRun(t, &Host{Root: "/"}, Command{Args: Shell(`ls -l /proc/$$/fd | sed 's/.* \([0-9]*\) ->/\1/'; cat`)})
	if strings.Contains(got, secret) || !regexp.MustCompile(`(?m)^0 /dev/null$`).MatchString(got) {
		t.Errorf("open files:\n%s", got)
	}
}

// TestUserLosesRights: a command of a user has the user's groups alone, and no capabilities.
func TestUserLosesRights(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("becomes another user: needs root")
	}
	if err := syscall.Setgroups([]int{0, 4}); err != nil {
		t.Fatal(err)
	}
	got := mustRun(t, &Host{Root: "/"}, Command{Args: Shell(`id -G; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status`), User: "nobody"})
	groups, rest, _ := strings.Cut(got, "\n")
	if want := mustRun(t, &Host{Root: "/"}, Command{Args: []string{"id", "-G", "nobody"}}); groups != want {
		t.Errorf("groups %s, want %s", groups, want)
	}
	for line := range strings.Lines(rest) {
		if f := strings.Fields(line); strings.Trim(f[1], "0") != "" {
			t.Errorf("capabilities are left: %s", line)
		}
	}
}

// types tries to type into the terminal of whoever runs it: TIOCSTI is 0x5412.
const types = `open(T, "+<", "/dev/tty") or exit 3; ioctl(T, 0x5412, "x") or exit 4; exit 0`

// TestNoTyping: a command of another user cannot type into the terminal from which the agent runs. A kernel with
// dev.tty.legacy_tiocsti=0 refuses the last step for everybody; here the command does not get as far as that on any
// kernel, because it cannot open the terminal.
func TestNoTyping(t *testing.T) {
	if os.Getenv("PULLET_TEST_TYPING") != "" { // on the terminal, as an administrator's pullet
		out, err := (&Host{Root: "/"}).Run(t.Context(), Command{Args: []string{"perl", "-e", types}, User: "nobody"})
		fmt.Println("typing:", out.ExitCode, err)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("becomes another user: needs root")
	}
	terminal := openTerminal(t)
	agent := exec.Command(os.Args[0], "-test.run=^TestNoTyping$", "-test.v")
	agent.Env = append(os.Environ(), "PULLET_TEST_TYPING=1")
	agent.Stdin = terminal
	agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	out, err := agent.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "typing: 3 <nil>\n") {
		t.Errorf("a command can open the terminal (3 is that it cannot): %v\n%s", err, out)
	}
}

// openTerminal makes a terminal and returns the side at which a user sits.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	side, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { side.Close() })
	return side
}

// TestSessionEndsAtATimeout: a process that left the command's group, and whose parent has ended, is still of its
// session, and is ended with it.
func TestSessionEndsAtATimeout(t *testing.T) {
	h := &Host{Root: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	line := `(perl -e 'setpgrp; exec qw(sleep 300)' & echo $! > left.new); mv left.new left; sleep 300`
	ended := make(chan error, 1)
	go func() {
		_, err := h.Run(ctx, Command{Args: Shell(line)})
		ended <- err
	}()
	pid := ""
	patience.Until(t, "the process leaves the group", func() bool {
		data, err := os.ReadFile(h.Root + "/left")
		pid = strings.TrimSpace(string(data))
		return err == nil && pid != ""
	})
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("it was not ended")
	}
	patience.Until(t, "process "+pid+" ends with its command", func() bool { // who adopted it takes a moment to wait for it
		p, ok := proc.Read(pid)
		return !ok || p.Ended()
	})
}
