package metrics

import (
	"maps"
	"math"
	"strings"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// Result is what came of a pull.
type Result string

// The results of pulls.
const (
	Success Result = "success" // the host is at the fleet's version
	Failed  Result = "failed"  // an error, or a step that failed
	Waiting Result = "waiting" // not finished: it waits at a gate, or for etcd
	Refused Result = "refused" // what the repository or the fleet's record offers
)

func results() []Result { return []Result{Success, Failed, Waiting, Refused} }

// Pull is what is shown of one pull.
type Pull struct {
	Ended        time.Time          `json:"ended"`
	Result       Result             `json:"result"`
	Phases       map[string]float64 `json:"phases,omitempty"`       // seconds
	Steps        map[string]int     `json:"steps,omitempty"`        // by what became of them
	Drift        int                `json:"drift,omitempty"`        // steps that corrected it
	Etcd         bool               `json:"etcd,omitempty"`         // it answered
	Answer       float64            `json:"answer,omitempty"`       // seconds that one took, in the mean; 0: unknown
	Repositories []Repository       `json:"repositories,omitempty"` // that the pull came to
	Wait         *Wait              `json:"-"`                      // nil: the host waits for nothing
	Running      *Version           `json:"running,omitempty"`      // nil: none yet
	Fleet        *Version           `json:"fleet,omitempty"`        // nil: it could not be read
	Lease        time.Time          `json:"lease,omitzero"`         // until when the host counts as alive; zero: unknown
}

// Repository is how a state repository answered.
type Repository struct {
	Name    string  `json:"name"`
	Up      bool    `json:"up,omitempty"` // it answered
	Seconds float64 `json:"seconds"`      // that the listing took, and the fetch where there was one
}

// Version is a commit, or what stands for the commits of several repositories.
type Version struct {
	ID      string `json:"id"`
	Commit  string `json:"commit,omitempty"` // of one repository, or NAME=COMMIT of each
	Release string `json:"release,omitempty"`
}

// Wait is what the host waits for.
type Wait struct {
	Kind   string    `json:"kind"`
	Gate   string    `json:"gate"` // tells waits apart, and is not shown
	Halted bool      `json:"halted,omitempty"`
	Since  time.Time `json:"since"`
}

// The bounds of what is shown: a label is a time series.
const (
	maxLabels = 40  // of a kind, such as phases
	maxText   = 200 // bytes of a text
)

// label is a text that may be the value of a label with few values. Another one is "other".
func label(text string) string {
	if len(text) == 0 || len(text) > 32 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz ") != "" {
		return "other"
	}
	return text
}

// labels bounds how many there are.
func labels[V int | uint64 | float64](of map[string]V) map[string]V {
	out := map[string]V{}
	for name, v := range of {
		if name = label(name); v >= 0 && (len(out) < maxLabels || out[name] != 0) {
			out[name] += v
		}
	}
	return out
}

// text is one line of a bounded length.
func text(s string) string {
	return safetext.Line(strings.ToValidUTF8(s, "\uFFFD"), maxText)
}

func (v *Version) fit() *Version {
	if v == nil {
		return nil
	}
	return &Version{text(v.ID), text(v.Commit), text(v.Release)}
}

// fit is the pull within bounds.
func (p Pull) fit() Pull {
	p.Phases, p.Steps = labels(p.Phases), labels(p.Steps)
	p.Drift, p.Answer = max(0, p.Drift), max(0, p.Answer)
	p.Running, p.Fleet = p.Running.fit(), p.Fleet.fit()
	known := map[Result]bool{}
	for _, r := range results() {
		known[r] = true
	}
	if !known[p.Result] {
		p.Result = Failed
	}
	p.Repositories = append([]Repository(nil), p.Repositories[:min(len(p.Repositories), maxLabels)]...)
	for i := range p.Repositories {
		r := &p.Repositories[i]
		r.Name, r.Seconds = text(r.Name), max(0, r.Seconds)
	}
	return p
}

func (w *Wait) fit() *Wait {
	if w == nil {
		return nil
	}
	out := *w
	out.Kind, out.Gate = label(w.Kind), text(w.Gate)
	return &out
}

// add adds counts to others, up to the largest number.
func add(to map[string]uint64, counts map[string]int) map[string]uint64 {
	out := maps.Clone(to)
	if out == nil {
		out = map[string]uint64{}
	}
	for name, n := range counts {
		out[name] = plus(out[name], n)
	}
	return out
}

func plus(count uint64, n int) uint64 {
	more := uint64(max(0, n))
	return count + min(more, math.MaxUint64-count)
}
