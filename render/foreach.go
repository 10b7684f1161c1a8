package render

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// instance is a step as it stands in a file, or one of those that a forEach makes of it.
type instance struct {
	node *yaml.Node
	item any // nil: not of a forEach
}

// instances are the steps that a step with forEach stands for, or the step itself. Their names have the number of the
// item behind them, and item is filled in.
func (j *jobsCompiler) instances(d *decoder, node *yaml.Node) []instance {
	node = resolve(node)
	if node.Kind != yaml.MappingNode {
		return []instance{{node: node}}
	}
	var list *yaml.Node
	bare := *node
	bare.Content = nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "forEach" {
			list = resolve(node.Content[i+1])
			continue
		}
		bare.Content = append(bare.Content, node.Content[i], node.Content[i+1])
	}
	if list == nil {
		return []instance{{node: node}}
	}
	var out []instance
	for i, item := range j.items(d, list) {
		one, err := j.filledItem(d.doc, &bare, item)
		if err != nil {
			j.c.errs = append(j.c.errs, asError(d.doc, node, err))
			return nil
		}
		if err := j.c.scope.all.written(textIn(one)); err != nil {
			d.failf(list, "forEach: %v", err)
			return nil
		}
		number(one, i)
		out = append(out, instance{one, revealed(item)})
	}
	return out
}

// textIn is how many bytes the texts of a step have.
func textIn(n *yaml.Node) int {
	bytes := len(n.Value)
	for _, c := range n.Content {
		bytes += textIn(c)
	}
	return bytes
}

// number puts the number of an item behind the name of its step.
func number(step *yaml.Node, i int) {
	for k := 0; k+1 < len(step.Content); k += 2 {
		if step.Content[k].Value == "name" {
			step.Content[k+1].Value += fmt.Sprintf("[%d]", i)
		}
	}
}

// nameIn is the name of a step as it is written.
func nameIn(step *yaml.Node) string {
	for _, e := range entries(step) {
		if e.key.Value == "name" {
			return e.value.Value
		}
	}
	return ""
}

// maxInstances bounds what one forEach makes.
const maxInstances = 10_000

// items are the values of a forEach: a list as it stands there, or what an expression gives.
func (j *jobsCompiler) items(d *decoder, n *yaml.Node) []any {
	if n.Kind == yaml.SequenceNode {
		values := &decoder{doc: d.doc, keepOpaque: true}
		list, _ := values.any(n).([]any)
		d.errs = append(d.errs, values.errs...)
		return list
	}
	if !d.named(n, "forEach", readsItself) {
		return nil
	}
	if strings.Contains(n.Value, lost) {
		return nil
	}
	refs := &references{}
	j.c.scope.asked = false
	value, bad := evalValue(d.doc, n, j.c.scope, refs)
	j.c.scope.asked = j.c.scope.asked || j.c.scope.readsForeign(refs)
	j.c.files.hear(d.doc.from.src.path)
	if len(j.c.scope.closed.unknown) > 0 && (bad != nil || value == nil) { // it may stand in a file that was not opened
		j.c.fail(j.c.scope.notOpenedAt(d.doc, n))
		return nil
	}
	if bad != nil {
		j.c.fail(bad)
		return nil
	}
	list, ok := asList(value)
	switch {
	case value == nil:
		d.failf(
			n,
			"forEach: %s gives nothing: is there such a variable? For a list that need not be there write: %s ?? []",
			n.Value,
			n.Value,
		)
	case !ok:
		d.failf(n, "forEach: expected a list or an expression that gives one, found %s", kindOf(value))
	case len(list) > maxInstances:
		d.failf(n, "forEach: %d items are more than %d", len(list), maxInstances)
		return nil
	}
	if j.c.scope.readsForeign(refs) {
		list, _ = foreign(list).([]any)
	}
	return list
}

// kindOf names the kind of a value, in the words of YAML, without showing it.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	case string:
		return "a text"
	case bool:
		return "true or false"
	}
	return "a number"
}

// asList is a list of any kind, or a map as a list of its entries with key and value, sorted.
func asList(value any) ([]any, bool) {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = v.Index(i).Interface()
		}
		return out, true
	case reflect.Map:
		return mapEntries(v), true
	}
	return nil, false
}

// filledItem is a step with an item in the place of the actions that ask for it.
func (j *jobsCompiler) filledItem(doc *document, step *yaml.Node, item any) (*yaml.Node, error) {
	outer, own := j.c.scope.carrier, &carrier{yaml: true, secrets: j.c.scope.secrets}
	defer func() { j.c.scope.carrier = outer }()
	j.c.scope.carrier = own
	from := *doc.from // the marks of the item are none of the document
	from.carrier = own
	of := *doc
	of.from = &from
	return filled(&of, step, func(number int) (string, error) { return j.fillItem(number, item) }, true)
}

// fillItem is what takes the place of a placeholder in an instance: the text of an action that only needs the item,
// else a placeholder of its own that remembers it.
func (j *jobsCompiler) fillItem(number int, item any) (string, error) {
	if !j.c.scope.waiting[number].item {
		return waitingMark(number), nil
	}
	d := *j.c.scope.waiting[number]
	d.value = item
	if !d.waits && !j.c.scope.macros.runsCommand(d.names) {
		return d.execute(j.c.scope)
	}
	j.c.scope.waiting = append(j.c.scope.waiting, &d)
	return waitingMark(len(j.c.scope.waiting) - 1), nil
}

// written is what an item's text means where it stands alone and without quotes, as if it had been written there: a
// list, a map, or nothing at all, which leaves the parameter to its default. Any other text stays text.
func (d *document) written(n *yaml.Node, text string) *yaml.Node {
	trimmed := strings.TrimSpace(text)
	switch {
	case n.Kind != yaml.ScalarNode || n.Style != 0 || !isOneMark(n.Value, "\xff", "\xfe") || waits(text):
		return nil
	case trimmed == "", d.from.isEmpty(trimmed):
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	case trimmed[0] != '[' && trimmed[0] != '{':
		return nil
	}
	doc, bad := loadYAML(&rendered{src: d.from.src, text: []byte(trimmed), carrier: d.from.carrier})
	if bad != nil || doc.root == nil {
		return nil
	}
	moveTo(doc.root, n)
	return doc.root
}

// leftOut is the content of a map without what an item has nothing for.
func leftOut(before, after []*yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(after); i += 2 {
		if !isNull(after[i+1]) || isNull(resolve(before[i+1])) {
			out = append(out, after[i], after[i+1])
		}
	}
	return out
}

// moveTo gives a node and all below it the place of another.
func moveTo(n, at *yaml.Node) {
	n.Line, n.Column = at.Line, at.Column
	for _, c := range n.Content {
		moveTo(c, at)
	}
}

// maxItemName is how long a text may be that tells instances apart.
const maxItemName = 40

// ItemName is what tells the instance of a forEach from the others, where that is short: the item, or its name or key.
// It is "" for others.
func (s *Step) ItemName() string {
	value := s.item
	if m, ok := value.(map[string]any); ok {
		if value = m["name"]; value == nil {
			value = m["key"]
		}
	}
	switch value.(type) {
	case string, bool, int, int64, uint64, float64:
	default:
		return ""
	}
	name := fmt.Sprint(value)
	if s.Sensitive || s.secretItem || len(name) > maxItemName || strings.ContainsAny(name, "\n\t") {
		return ""
	}
	return name
}

// NoItems reports a step with forEach that there are no items for: what refers to it has nothing to wait for.
func (c *Catalog) NoItems(name, from string) bool {
	for _, j := range c.Jobs {
		for _, empty := range j.empty {
			if name == j.Name+"/"+empty || name == empty && (j.Name == from || !strings.Contains(name, "/")) {
				return true
			}
		}
	}
	return false
}
