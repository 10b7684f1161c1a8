package lint

import (
	"path"
	"reflect"

	"github.com/pullet/pullet/render"
)

// duplicatePaths are the files that two steps own: each would undo what the other does, at every pull.
func duplicatePaths(c *render.Catalog) render.ErrorList {
	var out render.ErrorList
	owners := map[string]*render.Step{}
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			name := ownedPath(s)
			first := owners[name]
			switch {
			case name == "" || first != nil && sameDirectory(first, s):
			case first == nil:
				owners[name] = s
			default:
				out = append(out, twoOwners(c, name, first, s))
			}
		}
	}
	return out
}

// ownedPath is the file that a step manages as a whole; "" where it manages none, or where its name is known only when
// the step runs. A step that fills a directory shares it.
func ownedPath(s *render.Step) string {
	if recurse := s.Params.Text("recurse"); s.Action == "file.managed" && recurse != "" && recurse != "false" {
		return ""
	}
	switch s.Action {
	case "file.managed", "file.directory", "file.symlink", "file.absent":
		name := s.Params.Text("name")
		if path.IsAbs(name) && !s.Params.Waits("name") {
			return path.Clean(name)
		}
	}
	return ""
}

func sameDirectory(a, b *render.Step) bool {
	return a.Action == "file.directory" && b.Action == a.Action && reflect.DeepEqual(a.Params.Value(), b.Params.Value())
}

// twoOwners is an error, but a warning where conditions may keep the steps apart.
func twoOwners(c *render.Catalog, name string, first, second *render.Step) *render.Error {
	at := func(s *render.Step) render.Position { return s.Params.Position("name", s.Pos) }
	e := second.ErrorAt(at(second), "%s belongs to two steps: %s (%s) and %s", name, first.ID(), at(first), second.ID())
	e.Hint = "keep one of them"
	if conditional(c, first) || conditional(c, second) {
		e.Severity, e.Hint = render.Warning, "their conditions must exclude each other"
	}
	return e
}

// conditional reports that a step may not run.
func conditional(c *render.Catalog, s *render.Step) bool {
	for _, j := range c.Jobs {
		if j.Name == s.Job && j.Conditions.When != nil {
			return true
		}
	}
	return s.Conditions.When != nil
}
