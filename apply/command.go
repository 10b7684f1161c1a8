package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pullet/pullet/apply/proc"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// maxCommandOutput is how much of each of a command's two outputs is kept.
const maxCommandOutput = 1 << 20

// killGrace is how long a command has to end after its process group got the signal to.
const killGrace = 5 * time.Second

// Command is a program to run on a host.
type Command struct {
	Args []string // the program and its arguments
	Dir  string   // default: the host's root
	Env  map[string]string
	User string // default: the agent's own
	// Chroot makes a command of the host's own system, such as its package manager, see the host's root as /.
	Chroot bool
	Stdin  string // what it reads; a secret goes here and never among Args, where ps shows it
	Quiet  bool   // what it prints is for the action alone: it is not shown while it runs
	// Theirs is the kind of a command that the state repository wrote, such as "unless". It is empty for programs of the
	// host that an action uses.
	Theirs string
}

// Shell is the command line of /bin/sh.
func Shell(line string) []string { return []string{"/bin/sh", "-c", line} }

// Run runs a command to its end, in a session of its own: see process. When ctx ends, the whole session, and those of
// its children that left it, are asked to stop and then killed. A command that ran and failed is no error of Run: the
// exit code tells.
func (h *Host) Run(ctx context.Context, c Command) (Output, error) {
	if err := h.MayRun(c.Theirs); c.Theirs != "" && err != nil {
		return Output{}, err
	}
	who, err := credential(c.User)
	if err != nil {
		return Output{}, err
	}
	p := process{args: c.Args[1:], dir: c.Dir, env: h.environment(who.home, c.Env), stdin: c.Stdin, user: who.cred}
	if p.dir == "" {
		p.dir = h.Root
	}
	if c.Chroot && !h.IsMachine() {
		p.inside, p.dir = h.Root, "/"
	}
	if p.program, err = p.find(c.Args[0]); err != nil {
		return Output{}, err
	}
	var out, errs tail
	var shown func()
	p.out, p.errs, shown = h.show(ctx, c, &out, &errs)
	defer shown()
	mark, started := h.noteStart()
	p.env = append(p.env, markVariable+"="+mark)
	cmd, err := p.start()
	if err != nil {
		started()
		return Output{}, fmt.Errorf("cannot start %s: %w", c.Args[0], err)
	}
	forget := h.recordProcess(cmd.Process.Pid)
	started()
	ended := h.runs(cmd.Process.Pid)
	over := h.bounds(ctx, killGrace)
	itself, err := waitGroup(ctx, cmd, over)
	over()
	ended()
	forget()
	output := Output{
		ExitCode: cmd.ProcessState.ExitCode(),
		StdOut:   out.String(),
		StdErr:   errs.String(),
		Killed:   killedBy(cmd.ProcessState),
	}
	var exit *exec.ExitError
	switch {
	case itself:
		return output, errItself
	case ctx.Err() != nil:
		return output, fmt.Errorf("%w; it was ended with its children", stopCause(ctx))
	case err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay):
		return output, nil
	}
	return output, err
}

// killedBy reports that a command, or the last one of a shell, ended by SIGKILL.
func killedBy(ended *os.ProcessState) bool {
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok &&
		(status.Signaled() && status.Signal() == syscall.SIGKILL || status.ExitStatus() == 128+int(syscall.SIGKILL))
}

// NoProgramError says that a program is not there.
type NoProgramError struct{ name, path string }

func (e *NoProgramError) Error() string {
	return fmt.Sprintf("cannot start %s: there is no such program on this host (PATH is %s)", e.name, e.path)
}

// waitGroup waits for the command, and ends it with all that came of it when ctx ends first. It calls killed when it
// can do no more: a process that hangs in a system call ends later, or never. Itself says that the command was waiting
// for pullet to end.
func waitGroup(ctx context.Context, cmd *exec.Cmd, killed func()) (itself bool, err error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return false, err
	case <-ctx.Done():
	}
	itself = stopsPullet(cmd.Process.Pid)
	all := proc.TreeOf(cmd.Process.Pid)
	all.Signal(syscall.SIGTERM)
	select {
	case err := <-done:
		all.Signal(syscall.SIGKILL)
		return itself, err
	case <-time.After(killGrace):
		all.Signal(syscall.SIGKILL)
		killed()
		return itself, <-done
	}
}

// RunOK runs a command that has to succeed.
func (h *Host) RunOK(ctx context.Context, args ...string) error {
	out, err := h.Run(ctx, Command{Args: args})
	switch {
	case err != nil:
		return err
	case out.ExitCode != 0:
		return fmt.Errorf("%s: %s", strings.Join(args, " "), out.Failure())
	}
	return nil
}

// WhyEnded is why a context ended, in words.
func WhyEnded(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return errors.New("timed out")
	}
	return cause
}

// stopCause says why ctx ended in words for a report.
func stopCause(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errors.New("timed out")
	}
	return errStopped
}

// identity is the user that a command runs as, with the home directory that it sees.
type identity struct {
	cred *syscall.Credential // nil: the agent's own
	home string
}

// credential looks a user of this machine up, with all of its groups.
func credential(name string) (identity, error) {
	if name == "" {
		return identity{home: "/root"}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return identity{}, fmt.Errorf("user %q: %w", name, err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return identity{}, fmt.Errorf("groups of user %q: %w", name, err)
	}
	cred := &syscall.Credential{}
	for i, text := range append([]string{u.Uid, u.Gid}, groups...) {
		id, err := strconv.ParseUint(text, 10, 32)
		switch {
		case err != nil:
			return identity{}, fmt.Errorf("user %q: %w", name, err)
		case i == 0:
			cred.Uid = uint32(id)
		case i == 1:
			cred.Gid = uint32(id)
		default:
			cred.Groups = append(cred.Groups, uint32(id))
		}
	}
	return identity{cred, u.HomeDir}, nil
}

// tail keeps the last part of what is written to it.
type tail struct {
	buf     bytes.Buffer
	dropped int
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if over := t.buf.Len() - maxCommandOutput; over > maxCommandOutput {
		t.dropped += over
		t.buf.Next(over)
	}
	return len(p), nil
}

// String is what was kept, with a word about what was not.
func (t *tail) String() string {
	over := max(0, t.buf.Len()-maxCommandOutput)
	kept := string(t.buf.Bytes()[over:])
	if t.dropped+over > 0 {
		return fmt.Sprintf("[%d bytes left out]\n%s", t.dropped+over, kept)
	}
	return kept
}

var leftOut = lazyregexp.New(`^\[\d+ bytes left out\]\n`)

// Truncated reports that a command printed more than is kept.
func (o Output) Truncated() bool { return leftOut.MatchString(o.StdOut) }

// Failure is the exit code of a command that failed, and the end of what it wrote where it wrote anything.
func (o Output) Failure() string {
	text := fmt.Sprintf("exit code %d", o.ExitCode)
	if said := LastLines(o); said != "" {
		text += ": " + said
	}
	return text
}

// LastLines is the end of a command's output in one line, for a message.
func LastLines(out Output) string {
	text := strings.TrimSpace(out.StdErr)
	if text == "" {
		text = strings.TrimSpace(out.StdOut)
	}
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-3):]
	for i, line := range lines {
		lines[i] = strings.TrimSpace(
			line,
		) // of programs for terminals, such as sshd, lines end with a carriage return too
	}
	return strings.Join(lines, " | ")
}
