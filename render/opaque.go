package render

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Templates are executed before their output is read as YAML. A text that the repository does not hold, such as the
// address of a service or the name that a DHCP server gave this host, must therefore never be part of that output: a
// newline in it would begin a step. Such texts are opaque. Roots hand them to templates (roots), functions hand them on
// (function.call), and an action that prints one writes a mark instead (carrier). Once the YAML is decoded, the text
// takes the place of the mark in its scalar, whatever the style of the scalar.

// opaque is a text that the repository does not hold.
type opaque string

// opaqueMap is a map whose keys are opaque, as are the texts in it.
type opaqueMap map[string]any

// encoded is what an encoder such as toJson makes of a value with opaque texts in it. The structure of its text is
// safe, because the encoder wrote it: mark writes the same structure with a mark for each opaque text.
type encoded struct {
	text string
	mark func(c *carrier) (string, error)
}

// foreign is a value with every text in it opaque.
func foreign(v any) any {
	switch v := v.(type) {
	case nil, bool, int, int64, float64, writtenNumber, opaque, encoded:
		return v
	case string:
		return opaque(v)
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.String:
		return opaque(r.String())
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(opaqueMap, r.Len())
		for it := r.MapRange(); it.Next(); {
			out[it.Key().String()] = foreign(it.Value().Interface())
		}
		return out
	case r.Kind() == reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			out[i] = foreign(r.Index(i).Interface())
		}
		return out
	}
	return v
}

// holds reports opaque texts in a value.
func holds(v any) bool {
	switch v := v.(type) {
	case nil, bool, int, int64, float64, string, writtenNumber:
		return false
	case opaque, encoded, opaqueInt, opaqueFloat:
		return true
	case opaqueMap:
		return len(v) > 0
	}
	return holdsBelow(reflect.ValueOf(v))
}

func holdsBelow(r reflect.Value) bool {
	switch {
	case r.Kind() == reflect.Map && mayHold(r.Type().Elem()):
		for it := r.MapRange(); it.Next(); {
			if holds(it.Value().Interface()) {
				return true
			}
		}
	case r.Kind() == reflect.Slice && mayHold(r.Type().Elem()):
		for i := range r.Len() {
			if holds(r.Index(i).Interface()) {
				return true
			}
		}
	}
	return false
}

// mayHold is false for elements that cannot be opaque.
func mayHold(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return t == reflect.TypeFor[opaque]() || t == reflect.TypeFor[opaqueInt]() || t == reflect.TypeFor[opaqueFloat]()
}

// revealed is a value with the texts themselves in place of the opaque ones.
func revealed(v any) any {
	if !holds(v) {
		return v
	}
	return replaced(v, func(text string) string { return text })
}

// replaced is a copy of a value with something else in place of every opaque text. A map has plain keys then.
func replaced(v any, with func(text string) string) any {
	switch v := v.(type) {
	case opaque:
		return with(string(v))
	case opaqueInt: // a number stays one
		with(fmt.Sprint(int64(v)))
		return int(v)
	case opaqueFloat:
		with(fmt.Sprint(float64(v)))
		return float64(v)
	case encoded:
		return with(v.text)
	case opaqueMap:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[with(key)] = replaced(value, with)
		}
		return out
	}
	r := reflect.ValueOf(v)
	switch {
	case r.Kind() == reflect.Map && r.Type().Key().Kind() == reflect.String && mayHold(r.Type().Elem()):
		out := make(map[string]any, r.Len())
		for it := r.MapRange(); it.Next(); {
			out[it.Key().String()] = replaced(it.Value().Interface(), with)
		}
		return out
	case r.Kind() == reflect.Slice && mayHold(r.Type().Elem()):
		out := make([]any, r.Len())
		for i := range out {
			out[i] = replaced(r.Index(i).Interface(), with)
		}
		return out
	}
	return v
}

// textOf is a value that is one text, opaque or not.
func textOf(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case opaque:
		return string(v), true
	case encoded:
		return v.text, true
	case writtenNumber:
		return string(v), true
	}
	return "", false
}

// mapOf is a value that is a map, whose keys may be opaque.
func mapOf(v any) (m map[string]any, ok bool) {
	if keyed, is := v.(opaqueMap); is {
		return keyed, true
	}
	m, ok = v.(map[string]any)
	return m, ok
}

// plainName is a text that is a name wherever it stands: in YAML, in a target, in a path, in an expression.
var plainName = lazyregexp.New(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

// holdsMarks reports the characters that marks are made of.
func holdsMarks(text string) bool {
	return strings.Contains(text, "\xee\x80") && strings.ContainsAny(text, "\uE000\uE001"+lost)
}

func isMap(v any) bool { _, ok := mapOf(v); return ok }
