package render

import (
	"cmp"
	"reflect"
	"sync"

	"go.yaml.in/yaml/v4"
)

// ownShapes caches the shapes of the types that decode themselves, by type.
var ownShapes sync.Map

// leftOut reports what a type that decodes itself cannot have read: it looks for the nodes that it knows, and would
// leave out any other without a word.
func (d *decoder) leftOut(n *yaml.Node, own selfDecoding, what string) {
	form, is := own.(shaped)
	if !is { // a struct, which object reads
		return
	}
	kept, known := ownShapes.Load(reflect.TypeOf(own))
	if !known {
		kept, _ = ownShapes.LoadOrStore(reflect.TypeOf(own), form.shape())
	}
	shape, _ := kept.(*Shape)
	if bad := shape.misfit(n); bad != nil {
		d.failf(bad, "%sexpected %s, found %s", prefix(what), cmp.Or(shape.Name, "a text"), kindName(bad))
	}
}

// misfit finds the first node that cannot be part of a value of this shape, by its kind alone. It returns nil if there
// is none.
func (s *Shape) misfit(n *yaml.Node) *yaml.Node {
	n = resolve(n)
	if isNull(n) {
		return nil
	}
	fits := true
	switch s.Kind {
	case Free:
	case List:
		if fits = n.Kind == yaml.SequenceNode; fits {
			for _, c := range n.Content {
				if bad := s.Elem.misfit(c); bad != nil {
					return bad
				}
			}
		}
	case Table, Object:
		fits = n.Kind == yaml.MappingNode
	case Parameters:
		fits = n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode
	case Either:
		first := n
		for _, one := range s.Either {
			bad := one.misfit(n)
			if bad == nil {
				return nil
			}
			if bad != n {
				first = bad
			}
		}
		return first
	default:
		fits = n.Kind == yaml.ScalarNode
	}
	if fits {
		return nil
	}
	return n
}
