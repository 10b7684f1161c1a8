package render

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/render/newcomer"
)

// decoder fills Go values from a document. Fields are matched by their yaml tags; an unknown field, a wrong type and a
// missing required field are mistakes, and all of them are reported. The library's own decoder is not used because its
// messages name Go types and carry no position in the template's source.
//
// Tags: `yaml:"name"`; `yaml:"name,required"`; `yaml:",inline"` for an embedded struct; `words:"a b"` for a text that
// is one of these.
type decoder struct {
	doc        *document
	keepOpaque bool // free values keep opaque texts apart
	errs       ErrorList
}

// selfDecoding is implemented by types with a YAML form of their own.
type selfDecoding interface {
	decode(d *decoder, n *yaml.Node)
}

// missingField is the cause of a mistake about a field that has to be there.
type missingField struct{ name string }

func (missingField) Error() string { return "is missing" }

func (d *decoder) failf(n *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, d.doc.errorAt(n, format, args...))
}

// into decodes a node into the value that v points to.
func (d *decoder) into(n *yaml.Node, v any) { d.value(n, reflect.ValueOf(v).Elem(), "") }

// value decodes a node; what names the field for messages.
func (d *decoder) value(n *yaml.Node, v reflect.Value, what string) {
	n = resolve(n)
	if v.CanAddr() {
		if own, ok := v.Addr().Interface().(selfDecoding); ok {
			before := len(d.errs)
			if own.decode(d, n); len(d.errs) == before {
				d.leftOut(n, own, what)
			}
			return
		}
	}
	if isNull(n) && v.Kind() != reflect.Interface {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(n, v.Elem(), what)
	case reflect.Struct:
		d.object(n, v, what)
	case reflect.Map:
		d.table(n, v, what)
	case reflect.Slice:
		d.list(n, v, what)
	case reflect.Interface:
		if x := d.any(n); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		d.scalar(n, v, what)
	}
}

// field is one field of a struct as its tag describes it.
type field struct {
	index    []int
	required bool
	words    []string // the only texts that it can be
	count    bool     // a number that is 0 or more
}

// structShape is a struct's fields by their names in YAML, and the names in order.
type structShape struct {
	fields map[string]field
	names  []string
}

// shape is that of a struct type. A repository keeps what was worked out: thousands of steps have the same few types.
func (d *decoder) shape(t reflect.Type) structShape {
	kept := d.doc.from.src.shapes
	if kept == nil {
		fields, names := fieldsOf(t)
		return structShape{fields, names}
	}
	if found, ok := kept.Load(t); ok {
		shape, _ := found.(structShape)
		return shape
	}
	fields, names := fieldsOf(t)
	kept.Store(t, structShape{fields, names})
	return structShape{fields, names}
}

// fieldsOf lists a struct's fields by their names in YAML, in order.
func fieldsOf(t reflect.Type) (map[string]field, []string) {
	fields, names := map[string]field{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			inner, innerNames := fieldsOf(f.Type)
			for _, n := range innerNames {
				deeper := inner[n]
				deeper.index = append([]int{i}, deeper.index...)
				fields[n] = deeper
			}
			names = append(names, innerNames...)
			continue
		}
		if name == "" || name == "-" {
			continue
		}
		fields[name] = field{
			[]int{i},
			options == "required",
			strings.Fields(f.Tag.Get("words")),
			f.Tag.Get("least") == "0",
		}
		names = append(names, name)
	}
	return fields, names
}

func (d *decoder) object(n *yaml.Node, v reflect.Value, what string) {
	if n.Kind != yaml.MappingNode {
		d.failf(n, "%sexpected a map, found %s", prefix(what), kindName(n))
		d.errs[len(d.errs)-1].Hint = valueHint(n, d.shape(v.Type()))
		if n.Kind == yaml.SequenceNode && v.Type() == reflect.TypeFor[jobFile]() {
			d.errs[len(d.errs)-1].Hint = "a job is a map: its list stands below steps"
		}
		return
	}
	shape := d.shape(v.Type())
	fields, names := shape.fields, shape.names
	seen, misplaced := map[string]bool{}, false
	for _, e := range entries(n) {
		f, ok := fields[e.key.Value]
		if isOpaque(e.key) {
			d.failf(e.key, "%sthe name of a field cannot come from a host's facts or from another host", prefix(what))
			continue
		}
		if !ok {
			d.unknown(e, n, what, names)
			misplaced = misplaced || what == "" && topFieldHint(e.key.Value) != ""
			continue
		}
		seen[e.key.Value] = true
		d.value(e.value, v.FieldByIndex(f.index), e.key.Value)
		if len(f.words) > 0 {
			d.oneOf(e, v.FieldByIndex(f.index).String(), f.words)
		}
		if f.count && v.FieldByIndex(f.index).Int() < 0 {
			d.failf(e.value, "%s: expected 0 or more, found %q", e.key.Value, e.value.Value)
		}
	}
	for _, name := range names {
		if fields[name].required && !seen[name] && !misplaced { // else the file is of another kind
			d.failf(n, "%s%q %v", prefix(what), name, missingField{name})
		}
	}
}

// unknown reports an entry of a map whose field does not exist, with the nearest that does.
func (d *decoder) unknown(e entry, in *yaml.Node, what string, names []string) {
	bad := d.doc.errorAt(e.key, "%sunknown field %q", prefix(what), e.key.Value)
	set := func(name string) bool {
		return slices.ContainsFunc(entries(in), func(other entry) bool { return other.key.Value == name })
	}
	top := ""
	if what == "" || slices.Contains(names, "url") { // a file, or where a repository is
		top = topFieldHint(e.key.Value)
	}
	meant := slices.Clone(names)
	if slices.Contains(names, "metadata") && Nearest(e.key.Value, names) == "" &&
		Nearest(e.key.Value, metadataFields()) != "" {
		meant = metadataFields() // which may stand at the top as well
	}
	bad.Hint = cmp.Or(newcomer.Field(e.key.Value, e.value, names, set), top, DidYouMean(e.key.Value, meant))
	d.errs = append(d.errs, bad)
}

func (d *decoder) table(n *yaml.Node, v reflect.Value, what string) {
	if n.Kind != yaml.MappingNode {
		d.failf(n, "%sexpected a map, found %s", prefix(what), kindName(n))
		if n.Kind == yaml.SequenceNode && len(n.Content) > 0 && n.Content[0].Kind == yaml.ScalarNode {
			d.errs[len(d.errs)-1].Hint = newcomer.EntryHint(n.Content[0].Value, v.Type().Elem().Kind() == reflect.String)
		}
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, e := range entries(n) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.value, item, e.key.Value)
		out.SetMapIndex(reflect.ValueOf(e.key.Value).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

// list decodes a list. A single text is a list of one where texts are expected, unless it looks like a list in quotes.
func (d *decoder) list(n *yaml.Node, v reflect.Value, what string) {
	if v.Type().Elem().Kind() == reflect.String && d.emptyText(n, what) {
		return
	}
	if v.Type().Elem().Kind() == reflect.String && n.Kind == yaml.ScalarNode && !strings.HasPrefix(n.Value, "[") {
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		d.value(n, v.Index(0), what)
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.failf(n, "%sexpected a list, found %s", prefix(what), kindName(n))
		if n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Value, "[") {
			d.errs[len(d.errs)-1].Hint = "in quotes it is text: write {{ toJson LIST }} without quotes"
		}
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		d.value(c, out.Index(i), what)
	}
	v.Set(out)
}

// emptyText refuses an empty text in the place of a list: it is what get gives for a key that is missing.
func (d *decoder) emptyText(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.Value != "" || n.ShortTag() != "!!str" {
		return false
	}
	d.failf(n, "%sexpected a list, found an empty text", prefix(what))
	hint := "write [] for an empty list"
	if source := d.doc.from.src.line(d.doc.pos(n).Line); strings.Contains(source, "toJson") ||
		strings.Contains(source, "toYaml") {
		hint = `the variable is missing or empty: write {{ get vars "NAME" | default list | toJson }}`
	}
	d.errs[len(d.errs)-1].Hint = hint
	return true
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, what string) {
	if n.Kind != yaml.ScalarNode {
		d.failf(n, "%sexpected %s, found %s", prefix(what), typeName(v), kindName(n))
		return
	}
	if v.Kind() != reflect.String && waits(n.Value) {
		return // checked when its value is known
	}
	if err := setScalar(n.Value, v); err != nil {
		d.failf(n, "%sexpected %s, found %q", prefix(what), typeName(v), n.Value)
	}
}

// setScalar reads a scalar's text, so that a mode of 0644 stays as it was written.
func setScalar(text string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, ok := map[string]bool{"true": true, "yes": true, "on": true, "false": false, "no": false,
			"off": false}[strings.ToLower(text)]
		if !ok {
			return fmt.Errorf("not a boolean")
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		v.SetInt(i)
	default:
		return fmt.Errorf("cannot hold %s", v.Type())
	}
	return nil
}

// any decodes free YAML: maps with text keys, lists, strings, numbers, booleans.
func (d *decoder) any(n *yaml.Node) any {
	n = resolve(n)
	switch n.Kind {
	case yaml.MappingNode:
		out, keyed := map[string]any{}, false
		for _, e := range entries(n) {
			out[e.key.Value] = d.any(e.value)
			keyed = keyed || isOpaque(e.key)
		}
		if keyed && d.keepOpaque {
			return opaqueMap(out)
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			out[i] = d.any(c)
		}
		return out
	}
	switch tag := n.ShortTag(); {
	case tag == "!!str" && d.keepOpaque && (isOpaque(n) || holdsMarks(n.Value)):
		return opaque(n.Value)
	case tag == "!!str": // as Load says, without its cost
		return n.Value
	case tag == "!!timestamp": // dates stay as they were written
		return n.Value
	case tag == "!!int" || tag == "!!float": // so do modes, which must not become 420, and 1.10
		return keptNumber(n.Value)
	}
	var out any
	if err := n.Load(&out); err != nil {
		d.failf(n, "invalid value %q: %v", n.Value, err)
	}
	return out
}

func prefix(what string) string {
	if what == "" {
		return ""
	}
	return what + ": "
}

func typeName(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a number"
	}
	return "a text"
}
