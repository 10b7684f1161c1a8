package render

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v4"
)

// sprig's conversions do not fail: int "x" is 0, fromJson "{" is null, and b64dec gives the text of its error. Here a
// conversion that fails is a mistake. The functions in this file take the places of those of sprig, and wants says
// what the others are given.

// strictFuncs puts functions that fail in the place of those that do not.
func strictFuncs(funcs template.FuncMap) {
	for name, f := range funcs {
		if plain := base(name); plain != name && funcs[plain] != nil {
			funcs[plain] = f // mustToJson in the place of toJson
		}
	}
	for name, f := range map[string]any{
		"int": toInt, "int64": toInt, "float64": decimalNumber, "atoi": strconv.Atoi, "toDecimal": octal,
		"add": add, "add1": func(v any) (int64, error) { return add(v, 1) }, "sub": sub, "mul": mul, "div": div,
		"mod": mod, "max": largest, "biggest": largest, "min": smallest,
		"fromJson": FromJSON, "mustFromJson": FromJSON,
		"b64dec": func(text string) (string, error) { return decoded("base64", base64.StdEncoding.DecodeString, text) },
		"b32dec": func(text string) (string, error) { return decoded("base32", base32.StdEncoding.DecodeString, text) },
		"get":    get,
	} {
		funcs[name] = f
	}
}

// want says what a function makes of its arguments.
type want int

const (
	wantAny      want = iota // it takes values as they are
	wantTexts                // it makes text of every argument
	wantFormat               // of all but the first, which says how
	wantTextList             // of every element of its last argument
	wantDecimals             // it computes with numbers that may have a fraction
	wantDecimal              // so with its first argument
)

// wants names the functions of sprig and text/template that make text or numbers of whatever they get.
var wants = map[string]want{
	"print": wantTexts, "println": wantTexts, "toString": wantTexts, "quote": wantTexts, "squote": wantTexts,
	"cat": wantTexts, "html": wantTexts, "js": wantTexts, "urlquery": wantTexts,
	"printf": wantFormat,
	"join":   wantTextList, "toStrings": wantTextList, "sortAlpha": wantTextList,
	"addf": wantDecimals, "add1f": wantDecimals, "subf": wantDecimals, "mulf": wantDecimals, "divf": wantDecimals,
	"maxf": wantDecimals, "minf": wantDecimals,
	"floor": wantDecimal, "ceil": wantDecimal, "round": wantDecimal,
}

// checked returns the arguments of a call as the function can take them. An argument that has no text, or cannot be
// read as a number, is an error.
func (w want) checked(args []any) ([]any, error) {
	if w == wantAny || len(args) == 0 {
		return args, nil
	}
	from, to, change := 0, len(args), withText
	switch w {
	case wantFormat:
		from = 1
	case wantTextList:
		from, change = to-1, withTexts
	case wantDecimals:
		change = asDecimal
	case wantDecimal:
		to, change = 1, asDecimal
	}
	out := slices.Clone(args)
	for i := from; i < to; i++ {
		v, err := change(args[i])
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func withText(v any) (any, error) { return asNumeral(v), textless(v) }

// withTexts checks the elements of a list. One value counts as a list of one.
func withTexts(v any) (any, error) {
	r := reflect.ValueOf(v)
	if r.Kind() != reflect.Slice {
		return withText(v)
	}
	out := make([]any, r.Len())
	for i := range out {
		var err error
		if out[i], err = withText(r.Index(i).Interface()); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return out, nil
}

func asDecimal(v any) (any, error) { return decimalNumber(v) }

// finite refuses a result that a number cannot hold, such as the quotient of a division by zero.
func (w want) finite(out any) error {
	if f, is := out.(float64); is && w >= wantDecimals && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return errors.New("no number holds the result")
	}
	return nil
}

// decimalNumber reads a number, or a text that is written as one, with its fraction.
func decimalNumber(v any) (float64, error) {
	if text, ok := textOf(v); ok {
		if whole, err := parseWhole(text); err == nil {
			return float64(whole), nil
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) || strings.ContainsAny(text, "xX_") {
			return 0, noNumber(v)
		}
		return f, nil
	}
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		return float64(r.Int()), nil
	case r.CanUint():
		return float64(r.Uint()), nil
	case r.CanFloat():
		f := r.Float()
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return 0, noNumber(v)
		}
		return f, nil
	}
	return 0, noNumber(v)
}

// wholeNumber reads a number without a fraction, or a text that is written as one: 08 is 8, and 0x1f is 31.
func wholeNumber(v any) (int64, error) {
	if r := reflect.ValueOf(v); r.CanInt() {
		return r.Int(), nil
	}
	if text, ok := textOf(v); ok {
		if whole, err := parseWhole(text); err == nil {
			return whole, nil
		}
	}
	f, err := decimalNumber(v)
	if err != nil {
		return 0, err
	}
	if f != math.Trunc(f) {
		return 0, fmt.Errorf("%s has a fraction: use the function with an f, such as addf, or int", valueText(v))
	}
	return truncated(f)
}

// parseWhole reads a number that begins with 0x, 0o or 0b, or a decimal one.
func parseWhole(text string) (int64, error) {
	base, digits := 10, strings.TrimLeft(text, "+-")
	if len(digits) > 1 && digits[0] == '0' && strings.ContainsAny(digits[1:2], "xXoObB") {
		base = 0
	}
	return strconv.ParseInt(text, base, 64)
}

// truncated cuts the fraction off a number.
func truncated(f float64) (int64, error) {
	if f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, fmt.Errorf("%s is too large for a whole number", plainFloat(f))
	}
	return int64(f), nil
}

// toInt reads a number, and cuts its fraction off.
func toInt(v any) (int64, error) {
	if whole, err := wholeNumber(v); err == nil {
		return whole, nil
	}
	f, err := decimalNumber(v)
	if err != nil {
		return 0, err
	}
	return truncated(f)
}

// octal reads a text of octal digits, such as a file's mode.
func octal(v any) (int64, error) {
	text := valueText(v)
	if t, ok := textOf(v); ok {
		text = t
	}
	n, err := strconv.ParseInt(text, 8, 64)
	if err != nil {
		return 0, fmt.Errorf("expected an octal number, found %s", valueText(v))
	}
	return n, nil
}

func noNumber(v any) error {
	if v == nil {
		return errors.New("expected a number, found null: give it a value, or write | default 0 behind it")
	}
	return fmt.Errorf("expected a number, found %s", valueText(v))
}

// valueText shows a value in a message. A long text is not truncated, because part of a secret is not recognized as
// one.
func valueText(v any) string {
	if text, ok := v.(string); ok && len(text) > 60 {
		return fmt.Sprintf("a text of %d bytes", len(text))
	} else if ok {
		return strconv.Quote(text)
	}
	if err := textless(v); err != nil {
		what, _, _ := strings.Cut(err.Error(), " has no text")
		return what
	}
	return fmt.Sprint(asNumeral(v))
}

// FromJSON reads a JSON text. Numbers keep every digit, and are written by the encoders of JSON and, behind
// PlainNumbers, of YAML as they stand there.
func FromJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid JSON: there is more behind the value")
	}
	return withScalars(v, func(v any) any {
		if n, is := v.(json.Number); is {
			return keptNumber(string(n))
		}
		return v
	}), nil
}

func decoded(what string, decode func(string) ([]byte, error), text string) (string, error) {
	out, err := decode(text)
	if err != nil {
		return "", fmt.Errorf("invalid %s: %w", what, err)
	}
	return string(out), nil
}

// get returns the value of a key, or an empty text if the key is missing or null.
func get(m map[string]any, key string) any {
	if v := m[key]; v != nil {
		return v
	}
	return ""
}

// PlainNumbers returns a value for an encoder of YAML, in which each number has the text that people write: without an
// exponent, and as the file has it if it comes from one.
func PlainNumbers(v any) any {
	return withScalars(v, func(v any) any {
		n, is := asNumeral(v).(numeral)
		if !is {
			return v
		}
		tag := "!!float"
		if _, err := strconv.ParseInt(n.text, 10, 64); err == nil {
			tag = "!!int"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: n.text}
	})
}
