package render

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// StepResult is what `steps['name']` holds in an expression. The zero value is a step that has not run.
type StepResult struct {
	State    string `json:"state,omitempty"`    // the resource's own word, such as systemd's; else the result
	Result   string `json:"result,omitempty"`   // ok, failed, skipped, pending; empty before it ran
	Changed  bool   `json:"changed,omitempty"`  // it changed something
	ExitCode int    `json:"exitCode,omitempty"` // of its command
	StdOut   string `json:"stdOut,omitempty"`   // what its command wrote, or what template.expression computed
	StdErr   string `json:"stdErr,omitempty"`   // what its command wrote to standard error
	Data     any    `json:"data,omitempty"`     // what the action returned beside text, such as a decoded JSON answer

	// what it returned is a secret
	Secret bool `json:"secret,omitempty"`
	// it is not in the fleet's record, or not for this host
	Withheld bool `json:"withheld,omitempty"`

	// of a step with target that other nodes took: what each of them returned
	ByNode map[string]StepResult `json:"byNode,omitempty"`
}

// Returned reports more than how the step ended.
func (r StepResult) Returned() bool {
	return r.StdOut != "" || r.StdErr != "" || r.Data != nil || len(r.ByNode) > 0
}

// Outcome is how the step ended, without what it returned.
func (r StepResult) Outcome() StepResult {
	return StepResult{State: r.State, Result: r.Result, Changed: r.Changed, ExitCode: r.ExitCode}
}

// Texts are all texts of what the step returned.
func (r StepResult) Texts() []string {
	out := append(textsIn(r.Data, nil), r.StdOut, r.StdErr, r.State)
	for _, other := range r.ByNode {
		out = append(out, other.Texts()...)
	}
	return out
}

// textsIn are the texts of data, and what those say that are base64, such as the contents of files.
func textsIn(v any, out []string) []string {
	switch v := v.(type) {
	case nil, bool:
	case string:
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			out = append(out, string(raw))
		}
		return append(out, v)
	case int:
		return append(out, strconv.Itoa(v))
	case int64:
		return append(out, strconv.FormatInt(v, 10))
	case float64: // as templates print it, and as people write it
		return append(out, fmt.Sprint(v), strconv.FormatFloat(v, 'f', -1, 64))
	case map[string]any:
		for key, value := range v {
			out = textsIn(value, append(out, key))
		}
	case []any:
		for _, value := range v {
			out = textsIn(value, out)
		}
	default: // a type of an action
		var plain any
		if text, err := json.Marshal(v); err == nil && json.Unmarshal(text, &plain) == nil {
			return textsIn(plain, append(out, string(text)))
		}
	}
	return out
}

// withheld is an error where a step returned what this host cannot read.
func (r StepResult) withheld(name string) error {
	if !r.Withheld {
		return nil
	}
	return fmt.Errorf("what step %q returned is a secret that this host cannot decrypt: it was encrypted for other keys "+
		"than its own, or there was no key for it below hosts in %s; to have it made again: "+
		"pullet rollout settle STEP --again --force", name, SecretsFile)
}
