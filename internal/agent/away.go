package agent

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/state"
)

// outage is what the loop says while the fleet's record does not answer: one line when it goes away, and one when it is
// back.
type outage struct {
	log   *logrus.Entry
	mu    sync.Mutex
	since time.Time // zero: it answers
}

// begins says that the record went away, where err means that, and reports that it does not answer.
func (o *outage) begins(err error, since time.Time) bool {
	var away *state.UnreachableError
	if !errors.As(err, &away) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		o.since = since
		o.log.Warnf(
			"%v; away since %s; until it answers, this host corrects drift of its current version, and starts no new "+
				"version and no gated step",
			away,
			since.Local().Format(time.TimeOnly),
		)
	}
	return true
}

// told is what is left to be said of a pull's error: nothing where it says no more than that the record is away.
func (o *outage) told(err error, since time.Time) error {
	if o.begins(err, since) && onlyAway(err) {
		return nil
	}
	return err
}

// onlyAway reports an error that says nothing but that the record is away.
func onlyAway(err error) bool {
	switch e := err.(type) {
	case *state.UnreachableError:
		return true
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(one error) bool { return !onlyAway(one) })
	case interface{ Unwrap() error }:
		return onlyAway(e.Unwrap())
	}
	return false
}

// lasts reports that it was said before that the record is away.
func (o *outage) lasts() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero()
}

// ends says that the record answers again.
func (o *outage) ends() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.since.IsZero() {
		o.log.Infof("etcd answers again, after %s", max(0, time.Since(o.since)).Round(time.Second))
		o.since = time.Time{}
	}
}
