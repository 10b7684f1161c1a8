package datastore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/internal/ownfile"
	"github.com/pullet/pullet/internal/trust"
)

const (
	backupLock   = "backup.lock" // who makes a backup has it
	snapshotFile = "backup.db"   // the snapshot that goes into a backup
	packedFile   = "backup.tar"  // a backup that goes to a URL
	mostTime     = time.Hour     // that a backup may take
)

// Backup makes a backup of the fleet's record: to a directory, which it makes where there is none, or to an https URL.
// The datastore of this host has to serve. From the configured directory it removes the backups that are too many. An
// error beside a backup that has a name is about what comes after it.
func Backup(ctx context.Context, c Config, fleet, to string, now time.Time) (Made, error) {
	toURL, err := place(to)
	if err != nil {
		return Made{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	lock := flock.New(c.file(backupLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, restTime); err != nil {
		return Made{}, fmt.Errorf("wait for another backup that is being made: %w", err)
	}
	defer func() { _ = lock.Close() }() // the end of the process does it, too
	p, err := c.takeSnapshot(ctx, fleet, now)
	if err == nil && toURL {
		err = p.put(ctx, to)
	} else if err == nil {
		err = p.place(to)
	}
	if err = errors.Join(err, p.remove()); err != nil {
		return Made{}, fmt.Errorf("backup to %s: %w", shown(to), err)
	}
	made := Made{
		At: p.Made, To: shown(to), Name: p.name(), Revision: p.Revision, Size: p.packed, Sealed: len(p.to) > 0,
		Authority: p.authority,
	}
	if to != c.Backup.To {
		return made, nil
	}
	err = durable.WriteJSON(c.file(pastFile), Past{To: made.To, Last: made})
	if !toURL {
		err = errors.Join(err, p.tidy(to))
	}
	return made, err
}

// packing is a snapshot on its way into a backup.
type packing struct {
	Config
	contents
	keeper    []byte // its credentials: it signs
	authority string // that signed those
	to        []trust.Recipient
	packed    int64 // bytes that were written
}

func (p *packing) name() string { return backupName(p.Fleet, len(p.to) > 0, p.Made) }

// place puts the backup into a directory.
func (p *packing) place(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := ownfile.Check(dir); err != nil {
		return err
	}
	return durable.Write(filepath.Join(dir, p.name()), p.pack)
}

// tidy removes the backups of this fleet from a directory that are too many.
func (p *packing) tidy(dir string) error {
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	for _, name := range surplus(names, p.Fleet, p.name(), cmp.Or(p.Backup.Keep, defaultKeep), p.Made) {
		err = errors.Join(err, os.Remove(filepath.Join(dir, name)))
	}
	if err != nil {
		return fmt.Errorf("what is too much in %s stays: %w", dir, err)
	}
	return nil
}

// remove removes what was needed on the way.
func (p *packing) remove() error {
	return errors.Join(os.RemoveAll(p.file(snapshotFile)), os.RemoveAll(p.file(packedFile)))
}

// scheduled are the backups that a keeper makes by itself.
type scheduled struct{ *keeper }

// start makes backups when they are due, until it is stopped.
func (k scheduled) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for k.Backup.Every != 0 && ctx.Err() == nil {
			wait := k.backUpIfDue(ctx)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// backUpIfDue makes a backup if one is due. It returns how long to wait until it looks again.
func (k scheduled) backUpIfDue(ctx context.Context) time.Duration {
	past, err := PastBackups(k.Config)
	if err != nil { // the next one that succeeds writes it anew
		k.Log.WithError(err).Warn("it is not known when the last backup was made")
	}
	if wait := past.untilDue(k.Backup.Every.Std(), time.Now()); wait > 0 {
		return min(wait, lookEvery)
	}
	made, err := Backup(ctx, k.Config, k.Fleet, k.Backup.To, time.Now())
	if ctx.Err() != nil {
		return 0
	}
	if made.Name != "" {
		past.Last = made
	}
	if err != nil {
		past.To, past.Failed = shown(k.Backup.To), Failed{past.Failed.Times + 1, time.Now().UTC(), err.Error()}
		err = errors.Join(err, durable.WriteJSON(k.file(pastFile), past))
		k.Log.WithError(err).WithField("name", made.Name).Error("a backup of the record failed; it is tried again")
	} else {
		k.Log.WithField("to", made.To).WithField("name", made.Name).Info("the record is backed up")
	}
	return min(k.Backup.Every.Std(), lookEvery)
}
