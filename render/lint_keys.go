package render

import (
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// keyRef is vars.a.b, vars['a'], macros['a'] or server.a in an expression, with the offset of each key.
type keyRef struct {
	root string // vars, macros or server
	path []string
	at   []int
}

// noteKeys remembers the literal keys at a node of an expression.
func (r *references) noteKeys(node ast.Node) {
	switch n := node.(type) {
	case *ast.MemberNode:
		if ref, ok := literalKeys(n); ok {
			r.keys = append(r.keys, ref)
		}
	case *ast.CallNode:
		callee, ok := n.Callee.(*ast.IdentifierNode)
		if !ok || callee.Value != "macro" || len(n.Arguments) == 0 {
			return
		}
		if name, ok := n.Arguments[0].(*ast.StringNode); ok {
			r.keys = append(r.keys, keyRef{"macros", []string{name.Value}, []int{name.Location().From}})
		}
	case *ast.BinaryNode:
		r.noteGuard(n)
		r.noteCapitals(n)
	}
}

// noteGuard remembers what an expression says may be missing: vars.a ?? 1, 'a' in vars.
func (r *references) noteGuard(n *ast.BinaryNode) {
	switch n.Operator {
	case "??":
		if ref, ok := literalKeys(n.Left); ok {
			r.guards = append(r.guards, ref)
		}
	case "in":
		key, ok := n.Left.(*ast.StringNode)
		if root, isRoot := n.Right.(*ast.IdentifierNode); ok && isRoot && rootKind(root.Value) != "" {
			r.guards = append(r.guards, keyRef{root: rootKind(root.Value), path: []string{key.Value}})
		} else if ref, isRef := literalKeys(n.Right); ok && isRef {
			r.guards = append(r.guards, keyRef{root: ref.root, path: append(ref.path, key.Value)})
		}
	}
}

func rootKind(name string) string {
	return map[string]string{"vars": "vars", "variables": "vars", "macros": "macros", "server": "server", "Server": "server"}[name]
}

// literalKeys are the keys of vars.a['b'], when all of them are literal and none is optional.
func literalKeys(node ast.Node) (keyRef, bool) {
	var ref keyRef
	for {
		switch n := node.(type) {
		case *ast.ChainNode:
			node = n.Node
		case *ast.MemberNode:
			name, ok := n.Property.(*ast.StringNode)
			if !ok || n.Optional {
				return ref, false
			}
			ref.path, ref.at = append(ref.path, name.Value), append(ref.at, name.Location().From)
			node = n.Node
		case *ast.IdentifierNode:
			slices.Reverse(ref.path)
			slices.Reverse(ref.at)
			ref.root = rootKind(n.Value)
			return ref, ref.root != "" && len(ref.path) > 0
		default:
			return ref, false
		}
	}
}

// certain are the keys that the expression takes for granted.
func (r *references) certain() []keyRef {
	return slices.DeleteFunc(r.keys, func(ref keyRef) bool {
		return slices.ContainsFunc(r.guards, func(g keyRef) bool {
			n := min(len(g.path), len(ref.path))
			return g.root == ref.root && slices.Equal(g.path[:n], ref.path[:n])
		})
	})
}

// keyTree is every key that variables of some node have. A nil tree stands for what is no map.
type keyTree map[string]keyTree

// unite adds the keys of variables.
func (t keyTree) unite(vars map[string]any) {
	for k, v := range vars {
		inner, isMap := v.(map[string]any)
		if isMap && t[k] == nil {
			t[k] = keyTree{}
		} else if !isMap && t[k] == nil {
			t[k] = nil
		}
		if isMap {
			t[k].unite(inner)
		}
	}
}

// uniteServer adds the names of what the root server holds. What is below a fact, and which labels there are, differs from host to host.
func (t keyTree) uniteServer(server map[string]any) {
	for k := range server {
		t[k] = nil
	}
	t["ObjectMetadata"], t["Spec"] = keyTree{"Name": nil, "Labels": nil}, keyTree{"FQDN": nil}
}

// missing is the number of the first key of a path that no node has, and the keys that are there in its stead; -1 where all are there.
func (t keyTree) missing(path []string) (int, []string) {
	for i, k := range path {
		if t == nil { // a list or a text: what it holds is another question
			return -1, nil
		}
		next, ok := t[k]
		if !ok {
			return i, slices.Collect(maps.Keys(t))
		}
		t = next
	}
	return -1, nil
}

// keyUse is a keyRef in its expression.
type keyUse struct {
	expression Expression
	ref        keyRef
}

// unknownKeys are the keys in expressions that no node has.
func (l *Lint) unknownKeys() ErrorList {
	var out ErrorList
	for _, use := range l.keys {
		tree, what := l.vars, "variable"
		switch use.ref.root {
		case "macros":
			tree, what = l.macros, "macro"
		case "server":
			tree, what = l.server, "fact"
		}
		i, known := tree.missing(use.ref.path)
		if i < 0 {
			continue
		}
		at := file.Location{From: use.ref.at[i]}
		e := use.expression.error(&file.Error{Location: at, Message: fmt.Sprintf("no node has the %s %q", what, use.ref.path[i])})
		e.Hint = didYouMean(use.ref.path[i], known)
		out = append(out, e)
	}
	return out
}
