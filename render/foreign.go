package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// oneWord is a field that has the place of another.
var oneWord = lazyregexp.New(`^[A-Za-z]+$`)

// ForeignAction is the hint for an action that Ansible or Salt has and pullet calls otherwise; "" for others.
func ForeignAction(name string) string {
	name = withoutCollection(name)
	if ours := foreignActions[name]; ours != "" {
		return "here it is " + ours
	}
	return ""
}

// withoutCollection is the short name of an action of Ansible: apt for ansible.builtin.apt.
func withoutCollection(name string) string {
	if parts := strings.Split(name, "."); len(parts) == 3 {
		return parts[2]
	}
	return name
}

// foreignField is the hint for a field that Ansible or Salt has, in a map with fields of these names, of which some are
// set; "" for others.
func foreignField(e entry, known []string, set func(name string) bool) string {
	name := e.key.Value
	said := foreignFields[name]
	ofStep, ofJob := slices.Contains(known, "action"), slices.Contains(known, "steps")
	switch {
	case ofStep && set("action") && slices.Contains(ofActions, name):
		return "it belongs below parameters"
	case ofStep && set("action") && slices.Contains(ofActions, said):
		return "it belongs below parameters, as " + said
	case slices.Contains(known, said):
		return "here it is " + said
	case said != "" && !oneWord.MatchString(said) &&
		(ofStep || ofJob || slices.Contains(known, "serialize") || slices.Contains(known, "template")):
		return said
	case ofStep && foreignActions[withoutCollection(name)] != "":
		return "here it is action: " + foreignActions[withoutCollection(name)] + ", with its parameters below parameters"
	case ofStep && strings.Count(name, ".") == 1:
		return "write action: " + name + ", with its parameters below parameters"
	case ofJob && strings.Contains("apiVersion kind labels annotations uuid", name):
		return "it stands below metadata"
	case ofJob:
		return stateHint(name, e.value)
	case slices.Contains(known, "labels") && (len(known) == 1 || name == "role" || name == "roles"):
		return fmt.Sprintf("a label stands below labels: {labels: {%s: ...}}", name)
	}
	return ""
}

// stateHint shows how a state of Salt is written, which has its name before its function: nginx: pkg.installed; "" for
// another value.
func stateHint(name string, value *yaml.Node) string {
	value = resolve(value)
	function := value.Value
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
		function = value.Content[0].Value
		if first := resolve(value.Content[1]); first.Kind == yaml.SequenceNode && len(first.Content) > 0 &&
			!strings.Contains(function, ".") {
			function += "." + first.Content[0].Value // pkg: [installed]
		}
	}
	if !stateFunction.MatchString(function) {
		return ""
	}
	action, with := function, ""
	if ours := foreignActions[function]; ours != "" {
		action, with, _ = strings.Cut(ours, " with ")
	}
	parameters := "name: " + name
	if strings.Contains(with, ": ") {
		parameters += ", " + with
	}
	return fmt.Sprintf(
		"a state is a step here: steps: [{name: %s, action: %s, parameters: {%s}}]",
		path.Base(name),
		action,
		parameters,
	)
}

var stateFunction = lazyregexp.New(`^[a-z_]+\.[a-z_]+$`)
