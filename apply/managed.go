package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/pullet/pullet/state"
)

// fingerprint is what the step says, as a digest: its parameters, and the files of the repository that it reads.
func (s *boundStep) fingerprint() string {
	h := sha256.New()
	// Encoding cannot fail: parameters are plain data from YAML.
	data, _ := json.Marshal([]any{s.Action, s.Params.Value()})
	h.Write(data)
	if s.read != nil {
		h.Write(s.read.Sum(nil))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// drifted reports that the host changed, and not the repository: the step said the same when it was applied last.
func (x *execution) drifted(s *boundStep) bool {
	m := x.Journal.Managed()
	before, applied := m.Steps[s.ID()]
	u, ok := s.act.(Unchecked)
	return applied && !(ok && u.Unchecked()) && (m.Digest == x.applied() || before == s.fingerprint())
}

// applied names what was applied when all of it was: the version, which has the files, and the catalog, which has what the fleet said.
func (x *execution) applied() string { return x.catalog.Version + " " + x.catalog.Digest }

// manages are the resources of a step.
func (s *boundStep) manages() []Resource {
	if m, ok := s.act.(Manager); ok && !s.job.Validation {
		return m.Manages()
	}
	return nil
}

// absent are the resources of the step that are not on the host. Where that cannot be told they count as being there: only what pullet
// brought is ever removed.
func (s *running) absent(ctx context.Context) []string {
	var out []string
	for _, what := range s.manages() {
		if what.Path != "" && !what.Part {
			if at, err := s.Host.Path(what.Path); err == nil && notThere(at) {
				out = append(out, what.ID)
			}
			continue
		}
		removal := s.removal(what.ID, state.Thing{Job: s.Job, Absent: what.Absent, Params: what.Params})
		if removal == nil {
			continue
		}
		if change, err := removal.act.Check(ctx, s.Host); err == nil && change.Empty() {
			out = append(out, what.ID)
		}
	}
	return out
}

func notThere(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// remember writes what the run brought to the host.
func (x *execution) remember() error {
	m := x.Journal.Managed()
	whole := !x.report.Failed() && !x.report.Pending()
	left := x.leftIDs()
	if whole && m.Digest == x.applied() && x.report.Counts[Changed] == 0 && slices.Equal(left, m.Left) {
		return nil
	}
	m.Left, m.Digest = left, ""
	if whole {
		m.Digest = x.applied()
	}
	steps := map[string]string{}
	watchers := x.watchers()
	for _, s := range x.steps {
		if resolved := x.resolved[s.ID()]; resolved != nil {
			s = resolved
		}
		if before, ok := m.Steps[s.ID()]; ok {
			steps[s.ID()] = before
		}
		r := x.reports[s.ID()]
		if s.job.Validation || r == nil || r.Outcome != OK && r.Outcome != Changed {
			continue
		}
		if x.restored[s.ID()] {
			delete(steps, s.ID())
			continue
		}
		steps[s.ID()] = s.fingerprint()
		for _, what := range s.manages() {
			m.Things[what.ID] = state.Thing{
				Job: s.Job, Step: s.Name, Order: s.index, New: m.Things[what.ID].New || slices.Contains(r.Made, what.ID), Prune: s.job.Prune,
				Path: what.Path, Absent: what.Absent, Params: what.Params, Watchers: watchers[s.ID()],
			}
		}
	}
	m.Steps = steps
	return x.Journal.SaveManaged()
}

// watchers are, for each step, those that react to its change.
func (x *execution) watchers() map[string][]string {
	out := map[string][]string{}
	for _, s := range x.steps {
		if _, can := s.act.(Reactor); !can {
			continue
		}
		for _, t := range s.reactsTo() {
			out[t.ID()] = append(out[t.ID()], s.ID())
		}
	}
	return out
}

// reactsTo are the steps whose changes this one reacts to.
func (s *boundStep) reactsTo() []*boundStep {
	return slices.Concat(s.needs["watch"], s.needs["watch_any"], s.needs["listen"])
}
