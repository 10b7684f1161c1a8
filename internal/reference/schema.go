package reference

import (
	"reflect"
	"strings"
	"unicode"

	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/render"
)

// object is a JSON object: a schema, or a part of one.
type object = map[string]any

// Schemas are the JSON Schemas (draft 2020-12) of the kinds of files, by kind. They accept what the decoder accepts:
// files that are templates are checked as they stand, so whatever has a form of its own may be a text with a template
// action in it instead. Extensions are the names of actions that the repository brings itself, whose parameters are not
// checked.
func Schemas(extensions ...string) (map[string]map[string]any, error) {
	w, err := newWriter()
	out := map[string]map[string]any{}
	for _, k := range Kinds() {
		g := &generator{w, k.Template, object{}, extensions}
		out[k.Name] = g.file(k)
	}
	return out, err
}

// generator makes the schema of one kind of file. Objects are definitions, which are made once.
type generator struct {
	*writer
	template   bool
	defs       object
	extensions []string
}

func (g *generator) file(k render.Kind) object {
	var out object
	if k.Shape.Kind == render.Object {
		out = g.body(k.Shape)
		if k.Spec {
			g.underSpec(out)
		}
		g.metadataAtTop(out, k.Shape)
	} else {
		out = g.of(k.Shape)
	}
	if k.Name == "jobs" {
		g.complete(out)
	}
	out["type"] = []string{"object", "null"} // nothing in the file
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["title"] = k.Files
	out["description"], _ = cutExample(g.text(k.Shape, k.Name))
	if len(g.defs) > 0 {
		out["$defs"] = g.defs
	}
	return out
}

// underSpec lets the body of a file stand under spec, as a whole or in part.
func (g *generator) underSpec(file object) {
	body := object{"type": "object", "properties": file["properties"], "additionalProperties": false}
	g.defs["spec"] = body
	with := object{"spec": object{"$ref": "#/$defs/spec", "description": "the body of the file, beside its metadata"}}
	for name, property := range file["properties"].(object) {
		with[name] = property
	}
	file["properties"] = with
	if required, ok := file["required"]; ok {
		delete(file, "required")
		inSpec := object{"required": []string{"spec"}, "properties": object{"spec": object{"required": required}}}
		file["anyOf"] = []any{object{"required": required}, inSpec}
	}
}

// metadataAtTop lets the fields of the metadata stand beside those of the file.
func (g *generator) metadataAtTop(file object, s *render.Shape) {
	for _, f := range s.Fields {
		if f.Name != "metadata" {
			continue
		}
		properties := file["properties"].(object)
		for name, property := range g.body(f.Shape)["properties"].(object) {
			if _, taken := properties[name]; !taken {
				properties[name] = property
			}
		}
	}
}

// of is the schema of a shape. One with a name is a definition, too.
func (g *generator) of(s *render.Shape) object {
	if s.Name == "" || s.Kind == render.Object || s.Kind == render.Table {
		return g.form(s)
	}
	name := strings.Join(
		strings.FieldsFunc(s.Name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }),
		"-",
	)
	if _, known := g.defs[name]; !known {
		g.defs[name] = g.form(s)
	}
	return object{"$ref": "#/$defs/" + name}
}

func (g *generator) form(s *render.Shape) object {
	switch s.Kind {
	case render.Text:
		return g.ofText(s)
	case render.Number:
		return g.orTemplate(s, object{"type": "integer"}, object{"type": "string", "pattern": "^[-+]?[0-9]+$"})
	case render.Truth:
		const words = "^([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff])$"
		return g.orTemplate(s, object{"type": "boolean"}, object{"type": "string", "pattern": words})
	case render.List:
		return object{"type": g.types(s, "array"), "items": g.of(s.Elem)}
	case render.Table:
		return g.table(s)
	case render.Object:
		return g.object(s)
	case render.Either:
		var all []object
		for _, one := range s.Either {
			all = append(all, g.of(one))
		}
		return anyOf(g.orNull(s, all)...)
	case render.Action:
		var names []string
		for _, spec := range action.All() {
			names = append(names, spec.Name)
		}
		return g.orTemplate(&render.Shape{NotNull: true}, object{"enum": append(names, g.extensions...)})
	case render.Parameters:
		return object{"type": g.types(s, "object", "array")}
	}
	return object{}
}

// ofText is any scalar, as YAML reads it, unless the text has a form of its own.
func (g *generator) ofText(s *render.Shape) object {
	switch {
	case len(s.Words) > 0:
		return g.orTemplate(s, object{"enum": s.Words})
	case s.Pattern != "":
		number := object{"type": "integer", "minimum": 0, "maximum": s.Most}
		return g.orTemplate(s, object{"type": "string", "pattern": s.Pattern}, number)
	}
	return object{"type": g.types(s, "string", "number", "boolean")}
}

// table is a map whose keys are free, but for those of an action.
func (g *generator) table(s *render.Shape) object {
	out := object{"type": g.types(s, "object"), "additionalProperties": g.of(s.Elem)}
	if s.Elem.Kind == render.Parameters {
		known := object{}
		for _, spec := range action.All() {
			known[spec.Name] = g.parameters(spec.Name, s.Elem)
		}
		out["properties"] = known
	}
	return out
}

// object is an object with these fields and no others; one that a type declares is a definition.
func (g *generator) object(s *render.Shape) object {
	if s.Type == nil || s.Elem != nil {
		return g.body(s)
	}
	name := typeName(s.Type)
	if _, known := g.defs[name]; !known {
		g.defs[name] = object{} // it is being made
		g.defs[name] = g.body(s)
	}
	return object{"$ref": "#/$defs/" + name}
}

func (g *generator) body(s *render.Shape) object {
	properties, required := object{}, []string{}
	for _, f := range s.Fields {
		property := g.of(f.Shape)
		if text := g.describe(f); text != "" {
			property["description"] = text
		}
		properties[f.Name] = property
		if f.Required {
			required = append(required, f.Name)
		}
	}
	out := object{"type": g.types(s, "object"), "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	switch {
	case s.Elem != nil && s.Keys != "":
		out["patternProperties"] = object{s.Keys: g.of(s.Elem)}
	case s.Elem != nil:
		out["additionalProperties"] = g.of(s.Elem)
	}
	g.actions(s, out)
	return out
}

// describe is what there is to say about a field, with its default.
func (g *generator) describe(f render.ShapeField) string {
	text := strings.Join(strings.Fields(g.ofField(f.Owner, f.Go, f.Name)), " ")
	if set := g.defaults[typeName(f.Owner)+"."+f.Go]; set != "" {
		text = strings.TrimSuffix(text, ".") + "; default " + set
	}
	return text
}

// types are the JSON types of a shape: an empty value is none, where the decoder takes it for a field that is not
// there.
func (g *generator) types(s *render.Shape, names ...string) any {
	if !s.NotNull {
		names = append(names, "null")
	}
	if len(names) == 1 {
		return names[0]
	}
	return names
}

func (g *generator) orNull(s *render.Shape, all []object) []object {
	if !s.NotNull {
		all = append(all, object{"type": "null"})
	}
	return all
}

// orTemplate is one of some forms or, where files are templates, a text with an action.
func (g *generator) orTemplate(s *render.Shape, all ...object) object {
	if g.template {
		all = append(all, object{"type": "string", "pattern": `\{\{`})
	}
	return anyOf(g.orNull(s, all)...)
}

func anyOf(all ...object) object {
	if len(all) == 1 {
		return all[0]
	}
	return object{"anyOf": all}
}

// parametersOf is the shape of an action's parameters.
func parametersOf(name string) *render.Shape {
	for _, spec := range action.All() {
		if spec.Name == name {
			return render.ShapeOf(reflect.TypeOf(spec.New()).Elem())
		}
	}
	return &render.Shape{Kind: render.Object}
}
