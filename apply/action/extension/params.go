package extension

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// decode is a step's parameters as plain JSON, with the defaults of those that are not set, and what the schema does
// not allow.
func (s *paramSchema) decode(p render.Params, fallback render.Position) (map[string]any, render.ErrorList) {
	values := map[string]any{}
	for name, value := range p.Value() {
		if value != nil { // nothing behind the colon: it is not set
			values[name] = s.typed(name, value, p)
		}
	}
	for name, value := range s.defaults {
		if _, set := values[name]; !set {
			values[name] = value
		}
	}
	plain, err := plainJSON(values)
	if err != nil { // not a number, in YAML
		return nil, render.ErrorList{p.Mistake(nil, false, fallback, "parameters: %v", err)}
	}
	out, _ := plain.(map[string]any)
	invalid, _ := s.Validate(plain).(*jsonschema.ValidationError)
	return out, s.mistakes(invalid, p, fallback)
}

// typed reads a parameter as built-in actions do: where the schema wants a text, a number is the text that it was
// written as, and where it wants a number or a truth value, a text that reads as one is one, such as what another step
// printed.
func (s *paramSchema) typed(name string, value any, p render.Params) any {
	text, isText := value.(string)
	switch s.types[name] {
	case "string":
		if !isText && p.Text(name) != "" {
			return p.Text(name)
		}
	case "integer":
		if n, err := strconv.ParseInt(text, 10, 64); isText && err == nil {
			return n
		}
	case "number":
		if n, err := strconv.ParseFloat(text, 64); isText && err == nil && json.Valid([]byte(text)) {
			return n
		}
	case "boolean":
		if word := " " + strings.ToLower(text) + " "; isText && strings.Contains(" true yes on false no off ", word) {
			return strings.Contains(" true yes on ", word)
		}
	}
	return value
}

// mistakes gives what the schema does not allow its places in the step.
func (s *paramSchema) mistakes(
	invalid *jsonschema.ValidationError,
	p render.Params,
	fallback render.Position,
) render.ErrorList {
	found := flatten(invalid)
	others := slices.ContainsFunc(found, func(m mismatch) bool { return m.unknown == nil })
	var errs render.ErrorList
	for _, m := range found {
		if p.Waits() && !s.certain(m, p) {
			continue
		}
		if m.unknown == nil {
			errs = append(errs, p.Mistake(m.at, false, fallback, "%s%s", pathPrefix(m.at), m.text))
			continue
		}
		for _, name := range m.unknown {
			if others && s.branches { // a branch that does not hold says nothing of what it would allow
				continue
			}
			bad := p.Mistake(
				append(slices.Clone(m.at), name),
				true,
				fallback,
				"%sunknown field %q",
				pathPrefix(m.at),
				name,
			)
			if near := render.Nearest(name, s.names); near != "" && len(m.at) == 0 {
				bad.Hint = fmt.Sprintf("did you mean %q?", near)
			} else if len(m.at) == 0 && len(s.names) > 0 {
				bad.Hint = "known: " + strings.Join(s.names, ", ")
			}
			errs = append(errs, bad)
		}
	}
	return errs
}

var conditional = lazyregexp.New(
	`/(if|then|else|anyOf|oneOf|not|dependentSchemas|contains|propertyNames|\$defs)(/|$)`,
)

// certain reports that a mistake stays one whatever values the parameters get when the step runs.
func (s *paramSchema) certain(m mismatch, p render.Params) bool {
	switch {
	case conditional.MatchString(m.schema) || m.unknown != nil && s.branches:
		return false
	case m.structural:
		return true
	}
	return !p.Waits(m.at...)
}

// mismatch is one thing that a schema does not allow.
type mismatch struct {
	at         []string // where, as a path of keys and numbers
	text       string
	unknown    []string // keys that are not allowed there
	structural bool     // it is about which keys there are
	schema     string   // the path in the schema
}

// flatten is what was found as a list. Of a choice there is one mistake, with what is wrong with each form.
func flatten(e *jsonschema.ValidationError) []mismatch {
	if e == nil {
		return nil
	}
	m := mismatch{at: e.InstanceLocation}
	_, m.schema, _ = strings.Cut(e.SchemaURL, "#")
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		var out []mismatch
		for _, cause := range e.Causes {
			out = append(out, flatten(cause)...)
		}
		return out
	case *kind.AdditionalProperties:
		m.unknown, m.structural = k.Properties, true
	case *kind.FalseSchema:
		if last := len(m.at) - 1; last >= 0 && strings.HasSuffix(m.schema, "/unevaluatedProperties") {
			m.unknown, m.structural, m.at = m.at[last:], true, m.at[:last]
		} else {
			m.text = "nothing is allowed here"
		}
	case *kind.Required:
		m.text, m.structural = missing1(k.Missing), true
	case *kind.AnyOf, *kind.OneOf:
		m.text = forms(e)
	default:
		m.text = inWords(k)
	}
	return []mismatch{m}
}

// inWords is one thing that is not allowed. For what is rare the library's words do.
func inWords(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "expected " + strings.Join(typeWords(k.Want), " or ") + ", found " + typeWords([]string{k.Got})[0]
	case *kind.Enum:
		return "expected " + strings.Join(shortJSON(k.Want...), " or ") + ", found " + shortJSON(k.Got)[0]
	case *kind.Const:
		return "expected " + shortJSON(k.Want)[0] + ", found " + shortJSON(k.Got)[0]
	case *kind.Pattern:
		return shortJSON(k.Got)[0] + " does not match " + k.Want
	case *kind.Format:
		return fmt.Sprintf("%s is no %s: %v", shortJSON(k.Got)[0], k.Want, k.Err)
	case *kind.MinLength:
		return fmt.Sprintf("expected at least %d characters, found %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("expected at most %d characters, found %d", k.Want, k.Got)
	case *kind.Minimum:
		return "expected at least " + k.Want.RatString() + ", found " + k.Got.RatString()
	case *kind.Maximum:
		return "expected at most " + k.Want.RatString() + ", found " + k.Got.RatString()
	}
	plain := jsonschema.ValidationError{ErrorKind: k}
	return strings.TrimPrefix(plain.Error(), "at '': ")
}

// shortJSON are values as JSON, shortened.
func shortJSON(values ...any) []string {
	var out []string
	for _, v := range values {
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte(fmt.Sprint(v))
		}
		if runes := []rune(string(text)); len(runes) > 40 {
			text = []byte(string(runes[:40]) + "...")
		}
		out = append(out, string(text))
	}
	return out
}

// missing1 names the keys that are not there.
func missing1(names []string) string {
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}
	if len(quoted) == 1 {
		return quoted[0] + " is missing"
	}
	return strings.Join(quoted, ", ") + " are missing"
}

// forms says why none of several forms fits, or that more than one does.
func forms(e *jsonschema.ValidationError) string {
	var each []string
	for _, cause := range e.Causes {
		for _, m := range flatten(cause) {
			text := m.text
			if m.unknown != nil {
				text = "unknown field " + strings.Join(m.unknown, ", ")
			}
			if rest := m.at[min(len(e.InstanceLocation), len(m.at)):]; len(rest) > 0 {
				text = pathPrefix(rest) + text
			}
			each = append(each, text)
		}
	}
	if len(each) == 0 {
		return "more than one of the forms fits, and only one may"
	}
	slices.Sort(each)
	return "none of the forms fits: " + strings.Join(slices.Compact(each), "; or ")
}

// typeWords are JSON's types in the words of other messages.
func typeWords(types []string) []string {
	words := map[string]string{
		"string":  "a text",
		"integer": "a whole number",
		"number":  "a number",
		"boolean": "true or false",
		"object":  "a map",
		"array":   "a list",
		"null":    "nothing",
	}
	var out []string
	for _, t := range types {
		out = append(out, words[t])
	}
	return out
}

// pathPrefix is how a message names its place: "ports[0].number: ".
func pathPrefix(at []string) string {
	if len(at) == 0 {
		return "parameters: "
	}
	text := at[0]
	for _, part := range at[1:] {
		if _, err := strconv.Atoi(part); err == nil {
			text += "[" + part + "]"
		} else {
			text += "." + part
		}
	}
	return text + ": "
}
