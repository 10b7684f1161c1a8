package render

import (
	"io/fs"
	"path"
	"reflect"

	"go.yaml.in/yaml/v4"
)

// DecodeFile reads a YAML file that is no template into the struct that v points to, over what is there already. Its mistakes have
// positions and hints like those of a state repository.
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

// HostVars reads a node's own variables: every YAML file of a directory, later names over earlier ones. A directory that is not there
// holds none. Messages name files below dir.
func HostVars(files fs.FS, dir string) (map[string]any, error) {
	return hostVars(files, dir, func(d *decoder) map[string]any {
		vars, _ := d.any(d.doc.root).(map[string]any)
		return vars
	})
}

func hostVars(files fs.FS, dir string, read func(*decoder) map[string]any) (map[string]any, error) {
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
func plainVars(path string, text []byte, read func(*decoder) map[string]any) (map[string]any, error) {
	doc, errs := parseYAML(&rendered{src: &source{path: path, text: string(text)}, text: text})
	if len(errs) > 0 || doc.root == nil {
		return nil, errs.Err()
	}
	if doc.root.Kind != yaml.MappingNode {
		return nil, ErrorList{doc.errorAt(doc.root, "expected a map of variables, found %s", kindName(doc.root))}
	}
	d := &decoder{doc: doc}
	return read(d), d.errs.Err()
}
