package event

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/state"
)

// Spool keeps a host's events on its disk until they are on the fleet's record. It may be used by several processes.
type Spool struct {
	Dir string // the state directory
	By  string // the host
}

// MaxSpool is how many events a host keeps: the oldest make room, and are counted.
const MaxSpool = 1000

// spooled is what stands on disk.
type spooled struct {
	Events  []state.Event `json:"events"`
	Dropped int           `json:"dropped,omitempty"` // since the last time that the fleet was told
}

func (s Spool) path() string { return filepath.Join(s.Dir, "events.json") }

// Add keeps events. One that is not as it should be is refused, and none is kept then.
func (s Spool) Add(ctx context.Context, events ...state.Event) error {
	for i := range events {
		if err := events[i].Check(); err != nil {
			return err
		}
	}
	return s.change(ctx, func(have *spooled) error {
		have.Events = append(have.Events, events...)
		if over := len(have.Events) - MaxSpool; over > 0 {
			have.Events, have.Dropped = have.Events[over:], have.Dropped+over
		}
		return nil
	})
}

// Raise keeps events. Where the disk is full it tells the fleet of them at once, if there is a store: what is to be
// told of a full disk must not need it.
func (s Spool) Raise(ctx context.Context, store *state.Store, events ...state.Event) error {
	err := s.Add(ctx, events...)
	if store == nil || !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	told, away := store.Events.Tell(ctx, s.By, events, 0)
	if away != nil || told < len(events) {
		return errors.Join(err, store.Explain(away))
	}
	return nil
}

// Tell tells the fleet what is kept, as far as there is room in the outbox. It reports how many events are left.
func (s Spool) Tell(ctx context.Context, store *state.Store) (left int, err error) {
	if _, err := os.Stat(s.path()); errors.Is(err, fs.ErrNotExist) { // most hosts tell nothing
		return 0, nil
	}
	err = s.change(ctx, func(have *spooled) error {
		told, err := store.Events.Tell(ctx, s.By, have.Events, have.Dropped)
		if err == nil {
			have.Events, have.Dropped = have.Events[told:], 0
		}
		left = len(have.Events)
		return err
	})
	return left, err
}

// change changes what is kept. An error leaves it as it was.
func (s Spool) change(ctx context.Context, how func(*spooled) error) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	lock := flock.New(s.path()+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	defer lock.Close()
	have, err := s.read()
	if err != nil {
		return err
	}
	before := len(have.Events) + have.Dropped
	if err := how(&have); err != nil {
		return err
	}
	switch {
	case len(have.Events)+have.Dropped == 0 && before > 0:
		return os.Remove(s.path())
	case len(have.Events)+have.Dropped == 0:
		return nil
	}
	data, err := json.Marshal(have)
	if err != nil {
		return err
	}
	return durable.Replace(s.path(), append(data, '\n'))
}

// read is what is kept. What is damaged is lost: it says nothing of the host, and would keep all others from being
// told.
func (s Spool) read() (have spooled, err error) {
	data, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return have, nil
	}
	if err == nil && (json.Unmarshal(data, &have) != nil || have.Dropped < 0) {
		have = spooled{Dropped: 1}
	}
	n := len(have.Events)
	have.Events = slices.DeleteFunc(have.Events, func(e state.Event) bool { return e.By != s.By || e.Check() != nil })
	have.Dropped += n - len(have.Events)
	return have, err
}
