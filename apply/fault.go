package apply

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
)

// Fault says whose fault a failure is: what it means for the other hosts of a rollout.
type Fault string

// The faults. Unknown counts like Commit: the next host may fail in the same way.
const (
	CommitFault  Fault = "commit"
	HostFault    Fault = "host"
	UnknownFault Fault = "unknown"
)

// Says is why something failed, with the fault where that is the host's.
func (f Fault) Says(why string) string {
	if f == HostFault {
		return "host fault: " + why
	}
	return why
}

// FaultRule is a row of the table that says which error is whose fault. The first row that matches an error decides.
type FaultRule struct {
	What    string // for people
	Fault   Fault
	matches func(error) bool
}

// FaultRules are the rows of the table, in order.
func FaultRules() []FaultRule {
	return []FaultRule{
		{
			"an error that says so itself: a link, a file or an owner in a path that is refused; a package manager's lock " +
				"that another program keeps; an action that hangs and is abandoned",
			HostFault,
			saysHost,
		},
		{"a full disk, a full quota, no inodes (`ENOSPC`, `EDQUOT`)", HostFault, errno(syscall.ENOSPC, syscall.EDQUOT)},
		{"a read-only file system (`EROFS`)", HostFault, errno(syscall.EROFS)},
		{
			"a disk or a network file system that does not answer (`EIO`, `ESTALE`)",
			HostFault,
			errno(syscall.EIO, syscall.ESTALE),
		},
		{"no memory, file descriptors or processes left (`ENOMEM`, `ENFILE`, `EMFILE`, `EAGAIN`)", HostFault,
			errno(syscall.ENOMEM, syscall.ENFILE, syscall.EMFILE, syscall.EAGAIN)},
		{
			"something in the way of a path: a loop of links, a file for a directory or the reverse, a mount, an attribute " +
				"such as immutable, a file system of " +
				"a user (`ELOOP`, `ENOTDIR`, `EISDIR`, `ENOTEMPTY`, `EBUSY`, `ETXTBSY`, `EACCES`, `EPERM`, `ENOTCONN`, `ENXIO`)",
			HostFault,
			inTheWay,
		},
		{
			"a command that another process killed (`SIGKILL`, exit code 137), as the kernel does without memory",
			HostFault,
			killed,
		},
		{"the exit code of `cmd.run` and `cmd.script`", CommitFault, isExit},
		{"a program that is not there", CommitFault, noProgram},
		{
			"a condition that is false: `success`, `continue`",
			CommitFault,
			func(err error) bool { var no *conditionError; return errors.As(err, &no) },
		},
		{"the `validate` command of a file", CommitFault, isExit},
		{
			"everything else of a step that works on a path below a directory that another user than root can write, such as " +
				"a pipe or a directory where a file is to be",
			HostFault,
			never,
		},
		{
			"everything else: timeouts, the network, services that do not start, a result that is unknown",
			UnknownFault,
			func(error) bool { return true },
		},
	}
}

// FaultOf says whose fault an error is.
func FaultOf(err error) Fault {
	rules := FaultRules()
	return rules[slices.IndexFunc(rules, func(r FaultRule) bool { return r.matches(err) })].Fault
}

// never is for a row that the step decides, and not the error: see judge.
func never(error) bool { return false }

// conditionError is a condition of a step that did not become true.
type conditionError struct{ error }

// saysHost asks the error itself. Packages below implement HostFault without knowing this one.
func saysHost(err error) bool {
	var says interface{ HostFault() bool }
	return errors.As(err, &says) && says.HostFault()
}

func errno(codes ...syscall.Errno) func(error) bool {
	return func(err error) bool {
		var e syscall.Errno
		return errors.As(err, &e) && slices.Contains(codes, e)
	}
}

// inTheWay asks for the path as well: the network has some of these numbers too.
func inTheWay(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) &&
		errno(
			syscall.ELOOP,
			syscall.ENOTDIR,
			syscall.EISDIR,
			syscall.ENOTEMPTY,
			syscall.EBUSY,
			syscall.ETXTBSY,
			syscall.EACCES,
			syscall.EPERM,
			syscall.ENOTCONN,
			syscall.ENXIO,
		)(path.Err)
}

func killed(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit) && exit.Output.Killed
}

func noProgram(err error) bool {
	var no *NoProgramError
	return errors.As(err, &no)
}

func isExit(err error) bool {
	var exit *ExitError
	return errors.As(err, &exit)
}

// assignFault lets the step's own runOptions say whose fault its failure is. Where nothing says so and a user of the
// host could have made it fail, it is the host's.
func (r *StepReport) assignFault(s *boundStep, h *Host) {
	if r.Outcome != Failed {
		r.Fault = ""
		return
	}
	if r.Fault == UnknownFault && s.inUsersHands(h) {
		r.Fault = HostFault
	}
	if own := s.Options.FailureClass.Of(r.Result.ExitCode); own != "" {
		r.Fault = Fault(own)
	}
}

// faultNow is whose fault it is that the step failed, or could not run because of one that did.
func (s *running) faultNow() Fault {
	if s.r.Outcome == Failed {
		return s.r.Fault
	}
	s.x.mu.Lock()
	defer s.x.mu.Unlock()
	return s.x.report.Fault()
}

// Fault says whose fault a failed run is: the host's where every failure is.
func (r *Report) Fault() Fault {
	if !r.Failed() {
		return ""
	}
	host, commit := 0, 0
	for _, s := range r.Steps {
		switch {
		case s.Outcome == Failed && s.Fault == HostFault:
			host++
		case s.Outcome == Failed && s.Fault == CommitFault:
			commit++
		}
	}
	switch {
	case host > 0 && host == r.Counts[Failed]:
		return HostFault
	case commit > 0:
		return CommitFault
	}
	return UnknownFault
}
