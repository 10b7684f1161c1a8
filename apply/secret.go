package apply

import (
	"encoding/json"
	"slices"

	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/render"
)

// Vault encrypts what is written to disk for this host alone. Seal gives nothing where the host has no key: the text
// stays in clear then, as with the zero Vault.
type Vault struct {
	Seal func(text []byte) ([]byte, error)
	Open func(sealed []byte) ([]byte, error)
}

// recorded is a step's report as the journal has it. Of a sensitive step the result is encrypted where the host has a
// key: a later run needs it, and nobody else.
type recorded struct {
	StepReport
	Secret bool   `json:"secret,omitempty"` // it holds a secret
	Sealed []byte `json:"sealed,omitempty"` // the result
}

// record is a step's report for the journal; secret says that it holds one. A result that cannot be encrypted although
// the host has a key is left out: the step has ended, whatever is with the key.
func (v Vault) record(line StepReport, sensitive, secret bool) recorded {
	out := recorded{StepReport: line, Secret: secret}
	if !sensitive {
		return out
	}
	out.hideText()
	if v.Seal == nil || !line.Result.Returned() {
		return out
	}
	text, err := json.Marshal(line.Result)
	if err == nil {
		out.Sealed, err = v.Seal(text)
	}
	if err != nil || out.Sealed != nil {
		out.Result = line.Result.Outcome()
		out.Result.Withheld = err != nil
	}
	return out
}

// report is a report of the journal with its result. Where that cannot be decrypted any more, such as after the host
// got new keys, the step still is what it was, and its result is withheld.
func (v Vault) report(r recorded) StepReport {
	r.hidden = r.Secret
	if len(r.Sealed) == 0 {
		return r.StepReport
	}
	if v.Open != nil {
		text, err := v.Open(r.Sealed)
		if err == nil && json.Unmarshal(text, &r.Result) == nil {
			return r.StepReport
		}
	}
	r.Result.Withheld = true
	return r.StepReport
}

// record is a step's report for the journal.
func (s *running) record(line StepReport) recorded {
	secret := holdsSecret(s.x.program.catalog, s.step, s.r)
	return s.x.options.Vault.record(line, s.step.Sensitive || secret, secret)
}

// holdsSecret reports a step that was made with a secret, or returned one.
func holdsSecret(cat *render.Catalog, s *boundStep, r *StepReport) bool {
	known := cat.Secrets()
	if s.Secret || r.hidden || !known.Any() {
		return s.Secret || r.hidden
	}
	texts := append(r.Result.Texts(), r.Diff, r.Summary, r.Reason)
	return slices.ContainsFunc(texts, known.Quoted)
}

// hadSecret reports a step that manages what held a secret before: its diff would show that.
func hadSecret(things map[string]journal.Thing, s *boundStep) bool {
	for _, what := range s.manages() {
		for id, known := range things {
			if known.Secret && (id == what.ID || what.Path != "" && known.Path == what.Path) {
				return true
			}
		}
	}
	return false
}

// reading gives results, and notes when one of them is that of a step of which nothing is shown.
func (a *admission) reading(hidden *bool) render.Results {
	x, job := a.s.x, a.s.step.Job
	results := a.results(job)
	return func(name string) (render.StepResult, bool) {
		x.mu.Lock()
		id, ok := x.resultID(job, name)
		*hidden = *hidden || ok && x.hidden[id]
		x.mu.Unlock()
		return results(name)
	}
}

// secretShown finds secrets in parameters that others can see: in the arguments of a command, in names, in the fleet's
// record.
func (s *boundStep) secretShown(cat *render.Catalog) (out render.ErrorList) {
	names := Shown{Params: []string{"name"}, Where: "plans and reports show names"}
	for _, shown := range []Shown{names, s.spec.Shows} {
		for _, param := range shown.secret(cat, s.Params) {
			e := s.ErrorAt(s.Params.Position(param, s.Pos), "%s: a secret cannot stand here: %s", param, shown.Where)
			e.Hint = shown.Instead
			out = append(out, e)
		}
	}
	return out
}

// secret are the parameters that hold a secret and can be seen.
func (s Shown) secret(cat *render.Catalog, p render.Params) (out []string) {
	for _, param := range s.Params {
		if cat.Secrets().In(p, param) {
			out = append(out, param)
		}
	}
	return out
}

// secretInMacro is secretShown for what a macro reads with.
func (s Shown) secretInMacro(cat *render.Catalog, m *render.Macro) (out render.ErrorList) {
	for _, param := range s.Params {
		if !cat.Secrets().In(m.Params, param) && !cat.Secrets().Named(m.Params, param) {
			continue
		}
		e := m.ErrorAt("macro %q: %s: a secret cannot stand here: %s", m.Name, param, s.Where)
		e.Hint = s.Instead
		out = append(out, e)
	}
	return out
}
