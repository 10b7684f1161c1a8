package apply_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/patience"
)

// working is a command that works until it is let go, or its context ends.
type working struct {
	Name        string `yaml:"name,required"`
	lab         *lab
	begun, done chan struct{}
}

func (a *working) Unchecked() bool { return true }
func (a *working) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "work"}, nil
}

func (a *working) Apply(ctx context.Context, _ *apply.Host, _ apply.Change) (apply.Output, error) {
	close(a.begun)
	select {
	case <-ctx.Done():
		return apply.Output{}, errors.New("it was cut off")
	case <-a.done:
		a.lab.note("done")
		return apply.Output{StdOut: "done"}, nil
	}
}

// TestFinishes: a run that is told to stop finishes the step that runs, with its conditions, and starts no other one;
// the next run does not repeat it. A step that does not end in time, or that is to end now, is cut off, and runs again.
func TestFinishes(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name, condition string
		within          time.Duration
		told            func(let, now chan struct{})
		first           string
		again           bool
	}{
		{"it ends in time", "runOptions: {}", hour, func(let, _ chan struct{}) { close(let) }, "slow changed", false},
		{"its conditions are asked", condition("success", "steps['slow'].StdOut == 'done'"), hour, func(let, _ chan struct{}) { close(let) }, "slow changed", false},
		{"it does not end in time", "runOptions: {}", time.Millisecond, func(_, _ chan struct{}) {}, "slow pending", true},
		{"it is to end now", "runOptions: {}", hour, func(_, now chan struct{}) { close(now) }, "slow pending", true},
		{"nothing is finished", "runOptions: {}", 0, func(_, _ chan struct{}) {}, "slow pending", true},
		{"it waits behind its work", condition("continue", "false", "retry: {interval: 1h}"), hour, func(let, _ chan struct{}) { close(let) }, "slow pending", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, let, now := newLab(t), make(chan struct{}), make(chan struct{})
			var slow *working
			l.more = []apply.Spec{{Name: "t.work", New: func() apply.Action {
				slow = &working{lab: l, begun: make(chan struct{}), done: let}
				return slow
			}}}
			js := one(thing("t.work", "slow", c.condition), cmds("behind"))
			p, ctx := l.program(js), context.Background()
			ctx, stop := context.WithCancel(ctx)
			o := l.options()
			o.Host.Finish = apply.Finish{Within: c.within, Now: now}
			go func() {
				<-slow.begun
				stop()
				c.told(let, now)
			}()
			r, err := p.Run(ctx, o)
			if err != nil || r.Stopped == "" || r.Failed() || !r.Pending() {
				t.Fatalf("%v: stopped %q, failed %v (%s)", err, r.Stopped, r.Failed(), r.Why())
			}
			l.want(r, c.first)
			l.ran = nil
			l.more = []apply.Spec{{Name: "t.work", New: func() apply.Action { return &command{lab: l} }}}
			if c.again {
				js = one(thing("t.work", "slow"), cmds("behind"))
			}
			l.run(js)
			if c.again {
				l.wantRan("slow", "behind")
			} else {
				l.wantRan("behind")
			}
		})
	}
}

// stopping is told when the log says that a run stops.
type stopping chan string

func (s stopping) Levels() []logrus.Level { return logrus.AllLevels }

func (s stopping) Fire(e *logrus.Entry) error {
	s <- e.Message
	return nil
}

// TestStoppingIsSaid: who stops a run is told which step ends first; a run whose time is over says nothing of that.
func TestStoppingIsSaid(t *testing.T) {
	for _, told := range []bool{true, false} {
		l, let, says := newLab(t), make(chan struct{}), make(stopping, 10)
		var slow *working
		l.more = []apply.Spec{{Name: "t.work", New: func() apply.Action {
			slow = &working{lab: l, begun: make(chan struct{}), done: let}
			return slow
		}}}
		p := l.program(one(thing("t.work", "slow")))
		over := patience.Stretch(500 * time.Millisecond)
		if told {
			over = time.Hour
		}
		ctx, stop := context.WithTimeout(context.Background(), over)
		log := logrus.New()
		log.SetOutput(io.Discard)
		log.AddHook(says)
		o := l.options()
		o.Log, o.Host.Finish = logrus.NewEntry(log), apply.Finish{Within: time.Hour}
		said := make(chan string, 1)
		go func() {
			<-slow.begun
			if told {
				stop()
			}
			<-ctx.Done()
			select {
			case text := <-says:
				said <- text
			case <-time.After(map[bool]time.Duration{true: time.Minute, false: 20 * time.Millisecond}[told]):
				said <- ""
			}
			close(let)
		}()
		if _, err := p.Run(ctx, o); err != nil {
			t.Fatal(err)
		}
		stop()
		want := map[bool]string{true: "stopping: step a/slow ends first, within 1h0m0s"}[told]
		if text := <-said; text != want {
			t.Errorf("told to stop %v: %q", told, text)
		}
	}
}
