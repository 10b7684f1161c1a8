package render

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"go.yaml.in/yaml/v4"
)

// TestNoNodeIsDropped: every kind of file is written with every field that it may have. Then each node in turn becomes
// one that cannot stand there, each map gets a key that nobody reads, and each text that has a pattern a tail: the
// decoder finds all of them.
func TestNoNodeIsDropped(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		if kind.Shape.Type == nil || kind.Shape.Kind != Object {
			continue
		}
		for form := range 3 { // of what may be written in several forms
			whole := sample(kind.Shape, form, 0)
			before := mistakesIn(t, kind, whole)
			planted := 0
			plant(whole, kind.Shape, form, func(what string, at *yaml.Node, with yaml.Node) {
				planted++
				kept := *at
				*at = with
				after := mistakesIn(t, kind, whole)
				*at = kept
				found := false
				for message := range after {
					found = found || !before[message]
				}
				if !found {
					t.Errorf("%s, form %d: nothing is said of %s", kind.Name, form, what)
				}
			})
			if planted < 2 {
				t.Errorf("%s: only %d nodes were planted", kind.Name, planted)
			}
		}
	}
}

// mistakesIn are what is said of a file, without places. Steps and macros are read when a catalog is compiled.
func mistakesIn(t *testing.T, kind Kind, root *yaml.Node) map[string]bool {
	t.Helper()
	text, err := yaml.Dump(root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	if slices.Contains([]string{"jobs", "macros", "events"}, kind.Name) {
		_, err := repo(map[string]string{
			"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "base/macros.yaml": "macros: {'*': [{name: a}]}\n", "base/events.yaml": "events: {triggers: {'*': [{name: a}]}}\n",
			"jobs/a.yaml": "steps: []\n", "macros/a.yaml": "", "events/a.yaml": "", kind.Name + "/a.yaml": string(text),
		}).Compile(web1)
		errs, _ := errors.AsType[ErrorList](err)
		for _, e := range errs {
			out[e.Message] = true
		}
		return out
	}
	as := kind.Shape.Type
	doc, errs := parseYAML(&rendered{src: &source{path: "f.yaml", text: string(text)}, text: text})
	if len(errs) == 0 {
		d := &decoder{doc: doc}
		d.value(doc.root, reflect.New(as).Elem(), "")
		errs = d.errs
	}
	for _, e := range errs {
		out[e.Message] = true
	}
	return out
}

// sample is a node of a shape with all that may be in it.
func sample(s *Shape, form, depth int) *yaml.Node {
	scalar := func(text, tag string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text, Tag: tag} }
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	switch s.Kind {
	case Either:
		return sample(s.Either[form%len(s.Either)], form, depth)
	case List:
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{sample(s.Elem, form, depth+1)}}
	case Truth:
		return scalar("true", "!!bool")
	case Number:
		return scalar("1", "!!int")
	case Free, Parameters, Action:
		if s.Kind == Parameters {
			out.Content = []*yaml.Node{scalar("name", ""), scalar("x", "")}
			return out
		}
		return scalar("cmd.run", "!!str")
	case Text:
		for _, text := range append(slices.Clone(s.Words), "x", "1", "5m", "1MiB", "UTC", "22:00", "mon", "00000000-0000-4000-8000-000000000000") {
			if s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(text) {
				if strings.Contains(s.Name, "zone") {
					text = "UTC"
				}
				return scalar(text, "")
			}
		}
		return scalar("x", "")
	}
	if depth > 8 {
		return out
	}
	for _, f := range s.Fields {
		if f.Name != "forEach" && (f.Name != "spec" || depth == 0) { // without items, or with a spec beside, nothing of it is read
			out.Content = append(out.Content, scalar(f.Name, ""), sample(f.Shape, form, depth+1))
		}
	}
	if s.Elem != nil {
		for _, key := range []string{"k", "*", "1", "a.b"} {
			if s.Keys == "" || regexp.MustCompile(s.Keys).MatchString(key) {
				if s.Name == "lists by target" {
					key = "*"
				}
				out.Content = append(out.Content, scalar(key, ""), sample(s.Elem, form, depth+1))
				break
			}
		}
	}
	return out
}

// plant calls back for every node of a sample with what cannot stand there.
func plant(n *yaml.Node, s *Shape, form int, with func(what string, at *yaml.Node, with yaml.Node)) {
	var walk func(path string, n *yaml.Node, s *Shape)
	text := func(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
	list := yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.SequenceNode, Content: []*yaml.Node{text("planted")}}}}
	object := yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{text("planted"), {Kind: yaml.MappingNode, Content: []*yaml.Node{text("deep"), text("planted")}}}}
	walk = func(path string, n *yaml.Node, s *Shape) {
		mayBeText := s.Kind == Either && slices.ContainsFunc(s.Either, func(one *Shape) bool { return one.Kind == Text })
		for s.Kind == Either {
			s = s.Either[form%len(s.Either)]
		}
		if s.Kind == Free {
			return
		}
		if path != "" {
			with("a list at "+path, n, list)
			if s.Kind != Table && s.Kind != Parameters && (s.Kind != Object || s.Keys == "") {
				with("a map at "+path, n, object)
			}
			if !mayBeText && (s.Kind == Parameters || s.Kind == Table || s.Kind == Object) {
				with("a text at "+path, n, *text("planted"))
			}
		}
		for _, tail := range []string{"pm", ":30", "x", " 1"} { // a text is read as a whole
			if s.Kind == Text && s.Pattern != "" && n.Kind == yaml.ScalarNode && !regexp.MustCompile(s.Pattern).MatchString(n.Value+tail) {
				with(fmt.Sprintf("%q at %s", n.Value+tail, path), n, *text(n.Value + tail))
			}
		}
		switch s.Kind {
		case List:
			walk(path+"[0]", n.Content[0], s.Elem)
		case Table, Object:
			if s.Kind == Object && s.Keys == "" && s.Elem == nil && len(n.Content) > 0 {
				more := *n
				more.Content = append(slices.Clone(n.Content), text("plantedKey"), text("x"))
				with("a key in "+path, n, more)
			}
			for i := 0; i+1 < len(n.Content); i += 2 {
				inner, name := s.Elem, n.Content[i].Value
				for _, f := range s.Fields {
					if f.Name == name {
						inner = f.Shape
					}
				}
				walk(fmt.Sprintf("%s.%s", path, name), n.Content[i+1], inner)
			}
		}
	}
	walk("", n, s)
}

// TestUnreadableYAML: what YAML allows and nobody would read is a mistake; a file without a value is an empty one.
func TestUnreadableYAML(t *testing.T) {
	t.Parallel()
	read := func(text string) (any, error) {
		vars, _, err := HostVars(fstest.MapFS{"v.yaml": {Data: []byte(text)}}, "vars.d")
		return vars, err
	}
	for _, text := range []string{"", "# nothing yet\n", "\n# nothing\n\n", "---\n", "---\n# nothing\n", "...\n"} {
		if vars, err := read(text); err != nil || len(vars.(map[string]any)) > 0 {
			t.Errorf("%q: %v %v, want no variables", text, vars, err)
		}
	}
	for text, want := range map[string]string{
		"%YAML 1.2\n---\na: 1\n": "1", "# of ours\n%YAML 1.1\n---\na: 1\n": "1", "a: !!str 5\n": "5", "a: !!int '5'\n": "5", "b: &x {a: 1}\n<<: *x\n": "1", "a: '%YAML 1.2'": "%YAML 1.2",
	} {
		vars, err := read(text)
		if m, _ := vars.(map[string]any); err != nil || fmt.Sprint(m["a"]) != want {
			t.Errorf("%q: %v %v, want %s", text, vars, err, want)
		}
	}
	for text, want := range map[string]string{
		"a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n": "unknown tag !vault", "a: [!custom x]\n": "unknown tag !custom", "a: !!binary aGk=\n": "unknown tag !!binary", "a: !!set {x}\n": "unknown tag !!set",
		"? [a, b]\n: 1\n": "a key has to be a text, and this is a list", "a: {? {b: c} : 1}\n": "this is a map", ": 1\n": "a key is missing", "<<: 5\n": "<< merges maps", "<<: [{a: 1}, x]\n": "<< merges maps",
		"%YAML 3.0\n---\na: 1\n": "incompatible YAML document",
	} {
		if vars, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v %v, want a mistake with %q", text, vars, err, want)
		}
	}
}
