package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// serviceUse is what the catalogs of all nodes tell of services.
type serviceUse struct {
	offered map[string]bool
	waits   map[string]*Error // a warning for each step that waits for a service, by its place
	names   map[string]string // the service that it waits for
	unknown bool              // some name is known only when its step runs
}

// note learns from the catalog of one node.
func (u *serviceUse) note(c *Catalog) {
	for name := range c.offering { // of any target: one that nobody matches has a warning of its own
		u.offered[name] = true
	}
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			name := s.Params.Text("name")
			switch {
			case s.Action != "service.publish" && s.Action != "service.wait":
			case waits(name):
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

// asksForService finds the services that templates and expressions name literally.
var asksForService = regexp.MustCompile("\\bservices\\s*\\(?\\s*[\"'`]([A-Za-z0-9-]+)[\"'`]")

// unoffered are the services that somebody waits for or reads, and nobody offers.
func (l *Lint) unoffered() ErrorList {
	u := l.services
	if u.unknown {
		return nil
	}
	var out ErrorList
	add := func(e *Error, name string) {
		e.Severity, e.Hint = Warning, fmt.Sprintf("offer it in %s, or with service.publish in a job", servicesFile)
		if near := Nearest(name, slices.Collect(maps.Keys(u.offered))); near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		out = append(out, e)
	}
	for at, e := range u.waits {
		if !u.offered[u.names[at]] {
			add(e, u.names[at])
		}
	}
	for _, f := range l.repo.texts() {
		src := &source{path: f.shown, text: f.text}
		for _, m := range asksForService.FindAllStringSubmatchIndex(f.text, -1) {
			name := f.text[m[2]:m[3]]
			if !u.offered[name] && f.asks(m[0]) {
				add(src.errorAt(src.pos(m[2]), "nobody offers the service %q that is read here", name), name)
			}
		}
	}
	return out
}

// asks reports that a text at an offset is one of a template, or of an expression: those stand anywhere in jobs and their base file.
func (f textFile) asks(at int) bool {
	line := f.text[strings.LastIndexByte(f.text[:at], '\n')+1 : at]
	if f.yaml() && comment.MatchString(line) {
		return false
	}
	if f.dir == "jobs" || f.path == "base/jobs.yaml" {
		return true
	}
	return slices.ContainsFunc(templateAction.FindAllStringIndex(f.text, -1), func(m []int) bool { return m[0] < at && at < m[1] })
}

// servicesIn are the services that a text of templates and expressions names literally.
func servicesIn(text string) []string {
	var out []string
	for _, m := range asksForService.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// Publishes are the instances of services that the node's steps with service.publish announce, as far as they are known before the run.
func (c *Catalog) Publishes() []Service {
	var out []Service
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			if s.Action != "service.publish" || s.broken || waits(s.Params.Text("name")) {
				continue
			}
			one := s.published(c.Node.Name)
			if one.Address == "" {
				one.Address, one.Addresses = c.Addresses(s.Params.Text("interface"))
			}
			out = append(out, one)
		}
	}
	return out
}
