package render

import "go.yaml.in/yaml/v4"

// maxNodes bounds a document with its aliases followed: a few lines of aliases to aliases could fill the memory of
// every node.
const maxNodes = 200_000

// aliases measures a document as it is when every alias is followed.
type aliases struct {
	doc   *document
	open  map[*yaml.Node]bool // anchored nodes that are being measured
	sizes map[*yaml.Node]int  // of anchored nodes
	bad   *Error
}

// checkAliases counts the values of a document, and finds an alias inside of what it names, and aliases that multiply
// beyond all measure.
func (d *document) checkAliases() *Error {
	a := &aliases{doc: d, open: map[*yaml.Node]bool{}, sizes: map[*yaml.Node]int{}}
	d.values = a.size(d.root)
	return a.bad
}

// size is the number of nodes that a node stands for.
func (a *aliases) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		if a.open[n.Alias] {
			a.fail(n, "alias *%s stands inside of what it names", n.Value)
		}
		return a.sizes[n.Alias] // an anchor stands before its aliases
	}
	if n.Anchor != "" {
		a.open[n] = true
		defer delete(a.open, n)
	}
	total := 1
	for _, c := range n.Content {
		if total += a.size(c); total > maxNodes {
			a.fail(c, "with its aliases followed the document has more than %d values", maxNodes)
			total = maxNodes + 1
			break
		}
	}
	if n.Anchor != "" {
		a.sizes[n] = total
	}
	return total
}

func (a *aliases) fail(n *yaml.Node, format string, args ...any) {
	if a.bad == nil {
		a.bad = a.doc.errorAt(n, format, args...)
	}
}
