package lock

import "time"

// waiting tells why the node waits, and since when.
type waiting struct {
	req        *Request
	pool       *pool
	since      time.Time
	lastReason string
}

// notify tells a new reason to whoever wants to know.
func (n *waiting) notify(w *Wait) *Wait {
	if w == nil {
		return nil
	}
	if n.since.IsZero() {
		n.since = time.Now()
	}
	w.Since = n.since
	if n.pool.slots {
		w.Depends = append([]string{}, n.req.Rules.Depends...)
	}
	if n.req.Waiting != nil && w.Error() != n.lastReason {
		n.lastReason = w.Error()
		n.req.Waiting(w)
	}
	return w
}

// over forgets the last reason: the node waits no more.
func (n *waiting) over() { n.since, n.lastReason = time.Time{}, "" }
