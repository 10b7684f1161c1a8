package gitremote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The child is this binary with one argument, childCommand. What it has:
//
//	0       the task, in JSON
//	1       its answer, in JSON
//	2       what the Go runtime says when it dies
//	3       a pack, or the directory of a repository, for reading
//	4       a pipe for what it makes: an index or a pack
//
// It limits itself before it reads anything but the task (limitSelf). The rest
// takes rights that this process must have: started as root, it runs as the
// user pullet-git, or nobody where there is none, or as the owner of the
// repository that it reads, without capabilities and with network, processes
// and shared memory of its own, which are none.
const childCommand = "git-child"

const childUser = "pullet-git"

// nobody is the user for those who own nothing, on every distribution.
const nobody = 65534

type task struct {
	Do     string // taskIndex, taskPack, taskPeel, taskNothing
	Limits Limits
	Wants  []string `json:",omitempty"`
	Haves  []string `json:",omitempty"`
}

const (
	taskIndex   = "index"   // of the pack: write its index
	taskPack    = "pack"    // of the repository: write a pack with what is wanted
	taskPeel    = "peel"    // of the repository: what are the wanted tags
	taskNothing = "nothing" // see Isolation
)

// reply is what a child answers: a failure has a kind and a text.
type reply struct {
	Peeled map[string]string `json:",omitempty"`
	Kind   string            `json:",omitempty"`
	Text   string            `json:",omitempty"`
	Limit  *LimitError       `json:",omitempty"`
}

const (
	failedPack  = "pack"
	failedLocal = "local"
	failedLimit = "limit"
	unread      = "unread" // this process stopped reading, and knows why
)

// err is the failure as an error. A child that was taken over could choose the
// text.
func (r reply) err() error {
	switch r.Kind {
	case "", unread:
		return nil
	case failedPack:
		return &PackError{clean(r.Text)}
	case failedLocal:
		return &LocalError{clean(r.Text)}
	case failedLimit:
		if r.Limit != nil {
			return &LimitError{What: clean(r.Limit.What), Setting: clean(r.Limit.Setting), Limit: clean(r.Limit.Limit)}
		}
	}
	return &ChildError{"answers with an unknown failure"}
}

const maxReply = 64 << 20 // half a million tags

// child is one process to run.
type child struct {
	task  task
	file  *os.File // descriptor 3; may be nil
	owner *owner   // whose rights it has; nil: those of nobody
	made  func(io.Reader) error
}

type owner struct{ uid, gid uint32 }

// run starts the child, hands it its task and waits for both of its outputs.
func (c child) run(ctx context.Context) (reply, error) {
	request, err := json.Marshal(c.task)
	if err != nil {
		return reply{}, err
	}
	var tried []error
	for _, lock := range locks(c.owner) {
		p, err := c.start(ctx, request, lock)
		if err == nil {
			return p.wait(ctx, c)
		}
		if tried = append(tried, err); !forbidden(err) {
			break
		}
	}
	return reply{}, &ChildError{"cannot be started: " + errors.Join(tried...).Error()}
}

// forbidden says that a start failed because this process may not separate the
// child so far: in a container, say.
func forbidden(err error) bool {
	for _, no := range []error{
		syscall.EPERM, syscall.EACCES, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS, syscall.ENOSYS,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// lock is how far a child is separated from this process.
type lock struct {
	user       *owner
	namespaces bool
}

// locks are the ways to separate a child, the best one first.
func locks(as *owner) []lock {
	if os.Geteuid() != 0 {
		return []lock{{}}
	}
	if as == nil {
		as = unprivileged()
	}
	return []lock{{as, true}, {as, false}, {}}
}

// unprivileged is the user of children.
func unprivileged() *owner {
	if u, err := user.Lookup(childUser); err == nil {
		uid, bad := strconv.ParseUint(u.Uid, 10, 32)
		gid, bad2 := strconv.ParseUint(u.Gid, 10, 32)
		if bad == nil && bad2 == nil && uid != 0 {
			return &owner{uint32(uid), uint32(gid)}
		}
	}
	return &owner{nobody, nobody}
}

func (l lock) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if l.user != nil {
		a.Credential = &syscall.Credential{Uid: l.user.uid, Gid: l.user.gid}
	}
	if l.namespaces {
		a.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC
	}
	return a
}

// giveUp takes from this thread, for the child that it is about to start, what
// would let that gain rights: programs with a set-user-id bit, and for root the
// capabilities that starting a program gives it.
func giveUp(l lock) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if l.user == nil {
		return nil
	}
	const noRoot, locked = 1, 2 // see capabilities(7)
	return unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|locked, 0, 0, 0)
}

// process is a running child.
type process struct {
	cmd           *exec.Cmd
	answer, stuff *os.File // ends to read from
	stderr        *said
	ended         chan error
}

func (c child) start(ctx context.Context, request []byte, l lock) (*process, error) {
	answer, answerTo, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answerTo.Close()
	stuff, stuffTo, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, answer.Close())
	}
	defer stuffTo.Close()
	file := c.file
	if file == nil {
		if file, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		defer file.Close()
	}
	p := &process{answer: answer, stuff: stuff, stderr: &said{}, ended: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, "/proc/self/exe")
	p.cmd.Args = []string{"pullet", childCommand}
	p.cmd.Env = []string{fmt.Sprintf("GOMEMLIMIT=%d", c.task.Limits.Memory*9/10), "GOTRACEBACK=none"}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = bytes.NewReader(request), answerTo, p.stderr
	p.cmd.ExtraFiles = []*os.File{file, stuffTo}
	p.cmd.SysProcAttr = l.attributes()
	p.cmd.WaitDelay = 2 * time.Second
	started := make(chan error)
	go func() {
		// The child dies with the thread that started it, and inherits what the
		// thread gave up. The thread ends with this function: it is not unlocked.
		runtime.LockOSThread()
		err := giveUp(l)
		if err == nil {
			err = p.cmd.Start()
		}
		started <- err
		if err == nil {
			p.ended <- p.cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, errors.Join(err, answer.Close(), stuff.Close())
	}
	return p, nil
}

// wait reads what the child makes and answers. Whatever it does not read
// within bounds ends the child.
func (p *process) wait(ctx context.Context, c child) (r reply, err error) {
	defer p.answer.Close()
	defer p.stuff.Close()
	answered := make(chan []byte, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(p.answer, maxReply+1))
		if err != nil || len(text) > maxReply {
			text = nil
		}
		answered <- text
	}()
	var made error
	if c.made != nil {
		made = c.made(p.stuff)
	}
	p.stuff.Close() // what is too much ends it
	text := <-answered
	p.answer.Close()
	ended := <-p.ended
	if ctx.Err() != nil {
		return r, context.Cause(ctx)
	}
	if err := json.Unmarshal(text, &r); ended == nil && err == nil {
		if failed := r.err(); failed != nil {
			return r, failed // and so what it made is not whole
		}
		return r, made
	}
	return r, p.died(ended, c.task.Limits)
}

// died says why a child ended without an answer. The numbers of the kernel
// tell, not what it printed.
func (p *process) died(ended error, l Limits) error {
	state := p.cmd.ProcessState
	if state == nil {
		return &ChildError{fmt.Sprintf("was lost: %v", ended)}
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	usage, _ := state.SysUsage().(*syscall.Rusage)
	switch {
	case usage != nil && usage.Maxrss<<10 > l.Memory/4*3:
		return &LimitError{What: "memory to read the pack", Setting: "memory", Limit: bytesText(l.Memory)}
	case status.Signaled() && status.Signal() == syscall.SIGXCPU || state.UserTime()+state.SystemTime() >= l.Time:
		return &LimitError{What: "time to read the pack", Setting: "time", Limit: l.Time.String()}
	}
	return &ChildError{fmt.Sprintf("ended with %v: %s", state, clean(string(p.stderr.text)))}
}

// makeIndex has a child read a pack and write its index.
func (c Client) makeIndex(ctx context.Context, in *incoming) (err error) {
	pack, err := os.Open(in.pack())
	if err != nil {
		return err
	}
	defer pack.Close()
	f, err := os.OpenFile(in.index(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = child{
		task: task{Do: taskIndex, Limits: c.Limits.Whole()},
		file: pack,
		made: func(r io.Reader) error {
			_, err := io.Copy(f, io.LimitReader(r, indexSize(in.objects)))
			return err
		},
	}.run(ctx)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return in.checkIndex()
}
