package reference

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/render/newcomer"
)

// roots are what templates and conditions see, with the facts below server.
func (w *writer) roots() []Topic {
	found := w.entries("render.roots")
	maps.Copy(found, w.entries("render.environment"))
	var out []Topic
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t := Topic{Name: name, Group: rootGroup, Text: strings.TrimSpace(found[name])}
		switch name {
		case "server":
			t.Fields = w.server()
		case "pullet":
			t.Fields = w.members("pullet", "render.fleetRoot.", true)
		case "step", "steps":
			t.Fields = w.members(name, "render.StepResult.", false)
		}
		out = append(out, t)
	}
	return out
}

// server is what the root of the same name holds: who the host is, and its facts.
func (w *writer) server() []Topic {
	node := render.ShapeOf(reflect.TypeFor[render.Node]())
	out := w.fields(Topic{Name: "server", Group: rootGroup}, node)
	for i := range out {
		out[i].Default = "" // that is one of the configuration
	}
	sample := facts.Sample("host1")
	for _, f := range facts.All() {
		out = append(
			out,
			Topic{Name: "server." + f.Name, Group: factGroup, Text: f.Doc, Type: factType(sample[f.Name])},
		)
	}
	return out
}

func factType(v any) string {
	switch v.(type) {
	case int:
		return "number"
	case bool:
		return "true or false"
	case []any:
		return "list"
	case map[string]any:
		return "map"
	}
	return "text"
}

// members are the fields and methods of a Go type that templates use as they are; lower ones are written with a small
// letter.
func (w *writer) members(root, prefix string, lower bool) []Topic {
	var out []Topic
	for _, full := range slices.Sorted(maps.Keys(w.comments)) {
		name, ok := strings.CutPrefix(full, prefix)
		if !ok || name == "" || strings.ToLower(name[:1]) == name[:1] {
			continue
		}
		shown := name
		if lower {
			shown = strings.ToLower(name[:1]) + name[1:]
		}
		out = append(
			out,
			Topic{
				Name:  root + "." + shown,
				Group: rootGroup,
				Text:  strings.TrimSpace(renamed(w.comments[full], name, shown)),
			},
		)
	}
	return out
}

// builtins are the functions that text/template brings itself.
const builtins = "and call eq ge gt html js le len lt ne not or print printf println slice urlquery"

// functions are the template functions that are no roots: our own, sprig's, and Go's.
func (w *writer) functions() []Topic {
	own := w.entries("render.pureFuncs")
	var out, others []Topic
	for _, name := range render.Functions() {
		if text, ok := own[name]; ok {
			out = append(out, Topic{Name: name, Group: functionGroup, Text: strings.TrimSpace(text)})
			continue
		}
		text := name + " is a function of sprig: see https://masterminds.github.io/sprig/."
		others = append(others, Topic{Name: name, Group: sprigGroup, Text: text})
	}
	for name := range strings.FieldsSeq(builtins) {
		text := name + " is a function of Go's templates: see https://pkg.go.dev/text/template#hdr-Functions."
		others = append(others, Topic{Name: name, Group: builtinGroup, Text: text})
	}
	return append(out, others...)
}

// alias is the topic that people mean: a job is a file of jobs.
func alias(name string) string {
	head, rest, _ := strings.Cut(name, ".")
	switch head {
	case "job":
		head = "jobs"
	case "reaction", "reactor":
		head = "reactions"
	case "trigger", "triggers":
		head = "events"
	}
	return strings.TrimSuffix(head+"."+rest, ".")
}

// Find are the topics of a name: usually one, as several things may share it. Without any the error names the nearest.
func Find(topics []Topic, name string) ([]Topic, error) {
	var found []Topic
	var names []string
	var walk func([]Topic)
	walk = func(list []Topic) {
		for _, t := range list {
			if t.Name == alias(name) {
				found = append(found, t)
			}
			names = append(names, t.Name)
			walk(t.Fields)
		}
	}
	walk(topics)
	if found = append(found, module(topics, name)...); len(found) > 0 {
		return found, nil
	}
	if hint := newcomer.Action(name); hint != "" {
		return nil, fmt.Errorf("there is nothing named %q (%s)", name, hint)
	}
	if ends := endingIn(name, names); ends != "" {
		return nil, fmt.Errorf("there is nothing named %q (did you mean %s?)", name, ends)
	}
	if near := nearest(alias(name), names); near != "" {
		return nil, fmt.Errorf("there is nothing named %q (did you mean %q?)", name, near)
	}
	return nil, fmt.Errorf("there is nothing named %q; pullet explain lists what there is", name)
}

// endingIn lists the names that end in this one, the shortest first; "" where there is none. What stands below spec is
// what may stand without it.
func endingIn(name string, names []string) string {
	const most = 4
	var found []string
	for _, n := range names {
		if strings.HasSuffix(n, "."+name) && !strings.Contains(n, ".spec.") {
			found = append(found, fmt.Sprintf("%q", n))
		}
	}
	slices.SortFunc(found, func(a, b string) int {
		return cmp.Or(strings.Count(a, ".")-strings.Count(b, "."), strings.Compare(a, b))
	})
	found = slices.Compact(found)
	more := ""
	if len(found) > most {
		found, more = found[:most], ", ..."
	}
	return strings.Join(found, ", ") + more
}

// module is what actions have before the dot, with these actions; nothing for another name.
func module(topics []Topic, name string) []Topic {
	t := Topic{Name: name, Group: moduleGroup}
	for _, one := range topics {
		if strings.HasPrefix(one.Name, name+".") && strings.HasPrefix(one.Group, actionGroup) {
			one.Fields = nil
			t.Fields = append(t.Fields, one)
		}
	}
	if t.Fields == nil {
		return nil
	}
	return []Topic{t}
}

// nearest is the name that a misspelt one most likely means: its last word among its neighbours, if what is before is
// right.
func nearest(name string, names []string) string {
	if at := strings.LastIndex(name, "."); at > 0 {
		above := name[:at+1]
		var last []string
		for _, n := range names {
			if rest, ok := strings.CutPrefix(n, above); ok && !strings.Contains(rest, ".") {
				last = append(last, rest)
			}
		}
		if near := render.Nearest(name[at+1:], last); near != "" {
			return above + near
		}
	}
	return render.Nearest(name, names)
}
