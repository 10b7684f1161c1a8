package render

import (
	"github.com/expr-lang/expr/ast"
)

// In expressions all texts are plain. What a forEach gives is opaque where its expression names something that the
// repository does not hold, or a variable with an opaque text in it.

// noteForeign remembers what an expression names that the repository may not hold.
func (r *references) noteForeign(node ast.Node) {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		switch n.Value {
		case "vars", "variables":
			r.names(n, "")
		case "server", "Server", "servervars", "services", "pullet", "eden", "macro", "macros", "step", "steps", "event",
			"result", "item":
			r.foreign = true
		}
	case *ast.MemberNode:
		of, ok := n.Node.(*ast.IdentifierNode)
		key, literal := n.Property.(*ast.StringNode)
		if ok && literal && (of.Value == "vars" || of.Value == "variables") {
			r.names(of, key.Value)
		}
	}
}

// names notes a variable: its name stands above what it is a variable of, and is seen later.
func (r *references) names(of *ast.IdentifierNode, key string) {
	if r.vars == nil {
		r.vars = map[int]string{}
	}
	r.vars[of.Location().From] = key
}

// readsForeign reports the references of an expression whose value may hold texts that the repository does not.
func (s *scope) readsForeign(refs *references) bool {
	if refs.foreign {
		return true
	}
	for _, key := range refs.vars {
		if value, ok := s.vars[key]; holds(value) || !ok && holds(s.vars) {
			return true
		}
	}
	return false
}
