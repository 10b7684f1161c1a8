package render

import (
	"io/fs"
	"path"
	"reflect"

	"go.yaml.in/yaml/v4"
)

// DecodeFile reads a YAML file that is no template into the struct that v points to, over what is there already. Its
// mistakes have positions and hints like those of a state repository.
func DecodeFile(path string, text []byte, v any) error {
	doc, errs := parseYAML(&rendered{src: &source{path: path, text: string(text)}, text: text})
	if len(errs) > 0 {
		return errs.Err()
	}
	if doc.root == nil {
		return nil
	}
	d := &decoder{doc: doc}
	d.value(doc.root, reflect.ValueOf(v).Elem(), "")
	return d.errs.Err()
}

// KeyPositions are where the keys of a YAML file stand that DecodeFile can read, by their dotted paths, such as
// agent.listen.
func KeyPositions(path string, text []byte) map[string]Position {
	out := map[string]Position{}
	// DecodeFile says what is wrong.
	doc, _ := parseYAML(&rendered{src: &source{path: path, text: string(text)}, text: text})
	if doc != nil && doc.root != nil {
		doc.positions(doc.root, "", out)
	}
	return out
}

// positions adds the keys of a mapping, and of those in it.
func (d *document) positions(n *yaml.Node, above string, out map[string]Position) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for _, e := range entries(n) {
		key := above + e.key.Value
		out[key] = d.pos(e.key)
		d.positions(e.value, key+".", out)
	}
}

// HostVars reads a node's own variables: every YAML file of a directory, later names over earlier ones. A directory
// that is not there holds none. Messages name files below dir. The secrets are the variables of files that say
// sensitive: true at their top.
func HostVars(files fs.FS, dir string) (map[string]any, Secrets, error) {
	secret := map[string]any{}
	all, err := hostVars(files, dir, func(d *decoder, root *yaml.Node, sensitive bool) map[string]any {
		vars, _ := d.any(root).(map[string]any)
		if sensitive {
			vars, _ = sealed(vars).(map[string]any)
			secret = merge(secret, vars)
		}
		return vars
	})
	return all, Secrets{secret}, err
}

// CheckVars finds what is wrong with a text that shall be a file of variables and is no template. The error, an
// ErrorList, quotes the text.
func CheckVars(path string, text []byte) error {
	_, err := plainVars(path, text, func(d *decoder, root *yaml.Node, _ bool) map[string]any {
		vars, _ := d.any(root).(map[string]any)
		return vars
	})
	return err
}

// readVars makes variables of the root of a file, which is marked as sensitive or not.
type readVars func(d *decoder, root *yaml.Node, sensitive bool) map[string]any

func hostVars(files fs.FS, dir string, read readVars) (map[string]any, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, name := range names { // sorted
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		vars, err := plainVars(path.Join(dir, name), text, read)
		if err != nil {
			return nil, err
		}
		out = merge(out, vars)
	}
	return out, nil
}

// plainVars is a map of variables in a file that is no template.
func plainVars(path string, text []byte, read readVars) (map[string]any, error) {
	doc, errs := parseYAML(&rendered{src: &source{path: path, text: string(text)}, text: text})
	if len(errs) > 0 || doc.root == nil {
		return nil, errs.Err()
	}
	if doc.root.Kind != yaml.MappingNode {
		return nil, ErrorList{doc.errorAt(doc.root, "expected a map of variables, found %s", kindName(doc.root))}
	}
	d := &decoder{doc: doc}
	root, sensitive := d.takeSensitive(doc.root)
	return read(d, root, sensitive), d.errs.Err()
}
