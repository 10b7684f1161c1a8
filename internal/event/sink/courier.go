package sink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// courier sends events to one sink.
type courier struct {
	*Couriers
	*Sink
	client *http.Client
	log    *logrus.Entry
	since  int64         // when this process became the reactor
	at     state.Sink    // how far it is
	kept   *state.Sink   // what is on record; nil: nothing
	within time.Duration // a receiver has so long
	alone  int           // events that go alone, because the receiver refused them together
	pause  time.Duration
}

// The bounds of a courier.
const (
	pagesAtOnce = 4
	batchSize   = 512 << 10        // about how many bytes of events go at once
	keepAlways  = 50               // pages without an event for the sink until it is recorded that they were read
	askAgain    = 30 * time.Second // a watch is never trusted alone
)

// errOther says that another process is the reactor by now.
var errOther = errors.New("another host is the reactor by now")

// run sends what there is, and unless it follows ends then.
func (c *courier) run(ctx context.Context, follow bool) {
	for (follow || c.pause == 0) && state.Pause(ctx, c.pause) {
		c.pause = 0
		seen, err := c.sendAll(ctx)
		switch {
		case errors.Is(err, errOther) || !follow:
			return
		case err != nil:
			c.log.WithError(c.Store.Explain(err)).Debug("events are sent later")
			c.pause = askAgain / 6
		case c.pause == 0:
			c.Store.Sinks.Await(ctx, seen, askAgain)
		}
	}
}

// begin finds where to go on: a new sink begins at the end of the log.
func (c *courier) begin(known map[string]state.Sink, last int) {
	at, was := known[c.Name]
	if was {
		c.kept = &at
	} else {
		at = state.Sink{Page: last + 1}
	}
	c.at = at
	c.at.Type, c.at.By = c.Type, c.Node
	if at.Failures > 0 {
		c.pause = max(0, wait(at.Failures, nil)-time.Since(at.At).Abs())
	}
}

// sendAll sends what there is until something fails, and returns the revision up to which it looked. An error is about
// the fleet's record; what is wrong with the receiver stands in the record of the sink, and in pause.
func (c *courier) sendAll(ctx context.Context) (seen int64, err error) {
	for {
		log, err := c.Store.Sinks.Stretch(ctx, c.at.Page, pagesAtOnce)
		if err != nil {
			return 0, err
		}
		c.mind(log)
		if err := c.sendThese(ctx, log); err != nil || c.pause > 0 {
			return 0, err
		}
		if c.kept == nil || c.at.Page-c.kept.Page >= keepAlways || c.at.Lost != c.kept.Lost {
			if err := c.keep(ctx); err != nil {
				return 0, err
			}
		}
		if c.at.Page > log.Last {
			return log.Revision, nil
		}
	}
}

// sendThese sends what the sink takes of a part of the log, until something fails.
func (c *courier) sendThese(ctx context.Context, log *state.Stretch) error {
	for c.pause == 0 {
		batch, sent := c.next(log)
		if len(batch) == 0 {
			c.at = sent
			return nil
		}
		if err := c.deliver(ctx, log, batch, sent); err != nil {
			return err
		}
	}
	return nil
}

// mind counts pages that are gone before they were sent, and begins at the end of a log that began anew.
func (c *courier) mind(log *state.Stretch) {
	lost := 0
	switch {
	case c.at.Page > log.Last+1:
		lost, c.at.Page, c.at.Index = 1, log.Last+1, 0
	case c.at.Page < log.First:
		lost, c.at.Page, c.at.Index = log.First-c.at.Page, log.First, 0
	}
	if lost > 0 {
		c.at.Lost += lost
		c.at.Error = fmt.Sprintf("%d pages of the log of events were removed before they were sent", lost)
		c.log.Warn(c.at.Error)
	}
}

// next are the next events for the sink, as many as go at once, and how far it is when they are sent.
func (c *courier) next(log *state.Stretch) (batch []state.Happened, sent state.Sink) {
	sent, most, size := c.at, max(1, c.Batch), 0
	if c.alone > 0 {
		most = 1
	}
	for _, page := range log.Pages {
		if page.Number < sent.Page {
			continue
		}
		if page.Number > sent.Page { // those between cannot be read
			sent.Lost, sent.Page, sent.Index = sent.Lost+page.Number-sent.Page, page.Number, 0
		}
		for sent.Index < len(page.Events) {
			e := page.Events[sent.Index]
			takes := c.takes(e)
			if takes && (len(batch) >= most || len(batch) > 0 && size+e.Size() > batchSize) {
				return batch, sent
			}
			if takes {
				batch, size = append(batch, e), size+e.Size()
			}
			sent.Index++
		}
		sent.Page, sent.Index = page.Number+1, 0
	}
	if sent.Page <= log.Upto {
		sent.Lost, sent.Page, sent.Index = sent.Lost+log.Upto+1-sent.Page, log.Upto+1, 0
	}
	return batch, sent
}

// takes reports an event for the sink. One that was told before says nothing new.
func (c *courier) takes(e state.Happened) bool { return !e.Again && c.Takes(e.Name) }

// deliver sends events and records what came of it.
func (c *courier) deliver(ctx context.Context, log *state.Stretch, batch []state.Happened, sent state.Sink) error {
	err := c.send(ctx, c.client, c.within, c.Fleet, batch)
	if ctx.Err() != nil { // it may be there: the next reactor sends it again
		return ctx.Err()
	}
	_, refused := errors.AsType[refusedError](err)
	if refused && len(batch) > 1 { // one of them may be to blame
		c.alone = len(batch)
		return nil
	}
	c.settle(err, refused, len(batch), sent)
	c.count(log)
	return c.keep(ctx)
}

// settle notes what came of a delivery.
func (c *courier) settle(err error, refused bool, n int, sent state.Sink) {
	why := ""
	if err != nil {
		why = safetext.Line(err.Error(), 300)
	}
	if err != nil && !refused {
		if c.at.Failures == 0 {
			c.at.Since = time.Now().UTC()
		}
		if c.at.Failures == 0 || c.at.Error != why {
			c.log.Warnf("events cannot be sent: %s; it is tried again", why)
		}
		c.at.Failures++
		c.at.Error, c.pause = why, wait(c.at.Failures, err)
		return
	}
	if c.at.Failures > 0 {
		c.log.Info("events can be sent again")
	}
	c.at.Page, c.at.Index, c.at.Lost = sent.Page, sent.Index, sent.Lost
	c.at.Failures, c.at.Since, c.pause, c.alone = 0, time.Time{}, 0, max(0, c.alone-n)
	if !refused {
		c.at.Sent += n
		return
	}
	if c.at.Dropped++; c.at.Error != why {
		c.log.Warnf("an event is dropped: %s", why)
	}
	c.at.Error = why
}

// count counts what waits for the sink, as far as the log was read.
func (c *courier) count(log *state.Stretch) {
	c.at.Waiting, c.at.More = 0, log.Upto < log.Last
	for _, page := range log.Pages {
		for i, e := range page.Events {
			behind := page.Number > c.at.Page || page.Number == c.at.Page && i >= c.at.Index
			if behind && c.takes(e) {
				c.at.Waiting++
			}
		}
	}
}

// keep records how far the sink is.
func (c *courier) keep(ctx context.Context) error {
	if to := c.host(); to != "" { // the file with the url may have come meanwhile
		c.at.To = to
	}
	c.at.At = time.Now().UTC()
	still, err := c.Store.Sinks.Keep(ctx, c.since, c.Name, c.at)
	if err == nil && !still {
		err = errOther
	}
	if err == nil {
		kept := c.at
		c.kept = &kept
	}
	return err
}
