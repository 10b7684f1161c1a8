// Package reference tells what can be written: in a state repository, in a host's configuration, and in templates. It
// reads the types that the decoder fills and the comments in their sources, so that it cannot drift from what pullet
// does. Topics are for people, Schema is for editors.
package reference

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet"
	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// Topic is one thing that can be explained.
type Topic struct {
	Name     string   `json:"name"` // file.managed.mode
	Group    string   `json:"group"`
	Summary  string   `json:"summary,omitempty"`
	Type     string   `json:"type,omitempty"`
	Required bool     `json:"required,omitempty"`
	Default  string   `json:"default,omitempty"`
	Values   []string `json:"values,omitempty"` // the only ones
	Text     string   `json:"text,omitempty"`
	Example  string   `json:"example,omitempty"`
	Fields   []Topic  `json:"fields,omitempty"`
}

// The groups of topics, in their order.
const (
	actionGroup   = "action"
	moduleGroup   = "module"
	fileGroup     = "file of a state repository"
	configGroup   = "configuration of a host"
	rootGroup     = "root of templates and conditions"
	factGroup     = "fact of a host"
	functionGroup = "template function"
	sprigGroup    = "template function of sprig"
	builtinGroup  = "template function of Go"
)

// Topics are all topics, group by group; fields stand in what they belong to.
func Topics() ([]Topic, error) {
	w, err := newWriter()
	if err != nil {
		return nil, err
	}
	var out []Topic
	for _, spec := range action.All() {
		out = append(out, w.action(spec))
	}
	for _, k := range Kinds() {
		out = append(out, w.kind(k))
	}
	out = append(out, w.roots()...)
	return append(out, w.functions()...), nil
}

// configKind is the one kind of file that is no part of a state repository.
const configKind = "config"

// Kinds are the kinds of files of a state repository, and the host's configuration.
func Kinds() []render.Kind {
	config := render.ShapeOf(reflect.TypeFor[agent.Config]())
	return append(
		render.Kinds(),
		render.Kind{Name: configKind, Files: "/etc/pullet/pullet.yaml, /etc/pullet/conf.d/*.yaml", Shape: config},
	)
}

// writer makes topics of types and comments.
type writer struct {
	comments
	defaults map[string]string // by the names that comments have
}

func newWriter() (*writer, error) {
	c, err := readComments(pullet.Source)
	w := &writer{c, map[string]string{}}
	w.addDefaults(reflect.ValueOf(agent.Default()))
	for _, spec := range action.All() {
		w.addDefaults(reflect.ValueOf(spec.New()).Elem())
	}
	return w, err
}

// addDefaults notes what is set in a value that nobody has changed yet.
func (w *writer) addDefaults(v reflect.Value) {
	for i := range v.NumField() {
		f, value := v.Type().Field(i), v.Field(i)
		switch {
		case f.Tag.Get("yaml") == "" || value.IsZero():
		case value.Kind() == reflect.Struct:
			w.addDefaults(value)
		default:
			w.defaults[typeName(v.Type())+"."+f.Name] = asYAML(value)
		}
	}
}

func (w *writer) action(spec apply.Spec) Topic {
	of := reflect.TypeOf(spec.New()).Elem()
	t := Topic{Name: spec.Name, Group: actionGroup, Summary: spec.Summary}
	t.Text, t.Example = cutExample(w.ofType(of, spec.Name))
	t.Fields = w.fields(t, render.ShapeOf(of))
	return t
}

// cutExample takes the indented block after "Example:" out of a comment.
func cutExample(text string) (rest, example string) {
	rest, block, _ := strings.Cut(text, "\nExample:\n")
	var b strings.Builder
	for line := range strings.Lines(block) {
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	return strings.TrimSpace(rest), strings.TrimSpace(b.String())
}

func (w *writer) kind(k render.Kind) Topic {
	t := Topic{Name: k.Name, Group: fileGroup, Summary: k.Files, Type: typeOf(k.Shape)}
	if k.Name == configKind {
		t.Group = configGroup
	}
	t.Text, t.Example = cutExample(w.text(k.Shape, k.Name))
	t.Fields = w.fields(t, k.Shape)
	return t
}

// text is what the comment of a shape's type says.
func (w *writer) text(s *render.Shape, name string) string {
	if s.Type == nil {
		return ""
	}
	return strings.TrimSpace(w.ofType(s.Type, name))
}

// fields are the topics below one: the fields of the object that its shape is, or has elements of.
func (w *writer) fields(of Topic, s *render.Shape) []Topic {
	var out []Topic
	for _, f := range s.Fields {
		out = append(out, w.field(of, f))
	}
	if s.Elem != nil {
		out = append(out, w.fields(of, s.Elem)...)
	}
	for _, one := range s.Either {
		for _, t := range w.fields(of, one) {
			if !has(out, t.Name) {
				out = append(out, t)
			}
		}
	}
	return out
}

func has(topics []Topic, name string) bool {
	for _, t := range topics {
		if t.Name == name {
			return true
		}
	}
	return false
}

func (w *writer) field(of Topic, f render.ShapeField) Topic {
	t := Topic{
		Name:     of.Name + "." + f.Name,
		Group:    of.Group,
		Required: f.Required,
		Type:     typeOf(f.Shape),
		Values:   f.Shape.Words,
	}
	t.Text, t.Default = cutDefault(strings.TrimSpace(w.ofField(f.Owner, f.Go, f.Name)))
	if set := w.defaults[typeName(f.Owner)+"."+f.Go]; set != "" {
		t.Default = set
	}
	if t.Default == "" && f.Shape.Kind == render.Truth {
		t.Default = "false"
	}
	t.Fields = w.fields(t, f.Shape)
	return t
}

// asYAML is a value as it is written in YAML.
func asYAML(v reflect.Value) string {
	if d, ok := v.Interface().(render.Duration); ok {
		return strings.Replace(strings.Replace(d.Std().String(), "m0s", "m", 1), "h0m", "h", 1)
	}
	if s, ok := v.Interface().(render.Size); ok {
		return s.String()
	}
	out, err := yaml.Dump(v.Interface())
	if err != nil {
		return fmt.Sprint(v.Interface())
	}
	return strings.TrimSpace(string(out))
}

var defaultAtEnd = lazyregexp.New(`(?:^|[;,] )(with [^;,]+ )?default:? ([^;]+?)\.?$`)

// cutDefault takes what a comment says last of the default out of it.
func cutDefault(text string) (rest, value string) {
	m := defaultAtEnd.FindStringSubmatchIndex(text)
	if m == nil {
		return text, ""
	}
	value = text[m[4]:m[5]]
	if m[2] >= 0 { // it depends
		value += " " + strings.TrimSpace(text[m[2]:m[3]])
	}
	return strings.TrimSpace(text[:m[0]]), value
}

// typeOf is a shape in words.
func typeOf(s *render.Shape) string {
	switch {
	case s.Name != "":
		return s.Name
	case len(s.Words) > 0:
		return "word"
	}
	switch s.Kind {
	case render.Text:
		return "text"
	case render.Number:
		return "number"
	case render.Truth:
		return "true or false"
	case render.List:
		return "list of " + plural(typeOf(s.Elem))
	case render.Table:
		return "map of " + plural(typeOf(s.Elem))
	case render.Object:
		return "map"
	case render.Action:
		return "name of an action"
	case render.Parameters:
		return "parameters"
	case render.Either:
		return "text or map"
	}
	return "any YAML"
}

func plural(name string) string {
	switch name {
	case "any YAML", "parameters", "true or false":
		return name
	}
	head, rest, more := strings.Cut(name, ", ")
	if head, of, ok := strings.Cut(name, " of "); ok {
		return head + "s of " + of
	}
	if head, _, ok := strings.Cut(name, ": "); ok {
		return head + "s"
	}
	if more {
		return head + "s, " + rest
	}
	return name + "s"
}
