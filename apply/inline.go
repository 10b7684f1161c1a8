package apply

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// inline is bounded on the step's own goroutine. Steps of groups are many and short: handing each call to another
// goroutine costs more than the call. If do hangs, another goroutine takes over: hangs says what becomes of the step,
// and the run goes on. This goroutine ends when do returns, so callers hold no lock, and owe nothing that a deferred
// call does not do. What do leaves open is closed by unwanted, where nobody else closes it: it gets what do returned
// too late, or the zero value if do was not called because something else hangs that works on the same.
func inline[T any](
	ctx context.Context,
	s *running,
	doing string,
	do func() (T, error),
	unwanted func(T),
	hangs func(error),
) (value T, err error) {
	a := s.x.options.Host.abandoned()
	if hung := a.find(s.step); hung != nil {
		unwanted(value)
		return value, hung
	}
	began, returned := time.Now(), make(chan struct{})
	var taken atomic.Bool // by the goroutine that goes on with the step
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-returned:
			return
		case <-time.After(a.grace()):
		}
		if !taken.CompareAndSwap(false, true) {
			return
		}
		hung := &HungError{s.step.ID(), doing, began}
		a.add(hung, s.step.worksOn())
		go func() {
			<-returned
			a.drop(hung)
		}()
		hangs(hung)
		s.ended()
		s.schedule.work(s.schedule.tell(event{step: s.place, end: true}))
	})
	value, err = do()
	late := !taken.CompareAndSwap(false, true)
	if late {
		unwanted(value)
	}
	close(returned)
	if late {
		runtime.Goexit()
	}
	stop()
	return value, err
}
