package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// protocol is the version of what is said to extensions and of what they answer: docs/extensions.md.
const protocol = 1

// request is what an executable reads.
type request struct {
	Protocol   int            `json:"protocol"`
	Action     string         `json:"action"`
	Mode       string         `json:"mode"` // check or apply
	Parameters map[string]any `json:"parameters"`
	Node       requestNode    `json:"node"`
	Root       string         `json:"root"`
	Version    string         `json:"version"`
}

// requestNode is whom it is for.
type requestNode struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// checkAnswer is what it would change.
type checkAnswer struct {
	Protocol *int   `json:"protocol"`
	Change   string `json:"change"`
	Diff     string `json:"diff"`
	State    string `json:"state"`
}

// applyAnswer is what it did.
type applyAnswer struct {
	Protocol *int   `json:"protocol"`
	State    string `json:"state"`
	StdOut   string `json:"stdout"`
	Data     any    `json:"data"`
	Changed  *bool  `json:"changed"`
}

// encode is the request in one line.
func (r *request) encode() (string, error) {
	if r.Parameters == nil {
		r.Parameters = map[string]any{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(r)
	return b.String(), err
}

var (
	shellName   = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	unknownName = lazyregexp.New(`^json: unknown field "(.*)"$`)
)

// maxVariable is how large a parameter may be that stands in the environment, too: the kernel refuses far larger ones.
const maxVariable = 64 << 10

// environment has the parameters that are single values, for executables with no easy way to read JSON, such as shell
// scripts.
func (r *request) environment() map[string]string {
	out := map[string]string{}
	for name, value := range r.Parameters {
		switch value.(type) {
		case string, bool, json.Number:
			text := fmt.Sprint(value)
			if shellName.MatchString(name) && len(text) <= maxVariable && !strings.Contains(text, "\x00") {
				out["PULLET_PARAM_"+name] = text
			}
		}
	}
	return out
}

// decodeAnswer reads what an executable printed: one JSON object with no fields but those of the answer. A misspelt one
// would be taken for "nothing is to be done".
func decodeAnswer(text string, answer any) error {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return errors.New("it printed no answer: print a JSON object, {} when there is nothing to say")
	case text[0] != '{':
		return fmt.Errorf(
			"the answer is no JSON object: it begins with %q; what is meant for people belongs to stderr",
			begin(text),
		)
	}
	var spoken struct{ Protocol *int }
	if err := json.Unmarshal([]byte(text), &spoken); err == nil && spoken.Protocol != nil &&
		*spoken.Protocol != protocol {
		return fmt.Errorf("it speaks protocol %d, and this pullet speaks %d", *spoken.Protocol, protocol)
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(answer); err != nil {
		return wrongAnswer(text, err, answer)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf(
			"the answer is followed by more: %q; what is meant for people belongs to stderr",
			begin(text[d.InputOffset()-1:]),
		)
	}
	if check, ok := answer.(*checkAnswer); ok && check.Change == "" && check.Diff != "" {
		return errors.New("the answer has a diff and no change: say in a few words what apply would do")
	}
	return nil
}

// wrongAnswer says what is wrong with an answer, and where.
func wrongAnswer(text string, err error, answer any) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf(
			"the answer is no JSON: %w at byte %d, after %q",
			err,
			syntax.Offset,
			end(text[:min(int(syntax.Offset), len(text))]),
		)
	case errors.As(err, &kind):
		return fmt.Errorf("the answer's field %q cannot be a %s", kind.Field, kind.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the answer is cut off: it ends with %q", end(text))
	}
	if m := unknownName.FindStringSubmatch(err.Error()); m != nil {
		names := answerFields(answer)
		if near := render.Nearest(m[1], names); near != "" {
			return fmt.Errorf("the answer has an unknown field %q (did you mean %q?)", m[1], near)
		}
		return fmt.Errorf("the answer has an unknown field %q: there are %s", m[1], strings.Join(names, ", "))
	}
	return fmt.Errorf("the answer is no JSON: %w", err)
}

// answerFields are the fields that an answer may have.
func answerFields(answer any) []string {
	var out []string
	t := reflect.TypeOf(answer).Elem()
	for i := range t.NumField() {
		out = append(out, t.Field(i).Tag.Get("json"))
	}
	return out
}

func begin(text string) string { return text[:min(len(text), 40)] }

func end(text string) string { return text[max(0, len(text)-40):] }
