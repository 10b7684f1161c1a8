package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pullet/pullet/render"
)

// paramSchema is the JSON Schema of an extension's parameters, ready for use.
type paramSchema struct {
	*jsonschema.Schema
	defaults map[string]any    // of parameters that are not set
	types    map[string]string // of parameters that have one type
	names    []string          // of parameters, sorted
	branches bool              // what it allows may depend on values
}

const (
	draft     = "https://json-schema.org/draft/2020-12/schema"
	schemaURL = "https://pullet.invalid/parameters" // a name for messages of the library; nothing is fetched
)

// compileSchema makes a manifest's schema ready. Parameters that it does not name are refused, unless it says otherwise
// itself.
func compileSchema(e *render.Extension) (*paramSchema, render.ErrorList) {
	text := maps.Clone(e.Parameters)
	if text == nil {
		text = map[string]any{}
	}
	look := &schemaReader{e: e}
	look.object(text, []string{"parameters"})
	look.top(text)
	if len(look.errs) > 0 {
		return nil, look.errs
	}
	if text["additionalProperties"] == nil && text["unevaluatedProperties"] == nil {
		text["unevaluatedProperties"] = false
	}
	compiled, err := compileText(text)
	if err != nil {
		return nil, schemaErrors(e, err)
	}
	s := &paramSchema{
		Schema:   compiled,
		defaults: map[string]any{},
		types:    map[string]string{},
		names:    slices.Sorted(maps.Keys(compiled.Properties)),
	}
	for _, word := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"} {
		s.branches = s.branches || text[word] != nil
	}
	return s, s.properties(e)
}

// properties notes types and defaults of the parameters. A default that the schema itself does not allow is a mistake.
func (s *paramSchema) properties(e *render.Extension) render.ErrorList {
	var errs render.ErrorList
	for _, name := range s.names {
		property := s.Properties[name]
		if property.Types != nil && len(property.Types.ToStrings()) == 1 {
			s.types[name] = property.Types.ToStrings()[0]
		}
		if property.Default == nil {
			continue
		}
		s.defaults[name] = *property.Default
		var bad *jsonschema.ValidationError
		if errors.As(property.Validate(*property.Default), &bad) {
			for _, m := range flatten(bad) {
				at := append([]string{"parameters", "properties", name, "default"}, m.at...)
				errs = append(errs, e.ErrorAt(at, "the default of %q is not what its schema allows: %s", name, m.text))
			}
		}
	}
	return errs
}

func compileText(text map[string]any) (*jsonschema.Schema, error) {
	doc, err := plainJSON(text)
	if err != nil {
		return nil, err
	}
	if n := expanded(text, text, map[string]int{}); n > maxSchemaNodes {
		return nil, fmt.Errorf("with its references followed it has more than %d parts", maxSchemaNodes)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(boundedRegexp)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	return c.Compile(schemaURL)
}

// maxSchemaNodes bounds a schema with its references followed: a few that refer to two others each would never be done.
const maxSchemaNodes = 20_000

// expanded is the number of parts of a schema with its references below # followed. One inside of what it names is
// recursion, which ends with the value.
func expanded(root map[string]any, v any, known map[string]int) int {
	total := 1
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			at, isRef := inner.(string)
			if isRef && strings.HasSuffix(strings.ToLower(key), "ref") && strings.HasPrefix(at, "#/") {
				if _, seen := known[at]; !seen {
					known[at] = 1
					known[at] = expanded(root, pointed(root, at), known)
				}
				total += known[at]
			} else {
				total += expanded(root, inner, known)
			}
			total = min(total, maxSchemaNodes+1)
		}
	case []any:
		for _, inner := range v {
			total = min(total+expanded(root, inner, known), maxSchemaNodes+1)
		}
	}
	return total
}

// pointed is what a reference such as #/$defs/port names; nil is nothing.
func pointed(root map[string]any, at string) any {
	var here any = root
	for key := range strings.SplitSeq(strings.TrimPrefix(at, "#/"), "/") {
		switch v := here.(type) {
		case map[string]any:
			here = v[strings.NewReplacer("~1", "/", "~0", "~").Replace(key)]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			here = v[i]
		default:
			return nil
		}
	}
	return here
}

// plainJSON is a value as it comes out of JSON, with numbers as they are written.
func plainJSON(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// noLoader refuses what is not in the manifest: the meaning of a commit must not change with what some server says.
type noLoader struct{}

func (noLoader) Load(at string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and only what stands in the manifest itself can be referred to", at)
}

// maxSchemaPattern bounds a regular expression. Go's run in linear time.
const maxSchemaPattern = 1000

func boundedRegexp(text string) (jsonschema.Regexp, error) {
	if len(text) > maxSchemaPattern {
		return nil, fmt.Errorf("the regular expression is longer than %d bytes", maxSchemaPattern)
	}
	return regexp.Compile(text)
}

// schemaErrors gives what the library finds wrong with a schema its places in the manifest.
func schemaErrors(e *render.Extension, err error) render.ErrorList {
	var invalid *jsonschema.SchemaValidationError
	var deep *jsonschema.ValidationError
	var pattern *jsonschema.InvalidRegexError
	at := []string{"parameters"}
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &deep):
		var errs render.ErrorList
		for _, m := range flatten(deep) {
			errs = append(
				errs,
				e.ErrorAt(
					append(slices.Clone(at), m.at...),
					"parameters: no valid JSON Schema: %s%s",
					pathPrefix(m.at),
					m.text,
				),
			)
		}
		return errs
	case errors.As(err, &pattern):
		place := append(at, pointer(pattern.URL)...)
		return render.ErrorList{
			e.ErrorAt(place, "parameters: %q is no regular expression: %v", pattern.Regex, pattern.Err),
		}
	}
	text := strings.ReplaceAll(err.Error(), schemaURL, "")
	return render.ErrorList{e.ErrorAt(at, "parameters: no valid JSON Schema: %s", text)}
}

// pointer is the path that a schema's address ends with.
func pointer(address string) []string {
	_, fragment, _ := strings.Cut(address, "#")
	var out []string
	for _, part := range strings.Split(fragment, "/")[1:] {
		if plain, err := url.PathUnescape(part); err == nil {
			part = plain
		}
		out = append(out, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return out
}

// schemaReader looks for what a JSON Schema may say and that is most likely a mistake, or not for us.
type schemaReader struct {
	e    *render.Extension
	errs render.ErrorList
}

// The keywords of the draft, by what stands below them.
const (
	schemaMaps  = " properties patternProperties $defs dependentSchemas "
	schemaLists = " allOf anyOf oneOf prefixItems "
	schemaOnes  = " items contains additionalProperties propertyNames if then else not unevaluatedItems " +
		"unevaluatedProperties contentSchema "
	otherWords = " $schema $id $ref $anchor $dynamicRef $dynamicAnchor $vocabulary $comment type const enum " +
		"multipleOf maximum exclusiveMaximum" +
		" minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems maxContains minContains " +
		"maxProperties minProperties" +
		" required dependentRequired title description default deprecated readOnly writeOnly examples format " +
		"contentEncoding contentMediaType "
)

func (r *schemaReader) fail(at []string, format string, args ...any) {
	r.errs = append(r.errs, r.e.ErrorAt(at, format, args...))
}

// object looks at a schema and those below it. What is no schema is told by the library.
func (r *schemaReader) object(v any, at []string) {
	schema, _ := v.(map[string]any)
	for _, word := range slices.Sorted(maps.Keys(schema)) {
		value, place := schema[word], append(slices.Clone(at), word)
		switch {
		case has(schemaOnes, word):
			r.object(value, place)
		case has(schemaMaps, word):
			several, _ := value.(map[string]any)
			for name, one := range several {
				r.object(one, append(slices.Clone(place), name))
			}
		case has(schemaLists, word):
			several, _ := value.([]any)
			for i, one := range several {
				r.object(one, append(slices.Clone(place), fmt.Sprint(i)))
			}
		default:
			r.word(word, value, place)
		}
	}
}

// word looks at a keyword that has no schema below it, or is none.
func (r *schemaReader) word(word string, value any, at []string) {
	text, _ := value.(string)
	switch {
	case word == "$schema" && text != draft:
		r.fail(at, "parameters: expected a schema of the draft %s, found %q", draft, text)
	case strings.HasSuffix(word, "Ref") || word == "$ref":
		if !strings.HasPrefix(text, "#") {
			r.fail(at, "parameters: %s: %q leads out of the manifest: a reference begins with #", word, text)
		}
	case has(otherWords, word), strings.HasPrefix(word, "x-"):
	default:
		if near := render.Nearest(word, strings.Fields(schemaMaps+schemaLists+schemaOnes+otherWords)); near != "" {
			bad := r.e.ErrorAtKey(at, "parameters: JSON Schema has no keyword %q", word)
			bad.Hint = fmt.Sprintf("did you mean %q? What is yours begins with x-", near)
			r.errs = append(r.errs, bad)
		}
	}
}

func has(words, word string) bool { return strings.Contains(words, " "+word+" ") }

// top looks at the schema as a whole: parameters are a map.
func (r *schemaReader) top(schema map[string]any) {
	types, several := schema["type"].([]any)
	if t := schema["type"]; t != nil && t != "object" && (!several || !slices.Contains(types, any("object"))) {
		r.fail([]string{"parameters", "type"}, "parameters: expected type: object, found %v: parameters are a map", t)
	}
}
