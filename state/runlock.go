package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/pullet/pullet/internal/durable"
)

// RunLock keeps two runs on a node apart. The kernel releases it when the holder ends, however it ends.
type RunLock struct{ file *flock.Flock }

// LockedError says who holds the run lock.
type LockedError struct {
	PID   int       `json:"pid"`
	Run   string    `json:"run"`
	Since time.Time `json:"since"`
}

func (e *LockedError) Error() string {
	if e.PID == 0 { // it has the lock and has not written who it is
		return "another pull begins on this node just now; wait for it"
	}
	return fmt.Sprintf(
		"another pull runs on this node: process %d, run %s, since %s; wait for it, or look with: ps -p %d",
		e.PID,
		e.Run,
		e.Since.Format(time.TimeOnly),
		e.PID,
	)
}

// How long a run waits for the lock of a process that is gone, and how often it looks.
const (
	dyingTime = 2 * time.Second
	dyingPoll = 20 * time.Millisecond
)

// LockRun takes the node's run lock for a run, or fails with a *LockedError. Where the holder's process is gone, the
// kernel is about to free the lock: LockRun tries for up to two seconds.
func LockRun(dir, run string) (*RunLock, error) {
	path := filepath.Join(dir, "run.lock")
	l := flock.New(path, flock.SetPermissions(0o600))
	if err := tryLock(l); err != nil {
		return nil, err
	}
	data, err := json.Marshal(LockedError{os.Getpid(), run, time.Now()})
	if err != nil {
		return nil, err
	}
	// In place: a rename would leave the lock on a file that nobody else opens. Where the disk is full, the lock holds
	// all the same, without a name for people; the pull goes on to tell the fleet that it has no room.
	if err := os.WriteFile(path, data, 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return nil, errors.Join(err, l.Unlock())
	}
	return &RunLock{l}, nil
}

// Release lets the next run in. The file names nobody then.
func (l *RunLock) Release() error { return errors.Join(os.Truncate(l.file.Path(), 0), l.file.Unlock()) }

// tryLock takes the lock unless a process that lives has it.
func tryLock(l *flock.Flock) error {
	for end := time.Now().Add(dyingTime); ; time.Sleep(dyingPoll) {
		ok, err := l.TryLock()
		if err != nil {
			return fmt.Errorf("run lock %s: %w", l.Path(), err)
		}
		if ok {
			return nil
		}
		held := &LockedError{}
		// The holder may be about to write its name: an empty one is still an answer.
		_ = durable.ReadJSON(l.Path(), held)
		if held.PID == 0 || !dead(held.PID) || time.Now().After(end) {
			return held
		}
	}
}

// dead reports a process that is gone, or a zombie. Threads or children of one may hold its files for a moment.
func dead(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH)
	}
	name := bytes.LastIndexByte(stat, ')') // which may itself have brackets
	fields := bytes.Fields(stat[name+1:])
	return len(fields) > 0 && (fields[0][0] == 'Z' || fields[0][0] == 'X')
}

// Pulling reports that a run is going on. It may be wrong for the moment in which one begins.
func Pulling(dir string) bool {
	held := &LockedError{}
	// A file that is just being written names nobody.
	_ = durable.ReadJSON(filepath.Join(dir, "run.lock"), held)
	return held.PID != 0 && !dead(held.PID)
}
