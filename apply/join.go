package apply

import (
	"context"
	"errors"
	"sync"
)

// batch makes the changes of several steps in one go, such as packages in one transaction. Its steps start together.
// Each comes when it has something to change, or leaves when it has not; when none is left out, the first that came
// acts for all.
type batch struct {
	mu     sync.Mutex
	run    context.Context // of the run
	absent int             // steps that neither came nor left
	acts   []Action
	full   chan struct{} // closed: none is absent
	acted  chan struct{} // closed: the first has acted
	hung   *HungError    // it hangs, and still works on what the others are for
}

func newBatch(run context.Context, steps int) *batch {
	return &batch{run: run, absent: steps, full: make(chan struct{}), acted: make(chan struct{})}
}

// join adds an action and returns when the change was made for all. The context is that of the run: one step's end of
// time is not the end of what is made for others too.
func (j *batch) join(run context.Context, h *Host, s *boundStep, act Joiner) error {
	j.mu.Lock()
	j.acts = append(j.acts, act)
	first := len(j.acts) == 1
	j.mu.Unlock()
	j.leave()
	if !first {
		<-j.acted
		if j.hung != nil {
			return j.hung
		}
		return nil
	}
	defer close(j.acted)
	select {
	case <-j.full:
	case <-run.Done():
		return nil
	}
	if len(j.acts) == 1 {
		return nil
	}
	on, finished := h.Finishing(run)
	defer finished()
	err := s.changeTogether(on, h, act, j.acts)
	errors.As(err, &j.hung)
	return err
}

// leave says that a step is not waited for any longer.
func (j *batch) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.absent--; j.absent == 0 {
		close(j.full)
	}
}

// together applies the step's action, together with those that it can be joined with. What is still to be done
// afterwards it does alone, so that a mistake in one of them fails that one.
func (m *mates) together(ctx context.Context, change Change) (Output, error) {
	act, ok := m.s.step.act.(Joiner)
	if !ok || m.batch == nil {
		return m.s.step.change(m.s.live(ctx), m.s.x.options.Host, change)
	}
	j := m.batch
	m.batch = nil
	err := j.join(m.s.live(j.run), m.s.x.options.Host, m.s.step, act)
	var hung *HungError
	if errors.As(err, &hung) {
		return Output{}, hung
	}
	if err != nil && m.s.x.options.Log != nil {
		m.s.x.options.Log.WithError(err).Info("steps could not be made together: each is tried alone")
	}
	left, err := m.s.step.compare(ctx, m.s.x.options.Host)
	if err != nil || left.Empty() {
		return Output{State: left.State}, err
	}
	if m.s.interrupted = errors.Is(m.s.run.Err(), context.Canceled); m.s.interrupted { // what was begun together has ended
		return Output{}, errStopped
	}
	return m.s.step.change(m.s.live(ctx), m.s.x.options.Host, left)
}

// alone takes the step out of its batch: it waits, or has nothing to change.
func (m *mates) alone() {
	if m.batch != nil {
		m.batch.leave()
		m.batch = nil
	}
}

// joinKey names what a step can be made together with; "" is nothing. Only where the order is left free are steps
// joined.
func (s *boundStep) joinKey() string {
	act, ok := s.act.(Joiner)
	if !ok || s.ordering() != implied || s.Waits() || s.late {
		return ""
	}
	return act.Join()
}

// joints finds the steps that are about to start and can be made together.
func joints(run context.Context, ready []*turn) {
	byKey := map[string][]*turn{}
	for _, t := range ready {
		if key := t.step.joinKey(); key != "" && !t.started() {
			byKey[key] = append(byKey[key], t)
		}
	}
	for _, turns := range byKey {
		if len(turns) < 2 {
			continue
		}
		j := newBatch(run, len(turns))
		for _, t := range turns {
			t.batch = j
		}
	}
}
