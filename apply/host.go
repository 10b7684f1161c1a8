package apply

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/render"
)

// Host is the machine that actions work on: everything below Root.
type Host struct {
	Root    string            // "/", or a directory that stands for it
	Env     map[string]string // of commands, in addition to a clean environment
	Backups string            // where replaced files are kept
	Notes   string            // where commands are noted while they run: see Orphans
	Fleet   Fleet             // nil: its record cannot be reached
	Fence   func() int64      // of the claim under which commands run; 0 or nil without one
	Git     gitremote.Client  // for checkouts
	Boot    string            // of the machine, as Boot says; changes with every boot
	Finish  Finish            // how steps end when a signal stops the pull
	// Leaving reports that a shutdown is pending or scheduled. Nil: that is not asked.
	Leaving func(ctx context.Context) bool
	// Abandoned are the actions that hang. Nil: those of this host alone.
	Abandoned *Abandoned
	// Live receives the lines that commands of steps print, as they come and one at a time. Nil: nobody watches.
	Live func(step, line string)
	// Untrusted is set in the plan of a work tree: nothing runs that the state repository wrote. See MayRun.
	Untrusted bool
	// Bounds learns of each change and each command that begins and has an end by itself, and how long it may take at
	// most; what it returns is called when that is over, once or more. Nil: nobody asks.
	Bounds func(atMost time.Duration) (over func())
	// Emit keeps an event until the fleet has it. Nil: nobody here does that.
	Emit func(ctx context.Context, e EmittedEvent) error

	own Abandoned // where Abandoned is nil

	going map[string]bool // in a plan: paths that a run would have removed by now

	mu    sync.Mutex
	once  map[string]*onceOnly
	locks map[string]chan struct{} // by what is locked: whoever can send has it
	later []laterOn

	running []int // the processes of commands

	liveMu sync.Mutex
}

// Fleet is what steps need of the fleet's record.
type Fleet interface {
	// Services are the instances of a service, sorted by node.
	Services(ctx context.Context, name string) ([]render.Service, error)
	// Stale says since when what is known of the fleet is not current, while its record is away; "" is current.
	Stale() string
	// Announce publishes this node's instance. It is ready when the node is validated.
	Announce(ctx context.Context, s render.Service) error
	// Withdraw takes this node's instance back.
	Withdraw(ctx context.Context, name string) error
}

// EmittedEvent is an event of a step. Who keeps it says when it happened, and what caused it.
type EmittedEvent struct {
	Name   string
	Data   map[string]any // plain data, as JSON has it
	Dedupe string
	Hosts  []string // that it is about
}

// bounds tells who asks that something begins which ends with ctx, or a grace later. What it returns tells that it is
// over.
func (h *Host) bounds(ctx context.Context, grace time.Duration) (over func()) {
	end, ends := ctx.Deadline()
	if h.Bounds == nil || !ends {
		return func() {}
	}
	return h.Bounds(time.Until(end) + grace)
}

// onceOnly is something that is done at most once in a run.
type onceOnly struct {
	sync.Once
	err error
}

// Once does something at most once in a run, however many steps ask for it, such as refreshing package lists. All of
// them wait for it and get its error.
func (h *Host) Once(key string, do func() error) error {
	h.mu.Lock()
	o := h.once[key]
	if o == nil {
		o = &onceOnly{}
		if h.once == nil {
			h.once = map[string]*onceOnly{}
		}
		h.once[key] = o
	}
	h.mu.Unlock()
	return o.get(do)
}

// get does it, the first time, and is what came of it.
func (o *onceOnly) get(do func() error) error {
	o.Do(func() { o.err = do() })
	return o.err
}

// Lock keeps apart the steps of a run that edit one thing, such as lines of the same file: to read it, change it and
// replace it is one. It waits for whoever has it, until ctx ends.
func (h *Host) Lock(ctx context.Context, what string) (unlock func(), err error) {
	h.mu.Lock()
	if h.locks == nil {
		h.locks = map[string]chan struct{}{}
	}
	lock := h.locks[what]
	if lock == nil {
		lock = make(chan struct{}, 1)
		h.locks[what] = lock
	}
	h.mu.Unlock()
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: another step edits it: %w", what, stopCause(ctx))
	}
}

// IsMachine reports that the host is the machine itself, and not a directory that stands for one.
func (h *Host) IsMachine() bool { return h.Root == "/" }

// goes notes, in a plan, paths that a run would remove.
func (h *Host) goes(paths []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.going == nil {
		h.going = map[string]bool{}
	}
	for _, path := range paths {
		h.going[filepath.Clean(path)] = true
	}
}

// Goes reports, in a plan, that a run would have removed what is at a path before it looks there.
func (h *Host) Goes(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.going[filepath.Clean(path)]
}

// Entry opens the directory that holds a path of the repository on this machine. The last element is not followed;
// links before it are followed by the rule of hostfile, beneath the root. This is how a host's files are changed.
func (h *Host) Entry(path string) (*hostfile.Entry, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an absolute path", path)
	}
	return hostfile.Root(h.Root).Entry(path)
}

// Follow is Entry for what is used rather than replaced: where the last element is a link, the entry is what it leads
// to.
func (h *Host) Follow(path string) (*hostfile.Entry, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an absolute path", path)
	}
	return hostfile.Root(h.Root).Follow(path)
}

// Path is where a path of the repository lies on this machine. Links in its parents are followed beneath the root, so
// nothing leads out of it; its last element is not followed. It is for reading what only root can change, and for
// comparing: see Entry.
func (h *Host) Path(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not an absolute path", path)
	}
	clean := filepath.Clean(path)
	parent, err := securejoin.SecureJoin(h.Root, filepath.Dir(clean))
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return filepath.Join(parent, filepath.Base(clean)), nil
}

// Resolve is Path for what is used rather than replaced, such as a directory: its last element is followed too, beneath
// the root.
func (h *Host) Resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("%q is not an absolute path", path)
	}
	at, err := securejoin.SecureJoin(h.Root, path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return at, nil
}

// AbsPath is the check of a path parameter while an action is bound.
func AbsPath(param, path string) error {
	if !filepath.IsAbs(path) {
		return BadParam(param, "%q is not an absolute path", path)
	}
	if strings.ContainsRune(path, 0) {
		return BadParam(param, "a path cannot contain a zero byte")
	}
	return nil
}

// environment is what commands see: nothing of the agent's own.
func (h *Host) environment(home string, extra map[string]string) []string {
	env := map[string]string{
		"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME": home, "LANG": "C.UTF-8", "PULLET_ROOT": h.Root,
	}
	if h.Fence != nil && h.Fence() != 0 {
		env["PULLET_FENCE"] = fmt.Sprint(h.Fence())
	}
	for _, more := range []map[string]string{h.Env, extra} {
		for k, v := range more {
			env[k] = v
		}
	}
	out := make([]string, 0, len(env))
	for k, v := range env {
		out = append(out, k+"="+v)
	}
	return out
}

// errStopped is the cause of a context that ended because a signal stopped the run.
var errStopped = errors.New("the run was stopped")
