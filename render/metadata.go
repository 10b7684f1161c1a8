package render

import (
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Metadata describes a file: below the key metadata, or with its fields at the top of the file. It is checked and kept,
// and changes nothing.
type Metadata struct {
	APIVersion  string            `yaml:"apiVersion"`  // of whoever made the file
	Kind        string            `yaml:"kind"`        // of the file, in the words of whoever made it
	Name        string            `yaml:"name"`        // of the file
	Labels      map[string]string `yaml:"labels"`      // for programs that look for files
	Annotations map[string]string `yaml:"annotations"` // for people and programs
	UUID        uuid              `yaml:"uuid"`        // of the file: 5acfcdce-be46-4f34-81be-9fd6980c2224
}

// uuid is the text form of RFC 9562.
type uuid string

const uuidPattern = `^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`

var uuidText = lazyregexp.New(uuidPattern)

func (u *uuid) decode(d *decoder, n *yaml.Node) {
	if *u = uuid(n.Value); !uuidText.MatchString(n.Value) && !isNull(n) && !waits(n.Value) {
		d.failf(n, "%s is not a UUID", kindName(n))
		d.errs[len(d.errs)-1].Hint = "a UUID reads 5acfcdce-be46-4f34-81be-9fd6980c2224; the field may be left out"
	}
}

func (u *uuid) shape() *Shape { return &Shape{Kind: Text, Name: "UUID", Pattern: uuidPattern} }

// metadataFields are the fields that describe a file, in order.
func metadataFields() []string {
	_, names := fieldsOf(reflect.TypeFor[Metadata]())
	return names
}

// fileBody gives the fields of a file that a struct holds: those under spec stand beside its metadata, and metadata
// that stands at the top of the file is put below the key.
func fileBody(root *yaml.Node, of reflect.Type) *yaml.Node {
	if root.Kind != yaml.MappingNode || hasKey(root, "metadata") {
		return unwrapSpec(root)
	}
	own, _ := fieldsOf(of)
	nested, flat := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, *root
	flat.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, to := root.Content[i], &flat
		if _, taken := own[key.Value]; !taken && slices.Contains(metadataFields(), key.Value) {
			to = nested
		}
		to.Content = append(to.Content, key, root.Content[i+1])
	}
	if len(nested.Content) == 0 {
		return unwrapSpec(root)
	}
	first := nested.Content[0]
	nested.Line, nested.Column = first.Line, first.Column
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "metadata", Line: first.Line, Column: first.Column}
	flat.Content = append(flat.Content, key, nested)
	return unwrapSpec(&flat)
}

func hasKey(n *yaml.Node, name string) bool {
	return slices.ContainsFunc(entries(n), func(e entry) bool { return e.key.Value == name })
}

// described checks the metadata of a file whose other keys are free, and returns the keys that belong to it. Its fields
// stand at the top of a file where apiVersion and kind do, and everything beside them is one of its fields or spec; or,
// with beside, where these two are texts.
func (d *decoder) described(root *yaml.Node, beside bool) (keys []string) {
	if hasKey(root, "metadata") {
		for _, e := range entries(root) {
			if e.key.Value == "metadata" {
				d.into(e.value, &Metadata{})
			}
		}
		return []string{"metadata"}
	}
	top := *root
	top.Content = nil
	for _, e := range entries(root) {
		switch {
		case slices.Contains(metadataFields(), e.key.Value):
			keys, top.Content = append(keys, e.key.Value), append(top.Content, e.key, e.value)
		case e.key.Value != "spec" && !beside:
			return nil
		}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if of, ok := child(root, name); !ok || of.value.Kind != yaml.ScalarNode {
			return nil
		}
	}
	d.into(&top, &Metadata{})
	return keys
}

// varsBody is the variables of a file without the keys that describe it.
func varsBody(of any, describing []string) any {
	vars, _ := mapOf(of)
	if len(describing) == 0 {
		return of
	}
	for _, name := range describing {
		delete(vars, name)
	}
	if spec, ok := mapOf(vars["spec"]); ok {
		if inner := spec["variables"]; isMap(inner) {
			return inner
		}
	}
	return of
}
