package render

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"go.yaml.in/yaml/v4"
)

// impure are sprig's functions that read the environment, the network, the clock or chance, or that make keys: the same
// snapshot must give the same catalog on every node and at any time.
var impure = []string{
	"env", "expandenv", "getHostByName",
	"now", "date", "dateInZone", "date_in_zone", "dateModify", "date_modify", "mustDateModify", "must_date_modify",
	"ago", "htmlDate", "htmlDateInZone", "duration", "durationRound", "unixEpoch", "toDate", "mustToDate",
	"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes", "randInt", "shuffle", "uuidv4",
	"bcrypt", "htpasswd", "derivePassword", "encryptAES", "decryptAES",
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
	"genSignedCert", "genSignedCertWithKey", "buildCustomCert",
}

// maxItems bounds the functions that make lists or repeat text.
const maxItems = 100_000

// pureFuncs are the template functions that need no catalog: sprig's pure part and a few of our own.
func pureFuncs() template.FuncMap {
	funcs := sprig.TxtFuncMap()
	for _, name := range impure {
		delete(funcs, name)
	}
	strictFuncs(funcs)
	funcs["toYaml"] = toYAML
	funcs["fromYaml"] = fromYAML
	funcs["required"] = required
	funcs["shquote"] = shquote
	funcs["length"] = length
	funcs["index"] = index
	funcs["dig"] = dig
	bound(funcs, "until", 1)
	bound(funcs, "untilStep", 3)
	bound(funcs, "seq", 3)
	bound(funcs, "repeat", 1)
	return funcs
}

// bound refuses calls of a function whose first counts numbers reach too far.
func bound(funcs template.FuncMap, name string, counts int) {
	f := reflect.ValueOf(funcs[name])
	funcs[name] = func(args ...any) (any, error) {
		in := make([]reflect.Value, len(args))
		for i, a := range args {
			if n, ok := a.(int); ok && i < counts && (n > maxItems || n < -maxItems) {
				return nil, fmt.Errorf("%s: %d is more than %d", name, n, maxItems)
			}
			in[i] = reflect.ValueOf(a)
		}
		if err := fits(f.Type(), in); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return f.Call(in)[0].Interface(), nil
	}
}

// fits checks arguments against a function's parameters, which reflect would panic about.
func fits(f reflect.Type, in []reflect.Value) error {
	if !f.IsVariadic() && len(in) != f.NumIn() {
		return fmt.Errorf("wants %d arguments, got %d", f.NumIn(), len(in))
	}
	for i, a := range in {
		want := f.In(min(i, f.NumIn()-1))
		if f.IsVariadic() && i >= f.NumIn()-1 {
			want = want.Elem()
		}
		if !a.IsValid() || !a.Type().AssignableTo(want) {
			return fmt.Errorf("argument %d must be %s", i+1, want)
		}
	}
	return nil
}

// toYAML is a value as YAML: {{ toYaml vars.app | indent 2 }}.
func toYAML(v any) (string, error) {
	out, err := yaml.Dump(PlainNumbers(v), yaml.WithV3Defaults(), yaml.WithIndent(2))
	return strings.TrimSuffix(string(out), "\n"), err
}

// fromYAML is what a YAML text holds, as a file of variables does.
func fromYAML(text string) (any, error) {
	doc, errs := parseYAML(&rendered{src: &source{text: text}, text: []byte(text)})
	if len(errs) > 0 {
		return nil, fmt.Errorf("line %d: %s", errs[0].Pos.Line, errs[0].Message)
	}
	if doc.root == nil {
		return nil, nil
	}
	d := &decoder{doc: doc}
	out := d.any(doc.root)
	if len(d.errs) > 0 {
		return nil, errors.New(d.errs[0].Message)
	}
	return out, nil
}

// shquote is a text or a number as one word of a shell: {{ shquote server.name }}.
func shquote(v any) (string, error) {
	text, ok := v.(string)
	if !ok {
		switch v.(type) {
		case bool, int, int64, float64:
			text = fmt.Sprint(v)
		default:
			return "", fmt.Errorf("%T is no text: quote the elements one by one", v)
		}
	}
	if strings.Contains(text, "\x00") {
		return "", errors.New("a word of a shell cannot hold the character NUL")
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
}

// required is the value, or a mistake with this message where it is empty: {{ required "set app.port" vars.port }}.
func required(message string, v any) (any, error) {
	if s, ok := textOf(v); v == nil || ok && s == "" {
		return nil, errors.New(message)
	}
	return v, nil
}

// length is the number of elements of a map, a list or a text.
func length(v any) (int, error) {
	if text, ok := textOf(v); ok {
		return len(text), nil
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array, reflect.String:
		return r.Len(), nil
	}
	return 0, fmt.Errorf("%T has no length", v)
}

// dig is what the keys lead to, a map in a map, or the default where a key is not there or null: {{ dig "tls" "port"
// 443 vars.web }}.
func dig(args ...any) (any, error) {
	if len(args) < 3 {
		return nil, fmt.Errorf("wants keys, a default and a map, got %d arguments", len(args))
	}
	keys, otherwise, here := args[:len(args)-2], args[len(args)-2], args[len(args)-1]
	for _, key := range keys {
		name, isText := textOf(key)
		m, isMap := mapOf(here)
		if !isText || !isMap {
			return nil, fmt.Errorf("%v is a key of no map: found %T", revealed(key), revealed(here))
		}
		if here = m[name]; here == nil { // also where it is null
			return otherwise, nil
		}
	}
	return here, nil
}

// index is text/template's, but that a key which is not there is an error: use dig or get for what is optional.
func index(v any, keys ...any) (any, error) {
	for _, key := range keys {
		if text, ok := textOf(key); ok {
			key = text
		}
		if root, ok := v.(interface {
			get(name string) (any, error)
		}); ok {
			found, err := root.get(fmt.Sprint(key))
			if err != nil {
				return nil, err
			}
			v = found
			continue
		}
		r := reflect.ValueOf(v)
		switch r.Kind() {
		case reflect.Map:
			k := reflect.ValueOf(key)
			if !k.IsValid() || !k.Type().AssignableTo(r.Type().Key()) {
				return nil, fmt.Errorf("%v is not a key of this map", key)
			}
			found := r.MapIndex(k)
			if !found.IsValid() {
				return nil, fmt.Errorf("there is no %q", fmt.Sprint(key))
			}
			v = found.Interface()
		case reflect.Slice, reflect.Array, reflect.String:
			i, ok := key.(int)
			if !ok || i < 0 || i >= r.Len() {
				return nil, fmt.Errorf("there is no element %v among %d", key, r.Len())
			}
			if r.Kind() == reflect.String && holds(v) {
				return nil, errors.New("a text from another host or from this host's facts has no elements: use substr")
			}
			v = r.Index(i).Interface()
		default:
			return nil, fmt.Errorf("%T has no elements", v)
		}
	}
	return v, nil
}
