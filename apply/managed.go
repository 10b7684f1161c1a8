package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/journal"
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

// Digest is over what the program would do to this host: its steps, what they read, and the variables of the host.
func (p *Program) Digest() string {
	h := sha256.New()
	for _, s := range p.steps {
		h.Write([]byte(s.fingerprint()))
	}
	// Encoding cannot fail: variables are plain data from YAML.
	data, _ := json.Marshal([]any{p.catalog.Digest, p.catalog.Vars})
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// drifted reports whether the host changed, and neither the repository nor something outside of both: the step was the
// same when it was applied last.
func (x *execution) drifted(s *boundStep, change Change) bool {
	m := x.options.Journal.Managed()
	before, applied := m.Steps[s.ID()]
	u, ok := s.act.(Unchecked)
	return applied && !change.Outside && !(ok && u.Unchecked()) && (m.Digest == x.applied() || before == s.fingerprint())
}

// applied names what was applied when all of it was: the version, which has the files, and the catalog, which has what
// the fleet said.
func (x *execution) applied() string {
	return x.program.catalog.Version + " " + x.program.catalog.Digest
}

// manages are the resources of a step. The text of a sensitive one is not in their ids, which reports show.
func (s *boundStep) manages() []Resource {
	m, ok := s.act.(Manager)
	if !ok || s.job.Validation {
		return nil
	}
	all := m.Manages()
	for i, what := range all {
		if s.Sensitive && what.Part {
			sum := sha256.Sum256([]byte(what.ID))
			all[i].ID = "file " + what.Path + ": sensitive " + hex.EncodeToString(sum[:4])
		}
		if s.Secret && what.Part { // its removal would quote the secret in managed.json, so there is none
			all[i].Absent, all[i].Params = "", nil
		}
	}
	return all
}

// absent are the resources of the step that are not on the host. Where that cannot be told they count as being there:
// only what pullet brought is ever removed.
func (e *entry) absent(ctx context.Context) []string {
	var out []string
	for _, what := range e.s.step.manages() {
		if what.Path != "" && !what.Part {
			seen := e.s.mates.seen
			if seen != nil && seen.gone || seen == nil && !e.s.step.isThere(ctx, e.s.x.options.Host, what.Path) {
				out = append(out, what.ID)
			}
			continue
		}
		removal := e.s.x.program.removal(what.ID, journal.Thing{Job: e.s.step.Job, Absent: what.Absent, Params: what.Params})
		if removal == nil {
			continue
		}
		if change, err := removal.compare(ctx, e.s.x.options.Host); err == nil && change.Empty() {
			out = append(out, what.ID)
		}
	}
	return out
}

// gone reports that nothing stands at a path. Where that cannot be told, something may.
func (h *Host) gone(path string) bool {
	at, err := h.Entry(path)
	if err != nil {
		return false
	}
	defer at.Close()
	_, err = at.Lstat()
	return hostfile.NotThere(err)
}

// remember writes what the run brought to the host, and what is owed to it.
func (x *execution) remember() error {
	m := x.options.Journal.Managed()
	whole := !x.report.Failed() && !x.report.Pending()
	left, due := x.report.leftIDs(), x.dueReactions()
	if whole && m.Digest == x.applied() && x.report.Counts[Changed] == 0 && slices.Equal(left, m.Left) &&
		slices.Equal(due, m.Owed) {
		return nil
	}
	m.Left, m.Owed, m.Digest = left, due, ""
	if whole {
		m.Digest = x.applied()
	}
	steps := map[string]string{}
	for _, s := range x.program.steps {
		if before, ok := m.Steps[s.ID()]; ok {
			steps[s.ID()] = before
		}
		if resolved := x.resolved[s.ID()]; resolved != nil {
			s = resolved
		} else if s.Waits() || s.late {
			continue // what it says was not known in this run
		}
		r := x.reports[s.ID()]
		switch {
		case s.job.Validation || r == nil:
		case x.restored[s.ID()]:
			delete(steps, s.ID())
		case r.Outcome == OK || r.Outcome == Changed:
			steps[s.ID()] = s.fingerprint()
			x.recordThings(s, r, s.watchers, s.manages())
		case r.Outcome == Failed: // what it made before it failed
			x.recordThings(
				s,
				r,
				s.watchers,
				slices.DeleteFunc(s.manages(), func(what Resource) bool { return !slices.Contains(r.Made, what.ID) }),
			)
		}
	}
	m.Steps = steps
	x.handOver()
	return x.options.Journal.SaveManaged()
}

// recordThings notes resources as those of a step.
func (x *execution) recordThings(s *boundStep, r *StepReport, watchers []string, resources []Resource) {
	things := x.options.Journal.Managed().Things
	for _, what := range resources {
		known, ok := things[what.ID] // what was there before, and was put right since, is not new
		things[what.ID] = s.thing(what, known.New || !ok && slices.Contains(r.Made, what.ID), watchers)
	}
}

func (s *boundStep) thing(what Resource, isNew bool, watchers []string) journal.Thing {
	return journal.Thing{
		Job: s.Job, Step: s.Name, Order: s.index, New: isNew, Prune: s.job.Prune, Sensitive: s.Sensitive, Secret: s.Secret,
		Watchers: watchers,
		Path:     what.Path, Part: what.Part, Absent: what.Absent, Params: what.Params,
	}
}

// making are the things that the step is about to make.
func (e *entry) making() map[string]journal.Thing {
	if len(e.s.r.Made) == 0 {
		return nil
	}
	out := map[string]journal.Thing{}
	for _, what := range e.s.step.manages() {
		if slices.Contains(e.s.r.Made, what.ID) {
			out[what.ID] = e.s.step.thing(what, true, e.s.step.watchers)
		}
	}
	return out
}

// handOver drops things that something else stands for now: the same file by another path, a file of which they were a
// part, a directory that an archive fills. What was restored to nothing is gone.
func (x *execution) handOver() {
	things, d := x.options.Journal.Managed().Things, x.declared()
	for _, one := range x.keeper.kept {
		if one.None && x.restored[one.Step] && x.options.Host.gone(one.Path) {
			delete(things, "file "+one.Path)
		}
	}
	for id, t := range things {
		if d.ids[id] || d.steps[t.Job+"/"+t.Step] || t.Path == "" {
			continue
		}
		by, covered := d.covers(x.options.Host, t.Path)
		if !covered {
			continue
		}
		if heir, ok := things[by]; ok && t.New && !t.Part {
			heir.New = true
			things[by] = heir
		}
		delete(things, id)
	}
}

// declared is what the catalog declares, as far as this run knows.
type declared struct {
	ids   map[string]bool
	whole map[string]string // where a file lies on this machine -> its id
	fills []string          // directories that are filled by what only their step knows
	steps map[string]bool   // steps of which it is not known what they say
	dirs  map[string]string // where directories lie on this machine, as far as it was asked
}

func (x *execution) declared() *declared {
	d := &declared{
		ids:   map[string]bool{},
		whole: map[string]string{},
		steps: map[string]bool{},
		dirs:  map[string]string{},
	}
	for _, s := range x.program.steps {
		if resolved := x.resolved[s.ID()]; resolved != nil {
			s = resolved
		} else if s.Waits() || s.late {
			d.steps[s.ID()] = true
			continue
		}
		for _, what := range s.manages() {
			d.ids[what.ID] = true
			if at, err := d.at(x.options.Host, what.Path); err == nil && !what.Part {
				d.whole[at] = what.ID
			}
			if at, err := x.options.Host.Resolve(what.Fills); err == nil {
				d.fills = append(d.fills, at+"/")
			}
		}
	}
	return d
}

// at is where a path lies on this machine. Many paths have few directories.
func (d *declared) at(h *Host, name string) (string, error) {
	dir, base := path.Split(path.Clean(name))
	if known, ok := d.dirs[dir]; ok && base != "" {
		return path.Join(known, base), nil
	}
	at, err := h.Path(name)
	if err == nil && base != "" { // "/" has no directory
		d.dirs[dir] = path.Dir(at)
	}
	return at, err
}

// covers reports that a path is declared under another id, and under which if it has one.
func (d *declared) covers(h *Host, name string) (id string, ok bool) {
	at, err := d.at(h, name)
	if err != nil {
		return "", false
	}
	if id, ok := d.whole[at]; ok {
		return id, true
	}
	return "", slices.ContainsFunc(d.fills, func(dir string) bool { return strings.HasPrefix(at+"/", dir) })
}

// has reports that a thing is still declared.
func (d *declared) has(h *Host, id string, t journal.Thing) bool {
	if d.ids[id] || d.steps[t.Job+"/"+t.Step] {
		return true
	}
	if t.Path == "" {
		return false
	}
	_, covered := d.covers(h, t.Path)
	return covered
}
