package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// serviceUse is what the catalogs of all nodes tell of services.
type serviceUse struct {
	offered map[string]bool
	waits   map[string]*render.Error // a warning for each step that waits for a service, by its place
	names   map[string]string        // the service that it waits for
	unknown bool                     // some name is known only when its step runs
}

// learn takes in the catalog of one node.
func (u *serviceUse) learn(c *render.Catalog) {
	for _, name := range c.Offered() { // of any target: one that nobody matches has a warning of its own
		u.offered[name] = true
	}
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			name := s.Params.Text("name")
			switch {
			case s.Action != "service.publish" && s.Action != "service.wait":
			case s.Params.Waits("name"):
				u.unknown = true
			case s.Action == "service.publish":
				u.offered[name] = true
			default:
				at := s.Params.Position("name", s.Pos)
				e := s.ErrorAt(at, "nobody offers the service %q that this step waits for", name)
				u.waits[at.String()], u.names[at.String()] = e, name
			}
		}
	}
}

// unoffered are the services that somebody waits for or reads, and nobody offers.
func (l *Lint) unoffered() render.ErrorList {
	u := l.services
	if u.unknown {
		return nil
	}
	var out render.ErrorList
	add := func(e *render.Error, name string) {
		e.Severity = render.Warning
		e.Hint = fmt.Sprintf("offer it in %s, or with service.publish in a job", render.ServicesFile)
		if near := render.Nearest(name, slices.Collect(maps.Keys(u.offered))); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		out = append(out, e)
	}
	for at, e := range u.waits {
		if !u.offered[u.names[at]] {
			add(e, u.names[at])
		}
	}
	for _, f := range l.repo.Texts() {
		for _, s := range render.ServicesIn(f.Text) {
			if !u.offered[s.Name] && asks(f, s.From) {
				add(f.WarningAt(s.At, "nobody offers the service %q that is read here", s.Name), s.Name)
			}
		}
	}
	return out
}

// asks reports that a text at an offset is one of a template, or of an expression: those stand anywhere in jobs and
// their base file.
func asks(f render.TextFile, at int) bool {
	line := f.Text[strings.LastIndexByte(f.Text[:at], '\n')+1 : at]
	if inYAML(f) && comment.MatchString(line) {
		return false
	}
	if holdsExpressions(f) {
		return true
	}
	return slices.ContainsFunc(templateAction.FindAllStringIndex(f.Text, -1), func(m []int) bool {
		return m[0] < at && at < m[1]
	})
}

// Publishes are the instances of services that the node's steps with service.publish announce, as far as they are known
// before the run.
func Publishes(c *render.Catalog) []render.Service {
	var out []render.Service
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			if s.Action != "service.publish" || s.Broken() || s.Params.Waits("name") {
				continue
			}
			one := published(s, c.Node.Name)
			if one.Address == "" {
				one.Address, one.Addresses = c.Addresses(s.Params.Text("interface"))
			}
			out = append(out, one)
		}
	}
	return out
}
