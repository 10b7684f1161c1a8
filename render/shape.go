package render

import (
	"maps"
	"reflect"
	"slices"
)

// Shape is what may stand at a place of a file, as the decoder reads it: the reference and the JSON Schemas are made of
// it.
type Shape struct {
	Kind    ShapeKind
	Name    string       // for people, where the kind does not say it: "duration"
	Type    reflect.Type // of an object: its comments describe it
	Fields  []ShapeField // of an object, or words among parameters
	Keys    string       // a pattern for the keys of a table, or of an object's other entries; "" is any
	Elem    *Shape       // of a list or a table, or of an object's other entries
	Either  []*Shape
	Pattern string   // of a text that is no number
	Most    int      // of a number that stands for a text with a pattern; 0 is only 0
	Words   []string // the only texts
	NotNull bool     // nothing behind the colon is a mistake
}

// ShapeField is a field of an object. The comment beside Go in Owner describes it.
type ShapeField struct {
	Name     string
	Required bool
	Owner    reflect.Type
	Go       string
	Shape    *Shape
}

// ShapeKind tells what of a Shape is set.
type ShapeKind int

// The kinds of shapes. Free is any YAML; Action is the name of an action, Parameters are those of the action beside it
// with the words of Fields among them.
const (
	Free ShapeKind = iota
	Text
	Number
	Truth
	List
	Table
	Object
	Either
	Action
	Parameters
)

// Kind is a kind of file of a state repository.
type Kind struct {
	Name     string
	Files    string // where they are
	Template bool   // rendered before they are read, or holding texts that are templates
	Spec     bool   // the body may stand under spec
	Shape    *Shape
}

// Kinds are the kinds of files of a state repository.
func Kinds() []Kind {
	of := func(v any) *Shape { return ShapeOf(reflect.TypeOf(v)) }
	macros := &Shape{Kind: Object, Name: "macros by name", Type: reflect.TypeFor[macroFile](), Elem: macroShape()}
	macros.Fields = of(macroFile{}).Fields
	triggers := of(triggerFile{})
	triggers.Name, triggers.Elem = "triggers by name", of(triggerBody{})
	return []Kind{
		{"pullet", FleetFile, false, true, of(Fleet{})},
		{"base-config", ConfigFile, false, true, of(configFile{})},
		{"nodes", "nodes/**.yaml", false, true, of(inventoryFile{})},
		{"base-vars", "base/vars.yaml", true, true, of(varsBase{})},
		{"base-macros", "base/macros.yaml", true, true, of(macrosBase{})},
		{"base-jobs", "base/jobs.yaml", true, true, of(jobsBase{})},
		{"base-services", ServicesFile, true, true, of(servicesBase{})},
		{"base-events", eventsFile, true, true, of(eventsBase{})},
		{
			"vars",
			"vars/**.yaml",
			true,
			false,
			&Shape{Kind: Table, Name: "variables by name", Type: reflect.TypeFor[varsFile](), Elem: &Shape{}},
		},
		{"macros", "macros/**.yaml", true, false, macros},
		{"jobs", "jobs/**.yaml", true, true, of(jobFile{})},
		{"events", "events/**.yaml", true, false, triggers},
		{"reactions", "reactions/**.yaml", false, true, of(reactionsFile{})},
		{"reaction-jobs", "jobs/**.yaml that reactions name", false, true, of(jobTargets{})},
		{"extensions", "extensions/**.yaml", false, true, of(extensionFile{})},
		{"secrets", SecretsFile, false, true, of(SecretRules{})},
	}
}

// macroFile is a file of macros: names with their templates, or with the commands whose output they are.
type macroFile struct {
	Metadata *Metadata `yaml:"metadata"` // names the file; it changes nothing
}

// varsFile is a file of variables: free YAML.
type varsFile struct{}

// macroShape is the long form of a macro or the short one, whose first key is the action.
func macroShape() *Shape {
	short := &Shape{Kind: Object, Keys: `\.`, Elem: (*Params)(nil).shape(), NotNull: true}
	long := ShapeOf(reflect.TypeFor[macroBody]())
	for _, f := range long.Fields {
		if f.Name == "params" {
			short.Fields = append(short.Fields, f)
		}
	}
	return &Shape{Kind: Either, Name: "macro", Either: []*Shape{long, short}}
}

// shaped is implemented by types whose form is not to be seen from their fields.
type shaped interface{ shape() *Shape }

// ShapeOf is the shape of the values of a type.
func ShapeOf(t reflect.Type) *Shape {
	if own, ok := reflect.New(t).Interface().(shaped); ok {
		return own.shape()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ShapeOf(t.Elem())
	case reflect.String:
		return &Shape{Kind: Text}
	case reflect.Bool:
		return &Shape{Kind: Truth}
	case reflect.Int, reflect.Int64:
		return &Shape{Kind: Number}
	case reflect.Map:
		return &Shape{Kind: Table, Elem: ShapeOf(t.Elem())}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.String {
			return (*Strings)(nil).shape()
		}
		return &Shape{Kind: List, Elem: ShapeOf(t.Elem())}
	case reflect.Struct:
		return &Shape{Kind: Object, Type: t, Fields: shapeFields(t)}
	}
	return &Shape{}
}

// shapeFields are the fields of a struct and of those that are inline in it.
func shapeFields(t reflect.Type) []ShapeField {
	fields, names := fieldsOf(t)
	var out []ShapeField
	for _, name := range names {
		f := fields[name]
		owner := t
		for _, i := range f.index[:len(f.index)-1] {
			owner = owner.Field(i).Type
		}
		own := t.FieldByIndex(f.index)
		shape := ShapeOf(own.Type)
		shape.Words = f.words
		out = append(out, ShapeField{name, f.required, owner, own.Name, shape})
	}
	return out
}

// The forms of the types that decode themselves.

func (v *Duration) shape() *Shape {
	const clock = `(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h) ?)+`
	return &Shape{
		Kind:    Text,
		Name:    "duration",
		Pattern: `^([0-9]+w ?([0-9]+d ?)?(` + clock + `)?|[0-9]+d ?(` + clock + `)?|` + clock + `|0)$`,
		NotNull: true,
	}
}

func (v *Size) shape() *Shape {
	return &Shape{Kind: Text, Name: "size", Pattern: sizeText.String(), NotNull: true}
}

func (v *Strings) shape() *Shape {
	one := &Shape{Kind: Text}
	return &Shape{Kind: Either, Name: "text, or list of texts", Either: []*Shape{one, {Kind: List, Elem: one}}}
}

func (l *Line) shape() *Shape {
	one := &Shape{Kind: Text, NotNull: true}
	return &Shape{
		Kind:   Either,
		Name:   "command: text, or list of texts",
		Either: []*Shape{one, {Kind: List, Elem: one, NotNull: true}},
	}
}

func (l *Limit) shape() *Shape {
	return &Shape{
		Kind:    Text,
		Name:    "limit: 2, or 25%",
		Pattern: `^([0-9]{1,6}|0*([1-9][0-9]?|100)%)$`,
		Most:    999999,
		NotNull: true,
	}
}

func (e *Expression) shape() *Shape { return &Shape{Kind: Text, Name: "expression", NotNull: true} }

func (p *Params) shape() *Shape {
	return &Shape{Kind: Parameters, Fields: shapeFields(reflect.TypeFor[requisiteFields]())}
}

func (a *actionName) shape() *Shape { return &Shape{Kind: Action} }

func (o *stepOptions) shape() *Shape { return ShapeOf(reflect.TypeFor[RunOptions]()) }

func (a *anyNode) shape() *Shape { return &Shape{} }

func (n *nameNode) shape() *Shape { return &Shape{Kind: Text} }

func (n *stepNode) shape() *Shape { return ShapeOf(reflect.TypeFor[stepBody]()) }

func (n *itemsNode) shape() *Shape {
	return &Shape{
		Kind:   Either,
		Name:   "list, or expression",
		Either: []*Shape{{Kind: List, Elem: &Shape{}}, {Kind: Text, NotNull: true}},
	}
}

func (n *requisiteNode) shape() *Shape {
	name := &Shape{Kind: Text}
	named := &Shape{Kind: Table, Elem: name, NotNull: true}
	one := &Shape{Kind: Either, Either: []*Shape{name, named}, NotNull: true}
	return &Shape{
		Kind:   Either,
		Name:   "requisite, or list of requisites",
		Either: []*Shape{name, named, {Kind: List, Elem: one, NotNull: true}},
	}
}

func (t *targeted[E]) shape() *Shape {
	list := &Shape{Kind: List, Elem: ShapeOf(reflect.TypeFor[E]())}
	return &Shape{Kind: Table, Name: "lists by target", Elem: list, NotNull: true}
}

// Functions are the names of the template functions that are no roots, sorted.
func Functions() []string {
	return slices.Sorted(maps.Keys(pureFuncs()))
}
