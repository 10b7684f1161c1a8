package puller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/pullet/pullet/internal/gitremote"
)

const (
	turnTimeout  = 5 * time.Minute // for another process to be done with the stores
	turnPatience = 3 * time.Second // after which it is said that there is one
	turnPause    = 20 * time.Millisecond
)

// turn makes this process the only one that changes the stores, until it is
// over: an operator plans or looks for updates while a pull fetches. It takes
// over what others did since the last turn.
func (p *Puller) turn(ctx context.Context) (over func(), err error) {
	p.mu.Lock()
	defer func() {
		if err != nil {
			p.mu.Unlock()
		}
	}()
	ctx, cancel := context.WithTimeoutCause(
		ctx,
		turnTimeout,
		fmt.Errorf(
			"another pullet uses the repositories in %s for %s now: pgrep -a pullet shows it",
			p.dir,
			turnTimeout,
		),
	)
	defer cancel()
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	for _, r := range p.repos {
		err = errors.Join(err, r.catchUp())
	}
	if err != nil {
		return nil, errors.Join(err, p.lock.Unlock())
	}
	return func() {
		defer p.mu.Unlock()
		if err := p.lock.Unlock(); err != nil {
			p.log.WithError(err).Warn("the lock of the repositories")
		}
	}, nil
}

// acquire takes the lock, and says so when that takes long.
func (p *Puller) acquire(ctx context.Context) error {
	soon, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	mine, err := p.lock.TryLockContext(soon, turnPause)
	if !mine && soon.Err() != nil && ctx.Err() == nil {
		p.log.Warn("waiting for another pullet that uses the repositories")
		mine, err = p.lock.TryLockContext(ctx, turnPause)
	}
	switch {
	case mine:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("cannot lock the repositories: %w", err)
}

// newLock is the lock of the directory with the stores.
func newLock(dir string) *flock.Flock {
	return flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
}

// catchUp brings the files of a source into order after a crash, of this
// process or another one, and sees what others did.
func (r *repository) catchUp() (err error) {
	if err := recoverSwap(r.store.dir); err != nil {
		return fmt.Errorf("repository %q: cannot recover its store: %w", r.src.Name, err)
	}
	if err := r.removeLeftovers(); err != nil {
		return err
	}
	if err := r.store.catchUp(); err != nil {
		return fmt.Errorf("repository %q: cannot read its store anew: %w", r.src.Name, err)
	}
	r.rec, err = readRecord(r.recordFile)
	return err
}

// removeLeftovers removes what killed processes left, once: this one cleans up behind
// itself.
func (r *repository) removeLeftovers() error {
	if r.cleaned {
		return nil
	}
	if r.store.exists() {
		if err := removeLeftovers(r.store.dir); err != nil {
			return fmt.Errorf("repository %q: cannot tidy its store: %w", r.src.Name, err)
		}
	}
	if err := removeRecordLeftovers(r.recordFile); err != nil {
		return fmt.Errorf("repository %q: cannot tidy its record: %w", r.src.Name, err)
	}
	if err := gitremote.Collect(r.git.Scratch); err != nil {
		return fmt.Errorf("repository %q: cannot remove what a fetch left: %w", r.src.Name, err)
	}
	r.cleaned = true
	return nil
}

// catchUp makes the next read see what another process did to the packs.
func (s *store) catchUp() error {
	s.mu.Lock()
	stale := s.st != nil && !s.same(s.packDir())
	s.mu.Unlock()
	if stale {
		return s.reset()
	}
	return nil
}

// packDir describes the directory of packs; nil where it is not there.
func (s *store) packDir() fs.FileInfo {
	info, err := os.Stat(filepath.Join(s.dir, "objects", "pack"))
	if err != nil {
		return nil
	}
	return info
}

// same says that the packs are those that were there when the store was
// opened.
func (s *store) same(now fs.FileInfo) bool {
	return now != nil && s.opened != nil && os.SameFile(now, s.opened) && now.ModTime().Equal(s.opened.ModTime())
}
