package render

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// instructionNames are the keys of rollout as instructions spell them.
var instructionNames = map[string]string{
	"rolling_rules": "rollingRules", "role_dependencies": "roleDependencies", "role_order": "roleOrder",
	"group_mappings": "groupMappings",
	"max_failures":   "maxFailures", "max_host_failures": "maxHostFailures", "on_lost": "onLost",
	"progress_deadline": "progressDeadline",
}

// Instruct puts the rules of instructions in the place of those of the same name. Instructions are JSON with the keys
// of rollout in pullet.yaml, in snake_case or as they are there. The name is for messages, which have the positions of
// the text as it is given.
func (r Rollout) Instruct(name string, instructions []byte, inventory Inventory) (Rollout, error) {
	if len(instructions) == 0 {
		return r, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(instructions, &keys); err != nil {
		return r, fmt.Errorf("%s: it is not a JSON object: %w", name, err)
	}
	if len(keys) == 0 {
		return r, nil
	}
	doc, errs := instructionsDocument(name, instructions)
	if len(errs) > 0 {
		return r, errs.Err()
	}
	r.drop(doc.root.Content[1])
	c := newCompiler(nil, &scope{})
	c.inventory, c.fleet.Rollout = inventory, r
	if c.files.decode(doc, &c.fleet) && len(c.errs) == 0 {
		c.checkRoles(doc)
	}
	return c.fleet.Rollout, inSnakeCase(c.errs).Err()
}

// instructionsDocument reads instructions as what stands under rollout in pullet.yaml. JSON is YAML.
func instructionsDocument(name string, text []byte) (*document, ErrorList) {
	doc, errs := parseYAML(&rendered{src: &source{path: name, text: string(text)}, text: text})
	if len(errs) > 0 {
		return nil, errs
	}
	for _, e := range entries(doc.root) {
		if known := instructionNames[e.key.Value]; known != "" {
			e.key.Value = known
		}
	}
	key := &yaml.Node{
		Kind:   yaml.ScalarNode,
		Tag:    "!!str",
		Value:  "rollout",
		Line:   doc.root.Line,
		Column: doc.root.Column,
	}
	doc.root = &yaml.Node{
		Kind:    yaml.MappingNode,
		Tag:     "!!map",
		Line:    key.Line,
		Column:  key.Column,
		Content: []*yaml.Node{key, doc.root},
	}
	return doc, nil
}

// drop empties the rules that instructions name: what stands in their place is the whole of them.
func (r *Rollout) drop(instructions *yaml.Node) {
	names := map[string]bool{}
	for _, e := range entries(instructions) {
		names[e.key.Value] = true
	}
	names["roleDependencies"] = names["roleDependencies"] || names["roleOrder"] // its older name
	r.limitsInstructed = names["rollingRules"]
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name != "" && names[name] {
			v.Field(i).SetZero()
		}
	}
}

// inSnakeCase spells the names in messages as instructions do.
func inSnakeCase(errs ErrorList) ErrorList {
	var names []string
	for theirs, ours := range instructionNames {
		names = append(names, ours, theirs)
	}
	spell := strings.NewReplacer(names...)
	for _, e := range errs {
		e.Message, e.Hint = spell.Replace(e.Message), spell.Replace(e.Hint)
	}
	return errs
}
