package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pullet/pullet/internal/durable"
)

// Record is what a host keeps of its pulls from one process to the next.
type Record struct {
	Pulls   map[string]uint64 `json:"pulls"`             // by result
	Steps   map[string]uint64 `json:"steps"`             // by what became of them
	Drift   uint64            `json:"drift"`             // steps that corrected it
	Success time.Time         `json:"success,omitzero"`  // the end of the last pull that succeeded
	Last    *Pull             `json:"last,omitempty"`    // nil: there was none
	Waiting *Wait             `json:"waiting,omitempty"` // nil: the host waits for nothing
}

// maxRecord is how large the file of a record may be: one of pullet's has a few KiB.
const maxRecord = 1 << 20

// Load reads a record. Where there is none it is empty. With an error the file says something else than a record, or
// cannot be read: the record is empty then, too, and counts begin anew.
func Load(file string) (Record, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxRecord {
		return Record{}, fmt.Errorf("%s is no record of metrics", file)
	}
	var r Record
	if err := durable.ReadJSON(file, &r); err != nil {
		return Record{}, err
	}
	return r.fit(), nil
}

// fit is the record within bounds.
func (r Record) fit() Record {
	r.Pulls, r.Steps, r.Waiting = labels(r.Pulls), labels(r.Steps), r.Waiting.fit()
	if r.Last != nil {
		last := r.Last.fit()
		r.Last = &last
	}
	return r
}

// Save keeps the record.
func (r Record) Save(file string) error { return durable.WriteJSON(file, r) }

// With is the record behind a pull. What the pull could not learn stays as it was.
func (r Record) With(p Pull) Record {
	p = p.fit()
	if before := r.Last; before != nil {
		if p.Lease.IsZero() {
			p.Lease = before.Lease
		}
		if p.Fleet == nil {
			p.Fleet = before.Fleet
		}
	}
	r.Pulls, r.Steps = add(r.Pulls, map[string]int{string(p.Result): 1}), add(r.Steps, p.Steps)
	r.Drift = plus(r.Drift, p.Drift)
	if p.Result == Success {
		r.Success = p.Ended
	}
	r.Last = &p
	return r.WithWait(p.Wait)
}

// WithWait is the record of a host that waits, or of one that waits no more. A wait at the same gate goes on.
func (r Record) WithWait(w *Wait) Record {
	before := r.Waiting
	r.Waiting = w.fit()
	if w != nil && before.same(r.Waiting) && before.Since.Before(w.Since) {
		r.Waiting.Since = before.Since
	}
	return r
}

func (w *Wait) same(as *Wait) bool { return w != nil && w.Kind == as.Kind && w.Gate == as.Gate }

// Begins reports a wait that the record does not have.
func (r Record) Begins(w *Wait) bool { return !r.Waiting.same(w.fit()) }
