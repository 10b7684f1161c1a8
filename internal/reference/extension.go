package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// ExtensionGroup are the actions that a repository brings itself.
const ExtensionGroup = "action of this repository"

// OfExtension is the topic of an action that a repository brings itself, as its manifest describes it.
func OfExtension(e *render.Extension) Topic {
	t := Topic{Name: e.Name, Group: ExtensionGroup, Summary: e.Summary}
	t.Text, _ = e.Parameters["description"].(string)
	if t.Summary == "" {
		t.Summary = "runs " + e.Source()
	}
	required, _ := e.Parameters["required"].([]any)
	properties, _ := e.Parameters["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		schema, _ := properties[name].(map[string]any)
		field := Topic{
			Name:     e.Name + "." + name,
			Group:    ExtensionGroup,
			Required: slices.Contains(required, any(name)),
			Type:     jsonType(schema["type"]),
		}
		field.Text, _ = schema["description"].(string)
		values, _ := schema["enum"].([]any)
		for _, v := range values {
			field.Values = append(field.Values, fmt.Sprint(v))
		}
		if len(values) > 0 && field.Type == "" {
			field.Type = "word"
		}
		if set, ok := schema["default"]; ok {
			field.Default = fmt.Sprint(set)
		}
		t.Fields = append(t.Fields, field)
	}
	return t
}

// jsonType is what a schema says of the type, in words.
func jsonType(v any) string {
	words := map[string]string{
		"string":  "text",
		"integer": "number",
		"number":  "number",
		"boolean": "true or false",
		"array":   "list",
		"object":  "map",
	}
	switch v := v.(type) {
	case string:
		return words[v]
	case []any:
		var each []string
		for _, one := range v {
			each = append(each, jsonType(one))
		}
		return strings.Join(slices.DeleteFunc(each, func(s string) bool { return s == "" }), ", or ")
	}
	return ""
}
