package render

import (
	"fmt"
	"reflect"
	"regexp/syntax"
	"slices"
	"strings"
	"text/template"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// install wraps the functions that can grow and adds those that meterTree calls.
func (m *meter) install(funcs template.FuncMap) {
	for name, f := range map[string]any{
		"print": fmt.Sprint, "printf": formatted, "println": fmt.Sprintln,
		"len": length, "html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	} { // the built-in ones would not be counted
		funcs[name] = f
	}
	for name, f := range funcs {
		funcs[name] = m.metered(name, f)
	}
	funcs["tick"], funcs["down"], funcs["up"], funcs["weighed"], funcs["keyed"] = m.tick, m.down, m.up, m.weighed, keyed
}

// called calls a function that returns a value, or a value and an error.
func called(f reflect.Value, args []reflect.Value) ([]reflect.Value, error) {
	var out []reflect.Value
	if f.Type().IsVariadic() {
		out = f.CallSlice(args)
	} else {
		out = f.Call(args)
	}
	if len(out) < 2 {
		return out, nil
	}
	err, _ := out[1].Interface().(error)
	return out, err
}

// before spends what a call costs.
func (m *meter) before(name string, args []any, in []reflect.Value) error {
	most, err := resultSize(name, args)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if most > maxGrowth {
		return fmt.Errorf("%s: this makes or looks through more than %d MB", name, maxGrowth>>20)
	}
	work := 1 + most/100
	if !slices.Contains(partOf, strings.TrimPrefix(name, "must")) {
		left := maxNodes
		for _, a := range in {
			bytes, err := weigh(a, 0, &left)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			work += bytes / 100
		}
		work += (maxNodes - left) / 10
	}
	return m.spend(work)
}

// partOf are the functions that give a part of what is there.
var partOf = []string{
	"get", "dig", "default", "coalesce", "ternary", "required", "index", "first", "last", "rest", "initial", "slice",
	"hasKey", "list", "tuple", "dict", "set",
	"macro", "kindOf", "kindIs", "typeOf", "typeIs", "length", "empty", "add", "sub", "int",
}

// weighed is its argument, of which it counts what it takes to look through it.
func (m *meter) weighed(v any) (any, error) {
	left := maxNodes
	if text, ok := textOf(v); ok {
		v = text
	}
	bytes, err := weigh(reflect.ValueOf(v), 0, &left)
	if err != nil {
		return v, err
	}
	return v, m.spend(bytes/100 + (maxNodes-left)/10)
}

// after refuses values that are too large, and maps that contain themselves.
func (m *meter) after(name string, out reflect.Value) error {
	switch name {
	case "get",
		"dig",
		"default",
		"coalesce",
		"ternary",
		"required",
		"index",
		"first",
		"last",
		"rest",
		"initial",
		"slice":
		return nil // a part of what is there
	}
	left := maxNodes
	bytes, err := weigh(out, 0, &left)
	if err == nil && bytes > maxOutput {
		err = fmt.Errorf("the value is larger than %d MiB", maxOutput>>20)
	}
	if err != nil {
		return err
	}
	return m.spend((maxNodes-left)/10 + bytes/100)
}

// weigh is the size of the texts in a value.
func weigh(v reflect.Value, depth int, left *int) (int, error) {
	if *left--; *left < 0 {
		return 0, fmt.Errorf("the value has more than %d values in it", maxNodes)
	}
	if depth > maxDepth {
		return 0, fmt.Errorf("the value is more than %d maps and lists deep, or contains itself", maxDepth)
	}
	bytes := 0
	add := func(v reflect.Value) error {
		n, err := weigh(v, depth+1, left)
		bytes += n
		return err
	}
	if v.IsValid() && v.Type() == reflect.TypeFor[encoded]() {
		return v.Field(0).Len(), nil
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len(), nil
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return 0, nil
		}
		return weigh(v.Elem(), depth, left)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := add(it.Value()); err != nil {
				return 0, err
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if err := add(v.Index(i)); err != nil {
				return 0, err
			}
		}
	}
	return bytes, nil
}

// plainArgs are the arguments of a call without the wrapping of reflect.
func plainArgs(in []reflect.Value, variadic bool) []any {
	var out []any
	for i, a := range in {
		if variadic && i == len(in)-1 {
			for k := range a.Len() {
				out = append(out, a.Index(k).Interface())
			}
			continue
		}
		out = append(out, a.Interface())
	}
	return out
}

// resultSize bounds what a call makes or looks through, in bytes, for the functions whose result is more than their
// arguments.
func resultSize(name string, args []any) (int, error) {
	text := func(i int) string { s, _ := at(args, i).(string); return s }
	number := func(i int) int { n, _ := at(args, i).(int); return max(n, 0) }
	base := strings.TrimPrefix(strings.ToLower(name), "must")
	switch base {
	case "repeat":
		return times(number(0), len(text(1))), nil
	case "indent", "nindent":
		return times(number(0), strings.Count(text(1), "\n")+1), nil
	case "replace":
		return times(strings.Count(text(2), text(0)), len(text(1))), nil
	case "shquote":
		return times(4, len(text(0))), nil
	case "wrapwith":
		return times(len(text(1))+1, len(text(2))), nil
	case "join":
		return times(len(text(0)), items(at(args, 1))), nil
	case "split", "splitlist", "fromjson":
		return times(64, items(args)+strings.Count(text(1), text(0))+strings.Count(text(0), ",")), nil
	case "uniq":
		return times(items(at(args, 0)), items(at(args, 0))), nil
	case "without":
		return times(items(at(args, 0)), len(args)), nil
	case "printf":
		return printed(text(0), args[1:]), nil
	case "macro":
		return 100_000, nil // its text is parsed
	case "regexmatch", "regexfind", "regexfindall", "regexsplit":
		return searched(text(0), text(1), 0)
	case "regexreplaceall", "regexreplaceallliteral":
		return searched(text(0), text(1), len(text(2)))
	}
	return 0, nil
}

func at(args []any, i int) any {
	if i < len(args) {
		return args[i]
	}
	return nil
}

// times multiplies without overflow.
func times(a, b int) int {
	if b > 0 && a > maxGrowth/b {
		return maxGrowth + 1
	}
	return a * b
}

func items(v any) int {
	r := reflect.ValueOf(v)
	if k := r.Kind(); k == reflect.Slice || k == reflect.Map || k == reflect.String {
		return r.Len()
	}
	return 0
}

var numbers = lazyregexp.New(`[0-9]+|\*`)

// printed bounds the output of printf: each verb writes its widest argument, or as much as its width says.
func printed(format string, args []any) int {
	widest := 64
	for _, a := range args {
		if n, ok := a.(int); ok && strings.Contains(format, "*") {
			widest = max(widest, n)
		} else if s, ok := a.(string); ok {
			widest = max(widest, len(s))
		} else {
			widest = max(widest, len(fmt.Sprint(a)))
		}
	}
	total := times(strings.Count(format, "%"), widest)
	for _, n := range numbers.FindAllString(format, -1) {
		if len(n) > 4 {
			total += 1_000_000 // fmt's own limit
		}
	}
	return total
}

// compileCost is what it costs to read a regular expression, in letters of a text.
const compileCost = 200

// searched bounds the work of a regular expression: its instructions for each byte of the text.
func searched(pattern, text string, replacement int) (int, error) {
	size, err := programSize(pattern)
	return max(times(size, len(text)+compileCost), times(replacement, len(text)+1)), err
}

// programSize is the number of instructions of a regular expression.
func programSize(pattern string) (int, error) {
	if len(pattern) > maxPattern {
		return 0, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0, err
	}
	return len(program.Inst), nil
}

// withoutCycle keeps functions that change a map from putting the map into itself: what prints it would never end.
func withoutCycle(name string, args []reflect.Value) ([]reflect.Value, error) {
	switch strings.TrimPrefix(strings.ToLower(name), "must") {
	case "set":
		if len(args) == 3 && contains(args[2], args[0].Pointer()) {
			return nil, fmt.Errorf("%s: a map cannot hold itself", name)
		}
	case "merge", "mergeoverwrite":
		others := reflect.MakeSlice(args[1].Type(), args[1].Len(), args[1].Len())
		for i := range args[1].Len() {
			others.Index(i).Set(copied(args[1].Index(i)))
		}
		return []reflect.Value{args[0], others}, nil
	}
	return args, nil
}

// contains reports whether a map is in a value. Values have an end: that is what withoutCycle sees to.
func contains(v reflect.Value, ptr uintptr) bool {
	switch v.Kind() {
	case reflect.Interface:
		return !v.IsNil() && contains(v.Elem(), ptr)
	case reflect.Map:
		if v.Pointer() == ptr {
			return true
		}
		for it := v.MapRange(); it.Next(); {
			if contains(it.Value(), ptr) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if contains(v.Index(i), ptr) {
				return true
			}
		}
	}
	return false
}

// copied is a value with maps and lists of its own.
func copied(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.Interface && !v.IsNil():
		return copied(v.Elem())
	case v.Kind() == reflect.Slice && !v.IsNil():
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(copied(v.Index(i)))
		}
		return out
	case v.Kind() != reflect.Map || v.IsNil():
		return v
	}
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	for it := v.MapRange(); it.Next(); {
		value := it.Value()
		if value.Kind() != reflect.Interface || !value.IsNil() {
			value = copied(value)
		}
		out.SetMapIndex(it.Key(), value)
	}
	return out
}
