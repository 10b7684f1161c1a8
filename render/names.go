package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render/partial"
)

// A name that the host lacks has no value, and a condition takes no value for false: a misspelled name would never be
// noticed. So such a name is a mistake wherever a run reaches it, and ??, ?. and in are for names that may be missing.

// namesRead finds the variables, macros and facts that a condition reads and the host lacks.
type namesRead struct {
	k       *foreknown
	missing ErrorList
	unknown bool // it reads a name that nothing is known of
}

// read notes a name if the host lacks it. It reports whether the part is one.
func (r *namesRead) read(n ast.Node) bool {
	ref, is := partial.KeysOf(n)
	if is && slices.ContainsFunc(r.k.e.keys, ref.Equals) { // no other part says that it may be missing
		at, known := r.k.c.scope.lacks(ref)
		switch {
		case at < 0 || slices.ContainsFunc(r.missing, r.at(ref.At[at])):
		case r.k.c.broken[ref.Root]: // what is missing may stand in a file that cannot be read
			r.unknown = true
		default:
			r.missing = append(r.missing, r.k.lacks(ref, at, known))
		}
	}
	_, called := n.(*ast.CallNode) // with arguments, which are parts of their own
	return is && !called
}

// at returns a function that reports a mistake at an offset of the condition.
func (r *namesRead) at(offset int) func(*Error) bool {
	pos := r.k.e.ErrorAt(offset, "").Pos
	return func(e *Error) bool { return e.Pos == pos }
}

// lacks returns the number of the first key of a name that the host lacks, and the keys that exist there; -1 if it has
// all. What is below a fact, and which labels exist, differs from host to host.
func (s *scope) lacks(ref KeyRef) (at int, known []string) {
	var here any = s.plainVars()
	path := ref.Path
	switch ref.Root {
	case "macros":
		here, path = s.macros.known(), path[:1]
	case "server":
		here = s.server
		if path[0] != "ObjectMetadata" && path[0] != "Spec" {
			path = path[:1]
		}
		path = path[:min(len(path), 2)]
	}
	for i, key := range path {
		m, ok := mapOf(here)
		if !ok { // a list or a text: what it holds is another question
			return -1, nil
		}
		next, ok := m[key]
		if !ok {
			return i, slices.Sorted(maps.Keys(m))
		}
		here = next
	}
	return -1, nil
}

// lacks is the mistake of a condition that reads a name which the host lacks, at a key of it.
func (k *foreknown) lacks(ref KeyRef, at int, known []string) *Error {
	what := map[string]string{"vars": "variable", "macros": "macro", "server": "fact"}[ref.Root]
	bad := k.e.ErrorAt(ref.At[at], fmt.Sprintf("this host has no %s %q", what, ref.Path[at]))
	written := ref.Root
	for _, key := range ref.Path[:at+1] {
		if fieldName.MatchString(key) && ref.Root != "macros" {
			written += "." + key
		} else {
			written += "['" + key + "']"
		}
	}
	scope := k.c.scope
	hidden := ""
	if ref.Root == "vars" {
		hidden = scope.sealedHint("vars")
	}
	bad.Hint = cmp.Or(hidden, nearHint(ref.Path[at], known), "if it may be missing, write "+written+" ?? DEFAULT")
	bad.hearsay = ref.Root == "server"
	if ref.Root == "vars" && len(scope.closed.unknown) > 0 {
		bad.cause = errNotOpened
	}
	return bad
}

// fieldName is a key that can be written behind a dot.
var fieldName = lazyregexp.New(`^[\pL_][\pL\pN_]*$`)
