package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pullet/pullet/state"
)

// watch shows something of the fleet's record as it changes, until it ends or somebody ends it: on a terminal it has
// the screen for itself, elsewhere each change is a line or, with -o json, a document.
type watch struct {
	*app
	store *state.Store
	keys  io.Reader
	read  func(context.Context) (picture, int64, error)
	// over reports the last picture, and the error with which the command ends then; nil: there is no last one.
	over func(picture) (bool, error)

	first reading // that was made before, if any was

	screen  *screen
	now     picture
	at      time.Time // when the record was read, by the clock: a laptop sleeps meanwhile
	away    error     // why it cannot be read since
	printed []byte
}

// reading is what came of one look at the record.
type reading struct {
	picture  picture
	revision int64
	err      error
}

// run shows it. It returns with the last picture, when a key or the context ends it, and when the record cannot be read
// for good.
func (w *watch) run(ctx context.Context) error {
	w.screen = newScreen(w.out)
	w.screen.live = w.screen.live && (w.output == "table" || w.output == "wide")
	var pressed <-chan byte
	if w.screen.live {
		keyboard := openKeyboard(w.keys)
		defer keyboard.close() // the terminal may be gone
		w.screen.open()
		defer w.screen.close()
		pressed = keyboard.pressed
	}
	if w.first.picture != nil {
		if done, err := w.take(w.first); done || err != nil {
			return err
		}
		if err := w.draw(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	reads, again, ended := make(chan reading), make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		w.follow(ctx, reads, again)
	}()
	defer func() { cancel(); <-ended }() // before the store is closed
	return w.show(ctx, reads, again, pressed)
}

// show draws the picture whenever it, its age or the terminal changes.
func (w *watch) show(ctx context.Context, reads <-chan reading, again chan<- struct{}, pressed <-chan byte) error {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for last := time.Now().Round(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case key := <-pressed:
			if key == 'q' || key == 'Q' {
				return nil
			}
		case r := <-reads:
			if done, err := w.take(r); done || err != nil {
				return err
			}
		case <-resized:
			w.screen.frame = "" // what the terminal made of it is not known
		case <-tick.C:
			if now := time.Now().Round(0); now.Sub(last) > slept {
				wake(again)
			}
			last = time.Now().Round(0)
		}
		if err := w.draw(); err != nil {
			return err
		}
	}
}

// slept is a pause of the clock that is a sleep of the host.
const slept = 10 * time.Second

func wake(again chan<- struct{}) {
	select {
	case again <- struct{}{}:
	default:
	}
}

// take keeps what was read. Where etcd is away, the picture before stays.
func (w *watch) take(r reading) (done bool, err error) {
	switch {
	case r.err == nil:
		if w.away != nil && !w.screen.live {
			fmt.Fprintln(w.err, "etcd answers again")
		}
		w.now, w.at, w.away = r.picture, time.Now().Round(0), nil
	case w.now == nil || !isAway(r.err):
		return true, r.err
	default:
		if w.away == nil && !w.screen.live {
			fmt.Fprintln(w.err, r.err)
		}
		w.away = r.err
		return false, nil
	}
	if w.over == nil {
		return false, nil
	}
	if done, err = w.over(w.now); !done {
		return false, nil
	}
	if w.screen.live { // the last picture stays where the command was typed
		w.screen.close()
		return true, errors.Join(onPage(w.out, w.now.print), err)
	}
	return true, errors.Join(w.draw(), err)
}

// draw brings what is shown up to date.
func (w *watch) draw() error {
	if w.now == nil {
		return nil
	}
	if w.output != "json" && w.output != "yaml" {
		w.screen.show(w.now, w.foot()...)
		return nil
	}
	var text bytes.Buffer
	shown := *w.app
	shown.out = &text
	if _, err := shown.structured(w.now); err != nil || bytes.Equal(text.Bytes(), w.printed) {
		return err
	}
	w.printed = text.Bytes()
	_, err := w.out.Write(w.printed)
	return err
}

// foot is the line at the bottom: of when the picture is, and why it is old.
func (w *watch) foot() []span {
	at := "as of " + w.at.Local().Format("15:04:05 MST")
	if w.away == nil {
		return []span{{noInk, at + "; q ends"}}
	}
	return []span{{red, at + ", " + ago(w.at) + " ago"}, {noInk, "; q ends; " + w.away.Error()}}
}

// follow reads the record whenever something happens in it.
func (w *watch) follow(ctx context.Context, reads chan<- reading, again <-chan struct{}) {
	if w.first.picture != nil {
		w.await(ctx, w.first.revision, 0, again)
	}
	for ctx.Err() == nil {
		var r reading
		began := time.Now()
		r.picture, r.revision, r.err = w.read(ctx)
		r.err = w.store.Explain(r.err)
		took := time.Since(began)
		select {
		case reads <- r:
		case <-ctx.Done():
			return
		}
		if r.err != nil {
			state.Pause(ctx, lookEvery)
		} else {
			w.await(ctx, r.revision, took, again)
		}
	}
}

// pauseAfter is how long after a reading of the record that took so long the next one is made at the earliest: in a
// fleet of ten thousand nodes something happens all the time.
func pauseAfter(took time.Duration) time.Duration { return min(10*took, 30*time.Second) }

// quietPoll is how long a fleet in which nothing happens is not read. A lease that ends, of a node that is lost, rings
// no bell.
func quietPoll(took time.Duration) time.Duration {
	return min(max(300*took, 15*time.Second), 2*time.Minute)
}

// await waits until something happened since a revision, somebody wants to look again, or a poll is due.
func (w *watch) await(ctx context.Context, revision int64, took time.Duration, again <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-again:
			cancel()
		case <-ctx.Done():
		}
	}()
	state.Pause(ctx, pauseAfter(took))
	w.store.Bells.Await(ctx, w.store.Bells.Key(), revision, quietPoll(took))
}
