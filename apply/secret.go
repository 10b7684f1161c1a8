package apply

import (
	"encoding/json"
	"slices"

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
	Secret bool   `json:"secret,omitempty"` // it is sensitive
	Sealed []byte `json:"sealed,omitempty"` // the result
}

// record is a step's report for the journal.
func (v Vault) record(line StepReport, sensitive bool) (recorded, error) {
	out := recorded{StepReport: line, Secret: sensitive}
	if !sensitive {
		return out, nil
	}
	out.hideText()
	if v.Seal == nil || line.Result.StdOut == "" && line.Result.StdErr == "" && line.Result.Data == nil {
		return out, nil
	}
	text, err := json.Marshal(line.Result)
	if err != nil {
		return out, err
	}
	if out.Sealed, err = v.Seal(text); err == nil && out.Sealed != nil {
		out.Result.StdOut, out.Result.StdErr, out.Result.Data = "", "", nil
	}
	return out, err
}

// report is a report of the journal with its result; false where that cannot be decrypted any more, such as after the
// host got new keys.
func (v Vault) report(r recorded) (StepReport, bool) {
	r.hidden = r.Secret
	if len(r.Sealed) == 0 {
		return r.StepReport, true
	}
	if v.Open == nil {
		return r.StepReport, false
	}
	text, err := v.Open(r.Sealed)
	if err != nil || json.Unmarshal(text, &r.Result) != nil {
		return r.StepReport, false
	}
	return r.StepReport, true
}

// sensitive reports a step of which nothing is shown: it is one, or what it returned holds a secret.
func (s *running) sensitive() bool { return isSensitive(s.x.program.catalog, s.step, s.r) }

func isSensitive(cat *render.Catalog, s *boundStep, r *StepReport) bool {
	if s.Sensitive || r.hidden {
		return true
	}
	known := cat.Secrets()
	if !known.Any() {
		return false
	}
	data := ""
	if r.Result.Data != nil {
		text, err := json.Marshal(r.Result.Data)
		if err != nil {
			return true
		}
		data = string(text)
	}
	return slices.ContainsFunc(
		[]string{r.Diff, r.Summary, r.Reason, r.Result.StdOut, r.Result.StdErr, r.Result.State, data},
		known.Quoted,
	)
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
	for _, param := range s.secret(cat, m.Params) {
		e := m.ErrorAt("macro %q: %s: a secret cannot stand here: %s", m.Name, param, s.Where)
		e.Hint = s.Instead
		out = append(out, e)
	}
	return out
}
