package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"
)

// ofText are functions of text/template that look at texts and make none.
var ofText = []string{"and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "call"}

// TestNoFunctionLetsForeignTextThrough calls every function that templates have with an opaque text in every place:
// whatever it makes of it, nothing of the text is in what YAML reads. A new function cannot go around it.
func TestNoFunctionLetsForeignTextThrough(t *testing.T) {
	const text = "Foreign\n- evil: Text"
	r := repo(opaqueRepo(nil))
	c := r.compiler(of(text))
	defer r.enter(c.scope)()
	c.identify()
	c.compileVars()
	c.compileMacros()
	r.first.meter.all, c.scope.all = nil, nil // the calls are too many for one catalog
	ran := map[string]bool{}
	names := append(slices.Collect(maps.Keys(r.first.funcs)), ofText...)
	for _, name := range names {
		if slices.Contains(internals, name) {
			continue
		}
		for _, args := range callsOf(name) {
			out, err := printedBy(c, name, "{{ "+name+" "+args+" }}")
			if err != nil { // as JSON, if it has no text of its own
				out, err = printedBy(c, name, "{{ "+name+" "+args+" | toJson }}")
			}
			if err != nil {
				continue
			}
			ran[name] = true
			if low := strings.ToLower(out); strings.Contains(low, "evil") || strings.Contains(low, "foreign") || strings.Contains(low, "live") {
				t.Errorf("{{ %s %s }} writes %q", name, args, out)
			}
		}
		if !ran[name] && !slices.Contains([]string{"fail", "event", "item", "step", "steps", "semver", "seq", "call", "semverCompare", "macros"}, name) {
			t.Errorf("no call of %s succeeds: add one that does to callsOf", name)
		}
	}
}

// callsOf are arguments that a function may take, with an opaque text among them.
func callsOf(name string) []string {
	out, values := []string{""}, []string{"server.fqdn", "servervars", "(list server.fqdn)", "server.nested", "server.nested.list", "services `db`", "(dict `k` server.fqdn)"}
	if testing.Short() {
		values = values[:3]
	}
	for _, a := range values {
		out = append(out, a, a+" "+a, "3 "+a, "`f` "+a, a+" `f`", a+" 1", "1 2 "+a, "`x` "+a+" `y`", "`x` `y` "+a, a+" `x` 1", "`x` 1 "+a, "`x` 5 "+a, "`s` `p` 1 "+a,
			a+" `k` `v`", "(dict) `k` "+a, "`k` `d` "+a, a+" "+a+" true", a+" `p` 3", "`x` "+a+" 3", "3 `x` "+a, "(dict `a` `b`) "+a)
	}
	if name == "index" {
		out = append(out, "server `fqdn`", "servervars server.fqdn")
	}
	if name == "macro" {
		out = append(out, "`fqdn`", "`echo` server.fqdn")
	}
	if name == "fromYaml" || name == "fromJson" || name == "mustFromJson" {
		out = append(out, "(toJson server.nested)")
	}
	if name == "urlJoin" {
		out = append(out, "(dict `scheme` `http` `host` server.fqdn `path` server.fqdn)")
	}
	if name == "b64dec" || name == "b32dec" {
		out = append(out, fmt.Sprintf("(%senc server.fqdn)", name[:3]))
	}
	return append(out, "1 2", "1 2 3", "`1.2.3`", "1.5 1", "2", "`2`", "`{}`")
}

// printedBy is what a template writes into a YAML file, with its marks.
func printedBy(c *compiler, name, text string) (string, error) {
	funcs := template.FuncMap{} // the parser copies them all
	for _, used := range append(slices.Clone(internals), "server", "services", "servervars", "list", "dict", "toJson", "b64enc", "b32enc", name) {
		if f := c.repo.first.funcs[used]; f != nil {
			funcs[used] = f
		}
	}
	src := &source{path: "t", text: text, owner: c.repo.first}
	c.scope.x.meter.reset()
	if bad := src.parse(c.scope, funcs, true); bad != nil {
		return "", bad
	}
	out, bad := c.files.execute(src)
	if bad != nil {
		return "", bad
	}
	return string(out.text), nil
}
