package render

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Nodes are the nodes that a repository can be checked for: those of its inventory, or, without one, a made-up node for
// each target of its base files. Where the inventory has mistakes, which are the error, they are those that could be
// read of it; mistakes of the rules are left to Compile.
func (r *Repository) Nodes() ([]Node, error) {
	inventory, err := r.Inventory()
	var out []Node
	for _, name := range slices.Sorted(maps.Keys(inventory)) {
		out = append(out, inventory[name])
	}
	if len(out) > 0 {
		return out, err
	}
	return madeUp(r.layers), err
}

// Inventory are the nodes that must exist; with an error, those of them that could be read.
func (r *Repository) Inventory() (Inventory, error) {
	c := newCompiler(r, &scope{macros: &macroSet{}})
	release := r.enter(c.scope)
	defer release()
	c.compileInventory()
	return c.inventory, c.errs.Err()
}

// madeUp is a node for each target of the base files, and one that only '*' matches.
func madeUp(layers []Layer) []Node {
	nodes := map[string]Node{"node1": {Name: "node1", Labels: map[string]string{}}}
	for _, name := range []string{"base/vars.yaml", "base/macros.yaml", "base/jobs.yaml", ServicesFile, eventsFile} {
		for _, l := range layers {
			for _, target := range targetsOf(l.FS, name) {
				if n, ok := target.example(len(nodes) + 1); ok {
					nodes[fmt.Sprint(n.Labels, n.Name)] = n
				}
			}
		}
	}
	var out []Node
	for _, key := range slices.Sorted(maps.Keys(nodes)) {
		out = append(out, nodes[key])
	}
	return out
}

// targetsOf are the targets that stand as quoted or bare keys in a base file, which may not be valid yet.
func targetsOf(files fs.FS, name string) []Target {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil
	}
	var out []Target
	for line := range strings.Lines(string(text)) {
		key, _, ok := strings.Cut(strings.TrimSpace(line), ":")
		key = strings.Trim(key, `'"`)
		if !ok || !strings.ContainsAny(key, "=*!") || strings.Contains(key, "{") {
			continue
		}
		if t, err := ParseTarget(key); err == nil {
			out = append(out, t)
		}
	}
	return out
}

// example is a node that the target matches.
func (t Target) example(number int) (Node, bool) {
	n := Node{Name: fmt.Sprintf("node%d", number), Labels: map[string]string{}}
	for _, one := range t.terms {
		plain := strings.NewReplacer("*", "x", "?", "x").Replace(one.glob)
		switch one.kind {
		case labelIs:
			n.Labels[one.key] = plain
		case nodeName:
			if one.glob != "*" {
				n.Name = plain
			}
		}
	}
	return n, len(n.Labels) > 0 || !strings.HasPrefix(n.Name, "node")
}
