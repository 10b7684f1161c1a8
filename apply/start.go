package apply

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is a program that is about to run, and what it may have.
type process struct {
	program string
	args    []string // behind its name
	dir     string
	env     []string
	inside  string // the directory that it sees as /; "" is the host's own
	stdin   string
	out     io.Writer
	errs    io.Writer
	user    *syscall.Credential // nil: the agent's own
}

// start starts a program. It is the one place of the agent that does; a test over the source holds the others to it.
//
// The program leads a session of its own, without a controlling terminal: as another user it could otherwise type into
// the terminal of the administrator who runs pullet (TIOCSTI). It inherits no open file but its own three; stdin is
// /dev/null unless something is given. A program with a user has the groups of that user and no others, and the kernel
// takes all capabilities from it. It may gain privileges again through sudo: no_new_privs would forbid that, and
// package scripts and steps use it.
func (p process) start() (*exec.Cmd, error) {
	if err := closeInherited(); err != nil {
		return nil, err
	}
	cmd := exec.Command(p.program, p.args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.dir, p.env, p.out, p.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: p.user, Chroot: p.inside}
	if p.stdin != "" {
		cmd.Stdin = strings.NewReader(p.stdin)
	}
	cmd.WaitDelay = killGrace
	return cmd, cmd.Start()
}

// firstInherited is the first descriptor behind stdin, stdout and stderr.
const firstInherited = 3

// closeInherited keeps programs from getting files that whoever started pullet left open. Those that pullet opens are
// closed in programs anyway.
func closeInherited() error {
	err := unix.CloseRange(firstInherited, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	open, err := os.ReadDir("/proc/self/fd") // Linux before 5.11
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstInherited {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// find is where a program lies by the PATH of its own environment, which need not be the agent's.
func (p process) find(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var path string
	for _, e := range p.env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		at := filepath.Join(dir, name)
		info, err := os.Stat(p.inside + at)
		if filepath.IsAbs(at) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return at, nil
		}
	}
	return "", &NoProgramError{name, path}
}
