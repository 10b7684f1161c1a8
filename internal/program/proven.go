package program

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/durable"
)

// Names in the state directory.
const (
	provenProgram  = "pullet" // the unit pullet-fallback starts it
	provenRecord   = "proven.json"
	refusedProgram = "refused"
	refusedRecord  = "refused.json"
)

// Proven is what is known of the last program that made a pull on this host. Its copy is the one that puts itself back.
type Proven struct {
	Path    string    `json:"path"`    // where it was installed
	Digest  string    `json:"digest"`  // SHA-256
	File    file      `json:"file"`    // that was read for it
	Version string    `json:"version"` // of pullet
	At      time.Time `json:"at"`
	// a later program that made a pull too, of which no copy could be kept; the zero: there is none
	Works  copied `json:"works,omitzero"`
	Limits        // of the program that comes behind it
}

// copied is a program as it was read.
type copied struct {
	Digest string `json:"digest"`
	File   file   `json:"file"`
}

// knows reports a program that made a pull.
func (p *Proven) knows(digest string) bool { return digest == p.Digest || digest == p.Works.Digest }

// read is the digest of a file that was read for it before; "": it was not.
func (p *Proven) read(from file) string {
	switch {
	case p == nil:
	case p.File.same(from):
		return p.Digest
	case p.Works.File.same(from):
		return p.Works.Digest
	}
	return ""
}

// Limits say how long a new program has.
type Limits struct {
	Within time.Duration `json:"within"` // for its first pull
	AtMost time.Duration `json:"atMost"` // where it is still at work in that
}

// near reports limits that are as good: the time between two pulls is never quite the same, and each pull would write
// others.
func (l Limits) near(as Limits) bool {
	return (l.Within-as.Within).Abs() <= as.Within/10 && (l.AtMost-as.AtMost).Abs() <= as.AtMost/10
}

// Refused is a program that was put back.
type Refused struct {
	Digest  string    `json:"digest"`            // SHA-256
	Version string    `json:"version,omitempty"` // of the fleet, to which the host was being brought; "": to none
	Why     string    `json:"why"`
	Lost    bool      `json:"lost,omitempty"` // it proved itself, took over, and made no pull
	At      time.Time `json:"at"`
	Restart bool      `json:"restart,omitempty"` // what runs the program may still run the refused one
}

// Proven is the last program that made a pull; nil: none did.
func (i *Installed) Proven() (*Proven, error) {
	p := &Proven{}
	if err := durable.ReadJSON(i.file(provenRecord), p); err != nil {
		return nil, err
	}
	if p.Digest == "" {
		return nil, nil
	}
	return p, nil
}

// Refused is the program that was put back last; nil: none was, or another one made a pull since, or it is the one of
// this process.
func (i *Installed) Refused() (*Refused, error) {
	r := &Refused{}
	if err := durable.ReadJSON(i.file(refusedRecord), r); err != nil || r.Digest == "" {
		return nil, err
	}
	if own, err := i.own(); err != nil || own == r.Digest {
		return nil, err
	}
	return r, nil
}

// Confirm notes that the program of this process made a pull: it is kept as the proven one. A program that was refused
// before is forgotten when this is another one than was proven then. Where no copy can be made, a *KeepError says so:
// the program before stays the proven one, and does not put itself back. The program is read only where it is another
// file than it was.
func (i *Installed) Confirm(version string, limits Limits) error {
	before, err := i.Proven()
	if err != nil {
		return err
	}
	from, err := identify(i.self)
	if err != nil {
		return err
	}
	now := Proven{Path: i.Path, File: from, Version: version, At: time.Now().UTC(), Limits: limits}
	if before != nil && before.Limits.near(limits) {
		now.Limits = before.Limits
	}
	kept := i.kept()
	if before != nil && before.File.same(from) && kept {
		now.Digest, now.File, now.At = before.Digest, before.File, before.At
		if now == *before {
			return nil
		}
		return durable.WriteJSON(i.file(provenRecord), now)
	}
	if now.Digest = before.read(from); now.Digest == "" {
		if now.Digest, err = i.own(); err != nil {
			return err
		}
	}
	if before == nil || before.Digest != now.Digest || !kept {
		err = i.keep(i.self, provenProgram)
	}
	if err != nil && before != nil {
		return errors.Join(err, i.works(*before, copied{now.Digest, from}))
	}
	if err == nil {
		err = durable.WriteJSON(i.file(provenRecord), now)
	}
	if err != nil || before == nil || before.Digest == now.Digest {
		return err
	}
	return i.forgetRefused()
}

// works notes that another program made a pull than the one that is kept.
func (i *Installed) works(kept Proven, now copied) error {
	if now.Digest == kept.Digest || now.Digest == kept.Works.Digest && now.File.same(kept.Works.File) {
		return nil
	}
	kept.Works = now
	return durable.WriteJSON(i.file(provenRecord), kept)
}

// Unproven reports that the program of this process made no pull here yet, and another one did: it may be put back.
func (i *Installed) Unproven() (bool, error) {
	p, err := i.Proven()
	if p == nil || err != nil {
		return false, err
	}
	from, err := identify(i.self)
	return p.read(from) == "", err
}

// kept reports that the copy of the proven program is there.
func (i *Installed) kept() bool {
	info, err := os.Stat(i.file(provenProgram))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0
}

// Waiting reports that the installed program made no pull yet.
func (i *Installed) Waiting(p *Proven) (bool, error) {
	i.Path = p.Path
	is, err := i.digest()
	return !p.knows(is), err
}

// Lacks is why the copy of the proven program could not put itself back; nil: it could.
func (i *Installed) Lacks() error {
	var at unix.Statfs_t
	switch err := unix.Statfs(i.dir, &at); {
	case err != nil:
		return fmt.Errorf("%s: %w", i.dir, err)
	case at.Flags&unix.ST_NOEXEC != 0:
		return fmt.Errorf("%s is on a file system with noexec", i.dir)
	case !i.kept():
		return fmt.Errorf("%s is gone: the next pull makes it", i.file(provenProgram))
	}
	return nil
}

// Stays reports that this process began where pullet is installed: no program made a pull from another path, or nothing
// is there any more.
func (i *Installed) Stays() (bool, error) {
	p, err := i.Proven()
	if p == nil || err != nil || p.Path == i.Path {
		return err == nil, err
	}
	if _, err = os.Stat(p.Path); errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// First keeps the program of this process before its first pull here: there is none that is better.
func (i *Installed) First(version string, limits Limits) error {
	if p, err := i.Proven(); p != nil || err != nil {
		return err
	}
	return i.Confirm(version, limits)
}

func (i *Installed) forgetRefused() (err error) {
	for _, name := range []string{refusedRecord, refusedProgram} {
		if e := os.Remove(i.file(name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// Refuse puts the program of this process in the place of the installed one, which it keeps as the refused one where
// there is room. The record is written first: a process that is killed in between leaves one that says what the next
// has to do.
func (i *Installed) Refuse(r Refused) (err error) {
	if r.Digest, err = i.digest(); err != nil {
		return err
	}
	if err := i.keep(i.Path, refusedProgram); err != nil {
		r.Why += fmt.Sprintf(" (and cannot be tried again: %v)", err)
	}
	r.At = time.Now().UTC()
	return errors.Join(durable.WriteJSON(i.file(refusedRecord), r), i.install(i.self))
}

// Known reports that the installed program is the one that was refused.
func (i *Installed) Known(r *Refused) (bool, error) {
	if r == nil {
		return false, nil
	}
	is, err := i.digest()
	return is == r.Digest, err
}

// Again puts the refused program in its place once more.
func (i *Installed) Again() error {
	if err := i.install(i.file(refusedProgram)); err != nil {
		return fmt.Errorf("the program that was refused: %w", err)
	}
	return nil
}

// restarted notes that nothing runs the refused program any more.
func (i *Installed) restarted(r *Refused) error {
	r.Restart = false
	return durable.WriteJSON(i.file(refusedRecord), r)
}
