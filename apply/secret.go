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

// forRecord is a step's report for the journal.
func (s *running) forRecord(line StepReport) (recorded, error) {
	if !s.sensitive() { // before anything of the line is left out
		return recorded{StepReport: line}, nil
	}
	line.hideText()
	out := recorded{StepReport: line, Secret: true}
	seal := s.x.options.Vault.Seal
	if seal == nil || line.Result.StdOut == "" && line.Result.StdErr == "" && line.Result.Data == nil {
		return out, nil
	}
	text, err := json.Marshal(line.Result)
	if err != nil {
		return out, err
	}
	if out.Sealed, err = seal(text); err == nil && out.Sealed != nil {
		out.Result.StdOut, out.Result.StdErr, out.Result.Data = "", "", nil
	}
	return out, err
}

// opened is a report of the journal with its result; false where that cannot be decrypted any more, such as after the
// host got new keys.
func (x *execution) opened(r recorded) (StepReport, bool) {
	r.secret = r.Secret
	if len(r.Sealed) == 0 {
		return r.StepReport, true
	}
	if x.options.Vault.Open == nil {
		return r.StepReport, false
	}
	text, err := x.options.Vault.Open(r.Sealed)
	if err != nil || json.Unmarshal(text, &r.Result) != nil {
		return r.StepReport, false
	}
	return r.StepReport, true
}

// sensitive reports a step of which nothing is shown: it is one, or what it returned holds a secret.
func (s *running) sensitive() bool { return s.x.sensitive(s.step, s.r) }

func (x *execution) sensitive(s *boundStep, r *StepReport) bool {
	if s.Sensitive || r.secret {
		return true
	}
	cat := x.program.catalog
	if !cat.HasSecrets() {
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
		cat.Quotes,
	)
}

// reading gives results, and notes when one of them is that of a step of which nothing is shown.
func (s *running) reading(results render.Results, hidden *bool) render.Results {
	return func(name string) (render.StepResult, bool) {
		s.x.mu.Lock()
		id, ok := s.x.resultID(s.step.Job, name)
		*hidden = *hidden || ok && s.x.hidden[id]
		s.x.mu.Unlock()
		return results(name)
	}
}

// secretShown finds secrets in parameters that others can see: in the arguments of a command, in names, in the fleet's
// record.
func (s *boundStep) secretShown(cat *render.Catalog) render.ErrorList {
	out := s.secretIn(cat, Shown{Params: []string{"name"}, Where: "plans and reports show names"})
	return append(out, s.secretIn(cat, s.spec.Shows)...)
}

func (s *boundStep) secretIn(cat *render.Catalog, shown Shown) (out render.ErrorList) {
	for _, param := range shown.Params {
		if cat.SecretIn(s.Params, param) {
			e := s.ErrorAt(s.Params.Position(param, s.Pos), "%s: a secret cannot stand here: %s", param, shown.Where)
			e.Hint = shown.Instead
			out = append(out, e)
		}
	}
	return out
}
