package apply

import (
	"context"
	"testing"
	"time"

	"github.com/pullet/pullet/render"
)

// changing is a look at a fleet that changes when it is told to.
type changing struct{ changed, asked chan struct{} }

func (c *changing) View(context.Context) (render.View, error) { return render.View{}, nil }
func (c *changing) Watches() []string                         { return nil }
func (c *changing) Changed(ctx context.Context) {
	close(c.asked)
	select {
	case <-c.changed:
	case <-ctx.Done():
	}
}

// TestPauseIsOver: a pause is over after its interval; the end of its context ends it before, and so does a change of
// what was looked at, but not at once. A short one does not look.
func TestPauseIsOver(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, c := range map[string]struct {
		every       time.Duration
		look, ended bool
		due, asks   bool
	}{
		"its interval":              {time.Millisecond, false, false, true, false},
		"no interval":               {0, false, false, true, false},
		"the context ends":          {hour, false, true, false, false},
		"what is looked at changes": {hour, true, false, false, true},
		"a change, and it ends":     {hour, true, true, false, true},
		"it is too short for that":  {leastPause, true, false, true, false},
		"it ends before the least":  {leastPause + time.Millisecond, true, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := &changing{make(chan struct{}), make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &pause{every: c.every}
			if c.look {
				p.fleet = look
			}
			if !c.due {
				close(look.changed)
			}
			if c.ended {
				cancel()
			}
			began := time.Now()
			due := p.over(ctx)
			asked := false
			select {
			case <-look.asked:
				asked = true
			default:
			}
			if due != c.due || asked != c.asks && !c.ended {
				t.Errorf("due %v, asked for changes %v", due, asked)
			}
			if took := time.Since(began); !c.ended && took < min(c.every, leastPause) {
				t.Errorf("it took %v", took)
			}
		})
	}
}
