package lint

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pullet/pullet/render"
)

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

// uniteServer adds the names of what the root server holds. What is below a fact, and which labels there are, differs
// from host to host.
func (t keyTree) uniteServer(names []string) {
	for _, k := range names {
		t[k] = nil
	}
	t["ObjectMetadata"], t["Spec"] = keyTree{"Name": nil, "Labels": nil}, keyTree{"FQDN": nil}
}

// missing is the number of the first key of a path that no node has, and the keys that are there in its stead; -1 where
// all are there.
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

// keyUse is a KeyRef in its expression.
type keyUse struct {
	expression render.Expression
	ref        render.KeyRef
}

// unknownKeys are the keys in expressions that no node has. Where a run reaches one, the compiler finds it, too.
func (l *Lint) unknownKeys() render.ErrorList {
	var out render.ErrorList
	for _, use := range l.keys {
		tree, what := l.vars, "variable"
		switch use.ref.Root {
		case "macros":
			tree, what = l.macros, "macro"
		case "server":
			tree, what = l.server, "fact"
		}
		i, known := tree.missing(use.ref.Path)
		if i < 0 || what == "variable" && l.unopened {
			continue
		}
		e := use.expression.ErrorAt(use.ref.At[i], fmt.Sprintf("no node has the %s %q", what, use.ref.Path[i]))
		e.Severity, e.Hint = render.Warning, render.DidYouMean(use.ref.Path[i], known)
		out = append(out, e)
	}
	return out
}
