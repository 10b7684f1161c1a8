package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// errNoEvent is what asking for an event comes to where there is none.
var errNoEvent = errors.New("event is known only in jobs that a reaction starts (reactions/**.yaml)")

// eventFields are what an event has, in the spellings that are understood.
var eventFields = []string{
	"name", "occurrences", "occurences", "data", "node", "time", "id", "cause", "hosts",
	"Name", "Occurrences", "Occurences", "Data",
}

// event is the event in all spellings of its fields.
func (in Input) event() (map[string]any, error) {
	if in.Event == nil {
		return nil, errNoEvent
	}
	out := maps.Clone(in.Event)
	if out["data"] == nil {
		out["data"] = map[string]any{}
	}
	if _, ok := out["occurrences"]; !ok && out["occurences"] != nil {
		out["occurrences"] = out["occurences"]
	}
	for to, from := range map[string]string{
		"occurences": "occurrences", "Occurences": "occurrences", "Occurrences": "occurrences",
		"Name": "name", "Data": "data",
	} {
		if value, ok := out[from]; ok {
			out[to] = value
		}
	}
	return out, nil
}

// rootUse is a root that an expression names, at an offset.
type rootUse struct {
	name string
	at   int
}

// noteEvent puts calls that fail where a key is missing in the place of event.data.key: what an alert does not say is
// not the same as an empty text. event.data?.key and event.data.key ?? 1 say that it may be missing.
func (r *references) noteEvent(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.MemberNode:
		key, literal := n.Property.(*ast.StringNode)
		path, ok := eventPath(n.Node)
		if !ok || !literal || n.Optional {
			return
		}
		path = append(path, key.Value)
		if len(path) == 1 {
			r.eventKeys = append(r.eventKeys, rootUse{key.Value, key.Location().From})
		}
		*node = callOf(n.Location(), knownCall, n.Node, key, &ast.StringNode{Value: strings.Join(path, ".")})
	case *ast.BinaryNode:
		if n.Operator == "??" {
			mayMiss(n.Left)
		}
	}
}

// eventPath are the keys that lead from the event to a node.
func eventPath(n ast.Node) ([]string, bool) {
	call, ok := n.(*ast.CallNode)
	if !ok {
		return nil, false
	}
	switch callee, _ := call.Callee.(*ast.IdentifierNode); {
	case callee == nil:
		return nil, false
	case callee.Value == "event" && len(call.Arguments) == 0:
		return nil, true
	case callee.Value == knownCall:
		path, _ := call.Arguments[2].(*ast.StringNode) // noteEvent put it there
		return strings.Split(path.Value, "."), true
	}
	return nil, false
}

// mayMiss lets the keys of the event be missing that lead to a node.
func mayMiss(n ast.Node) {
	if chain, ok := n.(*ast.ChainNode); ok {
		n = chain.Node
	}
	for {
		call, ok := n.(*ast.CallNode)
		if path, of := eventPath(n); !ok || !of || len(path) == 0 {
			return
		}
		if callee, ok := call.Callee.(*ast.IdentifierNode); ok {
			callee.Value = perhapsCall
		}
		n = call.Arguments[0]
	}
}

// knownKey is the value of a key of the event.
func knownKey(of any, key, path string) (any, error) {
	m, ok := of.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("event.%s: what stands before %q is no map", path, key)
	}
	if value, ok := m[key]; ok {
		return value, nil
	}
	hint := DidYouMean(key, keysOfEvent(m))
	if hint == "" {
		hint = "nothing is there"
	}
	return nil, fmt.Errorf("event.%s: there is no %q%s", path, key, inBrackets(hint))
}

// keysOfEvent are the keys of a map of the event, sorted, each in one spelling.
func keysOfEvent(m map[string]any) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(key string) bool {
		_, again := m[strings.ToLower(key)]
		return again && strings.ToLower(key) != key
	})
}

// perhapsKey is the value of a key of the event that may be missing.
func perhapsKey(of any, key, _ string) any {
	m, _ := of.(map[string]any)
	return m[key]
}

// event reports a condition that asks for an event where there is none, and for a field that no event has: it would
// never hold.
func (r *crossReferences) event(e Expression) {
	_, none := r.c.scope.in.event()
	for _, root := range e.roots {
		if none != nil && root.name == "event" {
			r.c.fail(e.error(&file.Error{Location: file.Location{From: root.at}, Message: none.Error()}))
		}
	}
	r.c.errs = append(r.c.errs, e.eventMistakes()...)
}

// eventMistakes are the fields of the event that the expression names and no event has.
func (e Expression) eventMistakes() ErrorList {
	var out ErrorList
	for _, key := range e.eventKeys {
		if !slices.Contains(eventFields, key.name) {
			bad := e.ErrorAt(key.at, fmt.Sprintf("an event has no %q", key.name))
			bad.Hint = DidYouMean(key.name, eventFields[:9])
			out = append(out, bad)
		}
	}
	return out
}
