package render

import (
	"cmp"
	"reflect"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// ownShapes caches the shapes of the types that decode themselves, by type.
var ownShapes sync.Map

// leftOut reports what a type that decodes itself cannot have read: it looks for the nodes that it knows, and would
// leave out any other without a word. Nor does it take a text that editors, which know its pattern, call a mistake.
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

// misfit finds the first node that cannot be part of a value of this shape, by its kind and the pattern of its text. It
// returns nil if there is none.
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
		fits = n.Kind == yaml.ScalarNode && (waits(n.Value) || s.matches(n.Value))
	}
	if fits {
		return nil
	}
	return n
}

// patterns caches those of shapes, compiled.
var patterns sync.Map

// matches reports whether a whole text matches the pattern of the shape, if it has one.
func (s *Shape) matches(text string) bool {
	if s.Pattern == "" {
		return true
	}
	kept, known := patterns.Load(s.Pattern)
	if !known {
		kept, _ = patterns.LoadOrStore(s.Pattern, lazyregexp.New(s.Pattern))
	}
	re, _ := kept.(*lazyregexp.Regexp)
	return re.MatchString(text)
}
