package reference

import (
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/render"
)

// What a step's parameters may be depends on its action.

// actions gives an object that has an action and parameters those of the known actions.
func (g *generator) actions(s *render.Shape, out object) {
	var act, params *render.ShapeField
	wrapped := false
	for i, f := range s.Fields {
		switch {
		case f.Shape.Kind == render.Action:
			act = &s.Fields[i]
		case f.Shape.Kind == render.Parameters:
			params = &s.Fields[i]
		case f.Name == "spec":
			wrapped = true
		}
	}
	if act == nil || params == nil {
		return
	}
	var cases []any
	for _, spec := range action.All() {
		then := object{"properties": object{params.Name: g.parameters(spec.Name, params.Shape)}}
		cases = append(cases, object{"if": hasAction(spec.Name), "then": then})
	}
	out["allOf"] = cases
	switch {
	case wrapped:
		out["anyOf"] = []any{object{"required": []string{act.Name}}, object{"required": []string{"spec"}}}
	case !act.Required:
		out["required"] = []string{act.Name}
	}
}

func hasAction(name string) object {
	return object{"required": []string{"action"}, "properties": object{"action": object{"const": name}}}
}

// parameters is the schema of an action's parameters, with the words that may stand among them: a map, or a list of
// maps with one key each. What is required is not said here: a file's defaults count too.
func (g *generator) parameters(name string, params *render.Shape) object {
	def := "parameters." + name
	if _, known := g.defs[def]; !known {
		own := parametersOf(name)
		all := &render.Shape{Kind: render.Object, NotNull: true}
		for _, f := range append(append([]render.ShapeField(nil), own.Fields...), params.Fields...) {
			f.Required = false
			all.Fields = append(all.Fields, f)
		}
		g.defs[def] = g.body(all)
	}
	ref := func() object { return object{"$ref": "#/$defs/" + def} }
	item := ref()
	item["minProperties"], item["maxProperties"] = 1, 1
	return object{
		"if": object{"type": "array"}, "then": object{"items": item},
		"else": object{"if": object{"type": "object"}, "then": ref(), "else": object{"type": "null"}},
	}
}

// complete demands the required parameters of steps in files whose steps say all themselves: a file with defaults, or
// with a step that gives its parameters to others by use_in, is left to validate, which knows what each step ends up
// with. So are steps that take parameters over by use. What a step of another file gives by use_in cannot be seen from
// here: write use in the step that takes it.
func (g *generator) complete(file object) {
	var cases []any
	for _, spec := range action.All() {
		var required []string
		for _, f := range parametersOf(spec.Name).Fields {
			if f.Required {
				required = append(required, f.Name)
			}
		}
		if len(required) > 0 {
			when := hasAction(spec.Name)
			when["not"] = shares("use")
			cases = append(cases, object{"if": when, "then": demand(required)})
		}
	}
	g.defs["completeStep"] = object{
		"allOf":      cases,
		"properties": object{"spec": object{"$ref": "#/$defs/completeStep"}},
	}
	steps := object{"steps": object{"items": object{"$ref": "#/$defs/completeStep"}}}
	g.defs["givesParameters"] = shares("use_in")
	gives := object{"required": []string{"steps"}, "properties": object{"steps": object{
		"type": "array", "contains": object{"anyOf": []any{
			object{"$ref": "#/$defs/givesParameters"},
			object{
				"required":   []string{"spec"},
				"properties": object{"spec": object{"$ref": "#/$defs/givesParameters"}},
			},
		}},
	}}}
	open := object{"anyOf": []any{object{"required": []string{"defaults"}}, gives}}
	file["if"] = object{
		"not": object{"anyOf": []any{open, object{"required": []string{"spec"}, "properties": object{"spec": open}}}},
	}
	file["then"] = object{"properties": object{"steps": steps["steps"], "spec": object{"properties": steps}}}
}

// demand wants parameters to be there, in either form.
func demand(names []string) object {
	var each []any
	for _, name := range names {
		each = append(each, object{"contains": object{"required": []string{name}}})
	}
	there := object{
		"if":   object{"type": "array"},
		"then": object{"allOf": each},
		"else": object{"type": "object", "required": names},
	}
	return object{"required": []string{"parameters"}, "properties": object{"parameters": there}}
}

// shares is true of a step that has a requisite, beside its parameters or among them.
func shares(requisite string) object {
	has := object{"required": []string{requisite}}
	among := object{"anyOf": []any{
		object{"type": "object", "required": []string{requisite}}, object{"type": "array", "contains": has},
	}}
	return object{
		"anyOf": []any{has, object{"required": []string{"parameters"}, "properties": object{"parameters": among}}},
	}
}
