package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// function is a template function that counts its work and keeps opaque texts apart.
type function struct {
	m     *meter
	name  string
	f     reflect.Value
	class class
	want  want
}

// class is what a function does with opaque texts.
type class int

// Functions that hand values on keep each text as it is. All others see plain texts, and what they make of them is
// opaque.
const (
	computes class = iota // makes something new
	hands                 // gives a part of its arguments, or puts them together
	encodes               // writes a value so that its structure can be read again
	laysOut               // moves what an encoder wrote: its last argument
	quotes                // makes a word of a shell, whose quotes are none of YAML
	decodes               // makes text that its arguments do not show
	merges                // puts maps into its first argument
)

// classes are all functions of templates but the roots, without the must in front of their name. What a call costs is
// in resultsize.go: by the size of its arguments, unless the function is in resultSize or partOf. A function that is
// not listed here is none: TestEveryFunctionHasACost.
var classes = withClass(map[string]class{
	"get": hands, "dig": hands, "pluck": hands, "pick": hands, "omit": hands, "values": hands, "hasKey": hands,
	"set": hands, "unset": hands,
	"index": hands, "first": hands, "last": hands, "rest": hands, "initial": hands, "slice": hands, "list": hands,
	"tuple": hands, "dict": hands,
	"append": hands, "push": hands, "prepend": hands, "concat": hands, "chunk": hands, "reverse": hands,
	"default": hands, "coalesce": hands, "ternary": hands, "required": hands, "length": hands, "len": hands,
	"empty":  hands,
	"toJson": encodes, "toPrettyJson": encodes, "toRawJson": encodes, "toYaml": encodes, "quote": encodes,
	"squote": encodes,
	"indent": laysOut, "nindent": laysOut, "trim": laysOut,
	"shquote": quotes, "b64dec": decodes, "b32dec": decodes,
	"merge": merges, "mergeOverwrite": merges,
}, computes, `
	abbrev abbrevboth add add1 add1f addf adler32sum all any atoi b32enc b64enc base biggest camelcase cat ceil clean compact contains deepCopy
	deepEqual dir div divf ext fail float64 floor fromJson fromYaml has hasPrefix hasSuffix hello html initials int int64 isAbs join js kebabcase
	keys kindIs kindOf lower max maxf min minf mod mul mulf nospace osBase osClean osDir osExt osIsAbs plural print printf println regexFind
	regexFindAll regexMatch regexQuoteMeta regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace round semver semverCompare seq
	sha1sum sha256sum sha512sum snakecase sortAlpha split splitList splitn sub subf substr swapcase title toDecimal toString toStrings
	trimAll trimPrefix trimSuffix trimall trunc typeIs typeIsLike typeOf uniq until untilStep untitle upper urlJoin urlParse urlquery
	without wrap wrapWith`)

// withClass adds functions of one class.
func withClass(to map[string]class, all class, names string) map[string]class {
	for _, name := range strings.Fields(names) {
		to[name] = all
	}
	return to
}

// base is the name of a function without the must of its variant that fails.
func base(name string) string {
	if rest, ok := strings.CutPrefix(name, "must"); ok && rest != "" {
		return strings.ToLower(rest[:1]) + rest[1:]
	}
	return name
}

// metered is a function that spends work, refuses to make what would be too large, and keeps opaque texts apart.
func (m *meter) metered(name string, f any) any {
	fn := &function{m: m, name: name, f: reflect.ValueOf(f), class: classes[base(name)], want: wants[name]}
	t := fn.f.Type()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = anyText(t.In(i), t.IsVariadic() && i == len(in)-1)
	}
	value, failed := reflect.TypeFor[any](), reflect.TypeFor[error]()
	wrapped := reflect.FuncOf(in, []reflect.Type{value, failed}, t.IsVariadic())
	return reflect.MakeFunc(wrapped, func(args []reflect.Value) []reflect.Value {
		out, err := fn.call(plainArgs(args, t.IsVariadic()))
		result := []reflect.Value{reflect.Zero(value), reflect.Zero(failed)}
		if out != nil {
			result[0] = reflect.ValueOf(&out).Elem()
		}
		if err != nil {
			result[1] = reflect.ValueOf(&err).Elem()
		}
		return result
	}).Interface()
}

// anyText is the type of a parameter that takes opaque values as well.
func anyText(t reflect.Type, variadic bool) reflect.Type {
	if variadic {
		return reflect.SliceOf(anyText(t.Elem(), false))
	}
	switch t.Kind() {
	case reflect.String, reflect.Map, reflect.Slice, reflect.Int, reflect.Int64, reflect.Float64:
		return reflect.TypeFor[any]()
	}
	return t
}

// countsWith are functions that hand on a part of their first argument: their numbers say which.
var countsWith = []string{"index", "slice", "chunk"}

// plainCounts are arguments with plain numbers in place of those of secrets.
func plainCounts(args []any) []any {
	out := slices.Clone(args)
	for i, arg := range out {
		switch arg.(type) {
		case opaqueInt, opaqueFloat:
			out[i] = revealed(arg)
		}
	}
	return out
}

func isNumber(k reflect.Kind) bool {
	return k == reflect.Int || k == reflect.Int64 || k == reflect.Float64
}

// call calls the function with arguments of which some may be opaque.
func (fn *function) call(args []any) (any, error) {
	seen, touched := args, false
	if slices.Contains(countsWith, base(fn.name)) {
		args = append(slices.Clone(args[:1]), plainCounts(args[1:])...)
		seen = args
	}
	if fn.class == hands {
		if err := fn.plainKeys(args); err != nil {
			return nil, err
		}
	} else if slices.ContainsFunc(args, holds) {
		seen, touched = make([]any, len(args)), true
		for i, a := range args {
			seen[i] = revealed(a)
		}
	}
	out, err := fn.metered(seen)
	if err != nil {
		return nil, err
	}
	if touched {
		if err := fn.m.secrets.made(args, out); err != nil {
			return nil, err
		}
	}
	switch {
	case fn.class == decodes:
		return foreign(out), nil
	case fn.class == quotes:
		word, _ := out.(string)
		return encoded{
			word,
			func(c *carrier) (string, error) { return c.carry(carried{text: word, form: asWord}), nil },
		}, nil
	case fn.class == hands && slices.ContainsFunc(args, isOpaqueMap):
		if m, ok := out.(map[string]any); ok { // of the parameter's type
			return opaqueMap(m), nil
		}
	case touched:
		return fn.touched(args, out)
	}
	return out, nil
}

func isOpaqueMap(v any) bool { _, ok := v.(opaqueMap); return ok }

// touched is what a call made of opaque texts.
func (fn *function) touched(args []any, out any) (any, error) {
	text, _ := out.(string)
	switch fn.class {
	case encodes:
		return encoded{text, func(c *carrier) (string, error) { return fn.encode(c, args) }}, nil
	case laysOut:
		if inner, ok := args[len(args)-1].(encoded); ok {
			return encoded{text, func(c *carrier) (string, error) { return fn.layOut(c, args, inner) }}, nil
		}
	case merges:
		return fn.merged(args[0], foreign(out))
	}
	return foreign(out), nil
}

// merged puts the result of a merge into its first argument, which others may hold.
func (fn *function) merged(into, out any) (any, error) {
	m, _ := mapOf(into)
	made, _ := mapOf(out)
	if _, keyed := into.(opaqueMap); !keyed && len(m) > 0 {
		for key := range made {
			if _, own := m[key]; !own && !plainName.MatchString(key) {
				return nil, notAKey(fn.name, key)
			}
		}
	}
	clear(m)
	for key, value := range made {
		m[key] = value
	}
	return out, nil
}

// plainKeys refuses an opaque text as a key of a map whose keys the repository chose, unless it is a plain name.
func (fn *function) plainKeys(args []any) error {
	var keys []any
	switch fn.name {
	case "set":
		if len(args) > 1 && !isOpaqueMap(args[0]) {
			keys = args[1:2]
		}
	case "dict":
		for i := 0; i < len(args); i += 2 {
			keys = append(keys, args[i])
		}
	}
	for _, key := range keys {
		if text, _ := textOf(key); holds(key) && !plainName.MatchString(text) {
			return notAKey(fn.name, text)
		}
	}
	return nil
}

func notAKey(name, key string) error {
	return fmt.Errorf(
		"%s: %.40q cannot be a key: it comes from a host's facts or from another host, and is no plain name",
		name,
		key,
	)
}

// metered calls the function within its limits.
func (fn *function) metered(args []any) (any, error) {
	args, err := fn.want.checked(args)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", fn.name, err)
	}
	in, err := fn.fit(args)
	if err == nil {
		in, err = withoutCycle(fn.name, in)
	}
	if err == nil {
		err = fn.m.before(fn.name, args, in)
	}
	if err != nil {
		return nil, err
	}
	out, err := called(fn.f, in)
	if err == nil {
		err = fn.m.after(fn.name, out[0])
	}
	if err == nil {
		if err = fn.want.finite(out[0].Interface()); err != nil {
			err = fmt.Errorf("%s: %w", fn.name, err)
		}
	}
	if err != nil || out[0].Kind() == reflect.Interface && out[0].IsNil() {
		return nil, err
	}
	return out[0].Interface(), nil
}

// fit gives the arguments the types of the parameters, as text/template does.
func (fn *function) fit(args []any) ([]reflect.Value, error) {
	t := fn.f.Type()
	in := make([]reflect.Value, t.NumIn())
	fixed := len(in)
	if t.IsVariadic() {
		fixed--
		rest := reflect.MakeSlice(t.In(fixed), len(args)-fixed, len(args)-fixed)
		for i, a := range args[fixed:] {
			v, err := fitted(a, t.In(fixed).Elem())
			if err != nil {
				return nil, err
			}
			rest.Index(i).Set(v)
		}
		in[fixed] = rest
	}
	for i, a := range args[:fixed] {
		v, err := fitted(a, t.In(i))
		if err != nil {
			return nil, err
		}
		in[i] = v
	}
	return in, nil
}

func fitted(arg any, want reflect.Type) (reflect.Value, error) {
	if text, ok := textOf(arg); ok && want.Kind() == reflect.String {
		return reflect.ValueOf(text), nil
	}
	v := reflect.ValueOf(arg)
	switch {
	case v.IsValid() && v.Type().AssignableTo(want):
		return v, nil
	case v.IsValid() && isNumber(want.Kind()) && (v.CanInt() || v.CanFloat() && want.Kind() == reflect.Float64):
		return v.Convert(want), nil
	case v.IsValid():
		return v, fmt.Errorf("wrong type for value; expected %s; got %T", want, revealed(arg))
	}
	switch want.Kind() {
	case reflect.Interface, reflect.Map, reflect.Slice, reflect.Pointer:
		return reflect.Zero(want), nil
	}
	return v, fmt.Errorf("invalid value; expected %s", want)
}
