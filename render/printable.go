package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A template yields what its author meant, or it is a mistake. text/template prints every value: null as "<no value>",
// a list as "[1 2]", a map as "map[k:v]", an error as what it says. Such a text ends in a file, and no test notices. So
// everything that makes text of a value, an action that prints (printed) or a function (checked), first asks textless.

// textless returns why a value has no text of its own, with what helps, or nil if it has one.
func textless(v any) error {
	switch v := v.(type) {
	case nil:
		return errors.New(`null has no text: give it a value, or write | default "TEXT" behind it`)
	case bool, int, int64, float64, string, writtenNumber, opaque, opaqueInt, opaqueFloat, encoded:
		return nil
	case error:
		return fmt.Errorf("an error has no text: %w", v)
	case StepResult:
		return errors.New("the result of a step has no text: name a field of it, such as StdOut")
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Map:
		return errors.New("a map has no text: name one of its keys, or write | toJson or | toYaml behind it")
	case reflect.Slice, reflect.Array:
		return errors.New(`a list has no text: write | join "," or | toJson behind it, or range over it`)
	case reflect.Func, reflect.Chan:
		return errors.New("a function has no text")
	case reflect.Pointer, reflect.Interface:
		if r.IsNil() {
			return textless(nil)
		}
	}
	if _, ok := v.(fmt.Stringer); !ok && r.Kind() == reflect.Struct {
		return errors.New("it has no text: name one of its fields")
	}
	return nil
}

// plainFloat writes a number as people do, without an exponent. Infinity and NaN are written as in YAML.
func plainFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 0):
		return strings.TrimSuffix(strconv.FormatInt(int64(math.Copysign(1, f)), 10), "1") + ".inf"
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// numeral is a number whose text is not what Go would write: 1234567.5 is 1.2345675e+06 there. It prints as its text,
// and as a number where printf asks for one.
type numeral struct {
	text  string
	value float64
}

func (n numeral) String() string { return n.text }

// Format implements fmt.Formatter.
func (n numeral) Format(s fmt.State, verb rune) {
	var v any = n.value
	switch verb {
	case 'v', 's', 'q':
		v = n.text
	case 'd', 'x', 'X', 'o', 'b', 'c':
		if whole, err := wholeNumber(n.text); err == nil {
			v = whole
		}
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), v)
}

// asNumeral gives a number the text that people write, if Go would write another. It returns other values as they are.
func asNumeral(v any) any {
	switch v := v.(type) {
	case float64:
		return numeral{plainFloat(v), v}
	case writtenNumber:
		f, err := decimalNumber(string(v))
		if err != nil { // too large for a number of the machine
			return string(v)
		}
		return numeral{string(v), f}
	}
	return v
}

// writtenNumber is a number of a file whose text is not what Go would write: 1.10, 1e3, 18446744073709551615, .5.
type writtenNumber string

// keptNumber reads a number of a file for templates. It returns a number of Go if Go writes that as the file does,
// otherwise the text, of which no digit is lost. Functions that compute read both. A number with a leading zero is a
// text, as a mode is.
func keptNumber(text string) any {
	if n, err := strconv.Atoi(text); err == nil && strconv.Itoa(n) == text {
		return n
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && plainFloat(f) == text {
		return f
	}
	if len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' {
		return text
	}
	switch strings.ToLower(text) {
	case ".inf", "+.inf":
		return math.Inf(1)
	case "-.inf":
		return math.Inf(-1)
	case ".nan":
		return math.NaN()
	}
	return writtenNumber(text)
}

// MarshalJSON implements json.Marshaler.
func (n writtenNumber) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(n)) {
		return []byte(n), nil
	}
	if whole, err := wholeNumber(string(n)); err == nil {
		return []byte(strconv.FormatInt(whole, 10)), nil
	}
	f, err := decimalNumber(string(n))
	return []byte(plainFloat(f)), err
}

// computable returns a value with numbers in the place of the texts that keptNumber kept. A value without such texts is
// returned as it is.
func computable(v any) any {
	if !keepsText(v) {
		return v
	}
	return withScalars(v, func(v any) any {
		text, kept := v.(writtenNumber)
		if !kept {
			return v
		}
		if whole, err := wholeNumber(text); err == nil && !strings.ContainsAny(string(text), ".eE") {
			return int(whole)
		}
		if f, err := decimalNumber(text); err == nil {
			return f
		}
		return string(text)
	})
}

// withScalars returns a copy of a value of YAML or JSON in which with has replaced every value but maps and lists.
func withScalars(v any, with func(v any) any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[key] = withScalars(value, with)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = withScalars(value, with)
		}
		return out
	}
	return with(v)
}

// keepsText reports a number in a value that keptNumber kept as its text.
func keepsText(v any) bool {
	switch v := v.(type) {
	case writtenNumber:
		return true
	case map[string]any:
		for _, value := range v {
			if keepsText(value) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, keepsText)
	}
	return false
}

// formatted calls fmt.Sprintf, and returns as an error what that writes into the text behind %!.
func formatted(format string, args ...any) (string, error) {
	out := fmt.Sprintf(format, args...)
	if !strings.Contains(out, "%!") {
		return out, nil
	}
	harmless := make([]any, len(args)) // whatever stands behind %! there is fmt's
	for i, a := range args {
		harmless[i] = a
		if text, ok := a.(string); ok {
			harmless[i] = strings.ReplaceAll(text, "%!", "  ")
		}
	}
	shown := fmt.Sprintf(strings.ReplaceAll(format, "%%", "  "), harmless...)
	if _, wrong, is := strings.Cut(shown, "%!"); is {
		return "", errors.New(formatMistake(wrong))
	}
	return out, nil
}

// formatMistake says what fmt writes behind %! in plain words. It does not repeat the value, which may be a secret.
func formatMistake(wrong string) string {
	verb, rest, _ := strings.Cut(wrong, "(")
	kind, _, isValue := strings.Cut(rest, "=")
	switch {
	case strings.HasPrefix(rest, "MISSING)"):
		return "there is no value for %" + verb
	case strings.HasPrefix(rest, "EXTRA "):
		return "there are more values than verbs"
	case strings.HasPrefix(rest, "NOVERB)"):
		return "a % stands alone: write %%"
	case isValue && kind == "string":
		return "%" + verb + " cannot write a text: %s can"
	case isValue:
		return "%" + verb + " cannot write this value: %v can"
	}
	return "the format does not fit its values"
}
