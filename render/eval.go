package render

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Value is what a template (a text with {{ }}) or an expression means for the catalog's node. Results of steps are not
// known.
func (c *Catalog) Value(text string) (any, error) {
	if strings.Contains(text, "{{") {
		out, err := c.Template(nil, "template", text, nil, nil)
		return string(out), err
	}
	scope := c.scope.at(nil, nil)
	release := c.repo.enter(scope)
	defer release()
	doc := &document{from: &rendered{src: &source{path: "expression", text: text}, text: []byte(text)}}
	value, bad := evalValue(
		doc,
		&yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: 1, Column: 1},
		scope,
		&references{},
	)
	if bad != nil {
		return nil, ErrorList{bad}
	}
	if value == nil {
		return nil, errors.New("the value is nothing: a name in it may not exist")
	}
	return value, nil
}
