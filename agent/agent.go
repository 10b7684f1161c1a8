package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/gitremote"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// Agent is a node at work. Its methods are called by one goroutine at a time.
type Agent struct {
	config   Config
	build    string // the version of pullet
	instance string // of this process
	dir      uint64 // the inode of its state directory
	logger   *logrus.Entry
	puller   *puller.Puller
	actions  []apply.Spec
	// Live is told what commands of steps print, as it comes; nil: nobody watches. It is set before the first pull.
	Live func(step, line string)
	// EndNow, once closed, ends the commands of a pull that was told to stop and finishes its step. It is set before
	// the first pull; nil: the time of the configuration alone bounds that.
	EndNow <-chan struct{}

	mu     sync.Mutex
	opened *state.Store       // the fleet's record; nil: not open, or unreachable when it was tried last
	broken error              // why no store can be opened by this process any more
	leased context.CancelFunc // ends the renewal of the lease
	parsed *render.Repository // of the last snapshot, kept while its version stays
	at     string             // the version of parsed

	due   atomic.Int64 // until when the agent is surely at work, in nanoseconds since began
	began time.Time

	nodes   int       // of the fleet, as they were counted last
	counted time.Time // and when

	abandoned apply.Abandoned // what hangs since an earlier pull

	checks []recheck // of services, between two pulls
	away   *outage   // of the fleet's record, as the loop says it
}

// New prepares a node's agent. It makes the state directory and checks the repositories' settings; nothing is fetched
// yet.
func New(c Config, build string, log *logrus.Entry) (*Agent, error) {
	if err := os.MkdirAll(c.Paths.State, 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	dir, err := inode(c.Paths.State)
	if err != nil {
		return nil, err
	}
	p, err := puller.Open(filepath.Join(c.Paths.State, "repositories"), c.Repositories, c.Agent.Git.limits(), log)
	if err != nil {
		return nil, err
	}
	return &Agent{
		config:   c,
		dir:      dir,
		build:    build,
		instance: randomID(),
		logger:   log,
		began:    time.Now(),
		puller:   p,
		actions:  action.All(),
		away:     &outage{log: log},
	}, nil
}

// Close lets go of the store and the repositories.
func (a *Agent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return errors.Join(a.closeStore(), a.puller.Close())
}

func (a *Agent) closeStore() error {
	if a.leased != nil {
		a.leased()
		a.leased = nil
	}
	if a.opened == nil {
		return nil
	}
	a.broken = a.opened.Broken()
	err := a.opened.Close()
	a.opened = nil
	return err
}

// dropStore closes the fleet's record: the next pull opens it anew.
func (a *Agent) dropStore() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closeStore()
}

// brokenStore is why this process can open no store any more; nil while it can.
func (a *Agent) brokenStore() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened != nil {
		return a.opened.Broken()
	}
	return a.broken
}

// openStore opens the fleet's record, or gives the one that is open.
func (a *Agent) openStore(ctx context.Context) (*state.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.opened != nil {
		return a.opened, nil
	}
	c := a.config.store()
	c.Node = a.config.Node.Name
	s, err := state.Open(ctx, c)
	if broken, ok := errors.AsType[*state.BrokenError](err); ok {
		a.broken = broken
	}
	if err != nil {
		return nil, err
	}
	a.opened = s
	return s, nil
}

// work says that something of a length at most begins now: an agent that hangs for longer counts as dead.
func (a *Agent) work(atMost time.Duration) {
	a.due.Store(int64(time.Since(a.began) + atMost + time.Minute))
}

// atWork reports that the agent did not hang.
func (a *Agent) atWork() bool { return time.Since(a.began) < time.Duration(a.due.Load()) }

// host is what actions work on.
func (a *Agent) host(version string) *apply.Host {
	env := map[string]string{"PULLET_NODE": a.config.Node.Name, "PULLET_VERSION": version}
	backups := filepath.Join(a.config.Paths.State, "backups")
	git := gitremote.Client{
		Scratch: filepath.Join(a.config.Paths.State, "checkouts"),
		Limits:  a.config.Agent.Git.limits(),
	}
	finish := apply.Finish{Within: a.config.Agent.Finish.Std(), Now: a.EndNow}
	return &apply.Host{
		Root:      a.config.Root,
		Finish:    finish,
		Env:       env,
		Backups:   backups,
		Notes:     a.notes(),
		Git:       git,
		Boot:      apply.Boot(),
		Leaving:   apply.Leaving,
		Abandoned: &a.abandoned,
		Live:      a.Live,
	}
}

// notes is where commands are noted while they run.
func (a *Agent) notes() string { return filepath.Join(a.config.Paths.State, "commands") }

// runID names a run: its time, so that names sort, and some chance.
func runID() string { return time.Now().UTC().Format("20060102T150405Z") + "-" + randomID()[:6] }

// randomID is 16 random hexadecimal digits.
func randomID() string {
	b := make([]byte, 8)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}
