package event

import (
	"context"
	"time"
)

// saveClock is the age at which a reactor saves the fleet's clock again. The time since is lost if etcd changes its
// leader and another host becomes the reactor.
const saveClock = 10 * time.Minute

// clock is the fleet's clock in a term of the reactor. It continues with the monotonic clock of the host, which nobody
// sets.
type clock struct {
	term int64 // the revision at which this process became the reactor
	now  time.Time
	age  time.Duration // since it was saved
	read time.Time     // when it was now
}

// readClock returns the time by the fleet's clock. It reads the clock once in a term, and again to save it.
func (r *Reactor) readClock(ctx context.Context, since int64) (time.Time, error) {
	c, passed := r.clock, time.Since(r.clock.read)
	if c.term == since && c.age+passed < saveClock {
		return c.now.Add(passed), nil
	}
	read := time.Now()
	is, err := r.Store.Events.Time(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if c.term == since { // it may have lost time in etcd
		is.Now = c.now.Add(read.Sub(c.read))
	}
	if !is.Saved || is.Age >= saveClock || c.term == since {
		saved, done, err := r.Store.Events.SaveTime(ctx, since, is)
		if err == nil && !done {
			err = errNotReactor
		}
		if err != nil {
			return time.Time{}, err
		}
		is = saved
	}
	r.clock = clock{since, is.Now, is.Age, read}
	return is.Now, nil
}
