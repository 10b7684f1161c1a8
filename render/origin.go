package render

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Origin is a variable with the place that its value came from.
type Origin struct {
	Path  string   `json:"path"` // ntp.servers; ["a key"] where a key is no plain word
	Value any      `json:"value"`
	Pos   Position `json:"pos"`
}

// Origins are the merged variables of a node, sorted, each with the place that it came from. The node's own variables
// are read from the directory dir, in which files are, if that is not nil; those of the input are not looked at.
func (r *Repository) Origins(in Input, files fs.FS, dir string) ([]Origin, error) {
	c := r.compiler(in)
	c.tracing = true
	release := r.enter(c.scope)
	defer release()
	c.identify()
	c.compileVars()
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	if files != nil {
		own, err := hostVars(files, dir, func(d *decoder, root *yaml.Node, sensitive bool) map[string]any {
			places := d.doc.places(root)
			if sensitive {
				hidePlaces(places)
			}
			return places
		})
		if err != nil {
			return nil, err
		}
		c.places = merge(c.places, own)
	}
	return origins(nil, "", c.places), nil
}

// placed is a value and where it stands.
type placed struct {
	value any
	pos   Position
}

// hidePlaces keeps the values of sensitive variables to themselves.
func hidePlaces(places map[string]any) {
	for key, value := range places {
		switch v := value.(type) {
		case map[string]any:
			hidePlaces(v)
		case placed:
			places[key] = placed{"(sensitive: not shown)", v.pos}
		}
	}
}

// places is a map of variables with a placed for every value that is no map.
func (d *document) places(n *yaml.Node) map[string]any {
	out := map[string]any{}
	values := &decoder{doc: d}
	for _, e := range entries(n) {
		if e.value.Kind == yaml.MappingNode {
			out[e.key.Value] = d.places(e.value)
			continue
		}
		out[e.key.Value] = placed{values.any(e.value), d.pos(e.key)}
	}
	return out
}

// origins appends the values of a tree of places.
func origins(out []Origin, above string, tree map[string]any) []Origin {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		at := keyPath(above, key)
		switch v := tree[key].(type) {
		case placed:
			out = append(out, Origin{at, v.value, v.pos})
		case map[string]any:
			if len(v) == 0 { // a map that nothing fills has no place: several files may have it
				out = append(out, Origin{Path: at, Value: v})
			}
			out = origins(out, at, v)
		}
	}
	return out
}

var plainKey = lazyregexp.New(`^[\pL_][\pL\pN_-]*$`)

func keyPath(above, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return fmt.Sprintf("%s[%q]", above, key)
	case above == "":
		return key
	}
	return above + "." + key
}
