package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// What the parsers of YAML, templates and expressions say is true, and names what they stumbled over. The hints here
// name what people most likely meant who write other tools' files every day.

// opensText is a key whose text stands in the lines that follow.
var opensText = lazyregexp.New(`^([\s-]*)[^\s#][^#]*:\s+[|>][+-]?\s*$`)

// blockHint is the hint for a line of a text behind | or > that is not indented: it ends the text.
func blockHint(r *rendered, number int) string {
	line := r.line(number)
	for number--; number > 0; number-- {
		before := r.line(number)
		if strings.TrimSpace(before) == "" {
			continue
		}
		m := opensText.FindStringSubmatch(before)
		if m == nil || len(line)-len(strings.TrimLeft(line, " ")) > len(m[1]) {
			return ""
		}
		return fmt.Sprintf(
			"the lines of a text are indented deeper than its key, in line %d",
			r.position(number, 1).Line,
		)
	}
	return ""
}

// foreignFunctions are names that others have in templates, and how it is said here.
var foreignFunctions = map[string]string{
	"grains": "facts are server.NAME: see pullet facts", "ansible_facts": "facts are server.NAME: see pullet facts",
	"facts":  "facts are server.NAME: see pullet facts",
	"pillar": "variables are vars.NAME", "hostvars": "servervars has the facts of other hosts",
	"groups": `pullet.servers "role=web" are the hosts of a target`,
	"lookup": "a macro with cmd.run reads what a host has", "include": "a macro is a text that several use",
	"inventory_hostname": "this host is server.name",
	"Values":             "variables are vars.NAME", "secret": encryptedVars, "secrets": encryptedVars,
}

// functionHint is the hint for a function that does not exist, in the text from where it stands.
func functionHint(name, from string, known []string) string {
	switch {
	case foreignFunctions[name] != "":
		return foreignFunctions[name]
	case strings.HasPrefix(name, "ansible_"):
		return foreignFunctions["facts"]
	case slices.Contains(impure, name):
		return "it is left out: one commit has to mean the same on every host and at any time"
	}
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if rest := strings.TrimLeft(strings.TrimPrefix(from, name), " -"); rest != "" &&
		strings.ContainsAny(rest[:1], "}|).") { // without arguments
		return fmt.Sprintf("a variable is vars.%s, a fact server.%s", name, name)
	}
	return ""
}

var (
	emptyDot     = lazyregexp.New(`^nil data; no entry for key "(.*)"$`)
	macroField   = lazyregexp.New(`can't evaluate field (\S+) in type render\.macrosRoot`)
	stepsField   = lazyregexp.New(`can't evaluate field (\S+) in type render\.stepsRoot`)
	servicesBare = lazyregexp.New(`^wrong number of args for services: want 1 got 0$`)
	noField      = lazyregexp.New(
		`(?:type render\.StepResult has no field |can't evaluate field )(\w+)(?: in type render\.StepResult)?$`,
	)
)

// serviceNamed is the service in a field such as services.db; NAME where there is none.
func serviceNamed(field string) string {
	parts := strings.Split(field, ".")
	if len(parts) < 2 || parts[1] == "" {
		return "NAME"
	}
	return parts[1]
}

// resultFields are the fields of what a step returned.
func resultFields() []string {
	var out []string
	t := reflect.TypeFor[StepResult]()
	for i := range t.NumField() {
		out = append(out, t.Field(i).Name)
	}
	return out
}

func noResultField(name string) (message, hint string) {
	return fmt.Sprintf("what a step returned has no %q", name), DidYouMean(name, resultFields())
}

// expressionHint is the hint for an expression that does not compile, which stands in this line.
func expressionHint(message, text, line string, known []string) string {
	name, unknown := strings.CutPrefix(message, "unknown name ")
	switch {
	case strings.Contains(line, "{{") && !strings.Contains(line, text):
		return fmt.Sprintf("rendered: %.100s; in an expression names stand without braces", text)
	case message == `unexpected token Operator("=")` && comparesLabel.MatchString(text):
		m := comparesLabel.FindStringSubmatch(text)
		return fmt.Sprintf("a label: hasLabel('%s=%s'); values are compared with ==", m[1], m[2])
	case message == `unexpected token Operator("=")`:
		return "compare with =="
	case !unknown:
		return ""
	}
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if said := foreignFunctions[name]; said != "" || strings.HasPrefix(name, "ansible_") {
		return functionHint(name, "", nil)
	}
	if comparesLabel.MatchString(text) && strings.HasPrefix(strings.TrimSpace(text), name) {
		m := comparesLabel.FindStringSubmatch(text)
		return fmt.Sprintf("a label: hasLabel('%s=%s'); a variable: vars.%s == '%s'", m[1], m[2], m[1], m[2])
	}
	return fmt.Sprintf("a variable is vars.%s, a text stands in quotes: '%s'", name, name)
}

// comparesLabel is a comparison of two bare words, as in a target: role==web.
var comparesLabel = lazyregexp.New(`^\s*([A-Za-z_][\w-]*)\s*={1,2}\s*["']?([\w.-]+)["']?\s*$`)

// valueHint shows how a value is written that stands where a map is expected with these fields.
func valueHint(n *yaml.Node, s structShape) string {
	if n.Kind != yaml.ScalarNode || isNull(n) || len(n.Value) > 80 {
		return ""
	}
	if slices.Equal(s.names, []string{"action", "parameters", "params"}) {
		return "write {template.expression: [{content: ...}]}"
	}
	only := ""
	for _, name := range s.names {
		if s.fields[name].required {
			if only != "" && only != "name" {
				only = ""
				break
			}
			if only == "" {
				only = name
			}
		}
	}
	value := n.Value
	if strings.ContainsAny(value, " '\"{}[],:#*&!|>%@`") {
		value = fmt.Sprintf("%q", value)
	}
	switch {
	case only != "":
		return fmt.Sprintf("write {%s: %s}", only, value)
	case len(s.names) <= 6:
		return "its fields are " + strings.Join(s.names, ", ")
	}
	return ""
}

// fileHint is the hint for a file that is not there under a folder, named by people who are used to write the whole
// path.
func (r *Repository) fileHint(dir, name string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "/"), dir+"/")
	bare = strings.TrimSuffix(strings.TrimSuffix(bare, ".yaml"), ".yml")
	switch {
	case bare != name && r.exists(dir+"/"+bare+".yaml"):
		return fmt.Sprintf("write %s: the folder and .yaml are understood", bare)
	case r.exists(dir + "/" + bare + ".yml"):
		return fmt.Sprintf("rename %s/%s.yml to .yaml", dir, bare)
	}
	return r.unseenHint(dir+"/"+name+".yaml", DidYouMean(name, r.names(dir)))
}
