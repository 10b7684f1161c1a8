// Package newcomer knows what people who come from Ansible or Salt write, and what is written here instead.
package newcomer

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

// Action returns the hint for an action that Ansible or Salt has and pullet calls otherwise; "" for others.
func Action(name string) string {
	name = withoutCollection(name)
	if ours := actions[name]; ours != "" {
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

// Field returns the hint for a field that Ansible or Salt has, with its value, in a map that may have the known fields
// and in which some are set; "" for others. The value is no alias itself.
func Field(name string, value *yaml.Node, known []string, set func(name string) bool) string {
	said := fields[name]
	ofStep, ofJob := slices.Contains(known, "action"), slices.Contains(known, "steps")
	switch {
	case ofStep && set("action") && slices.Contains(parameters, name):
		return "it belongs below parameters"
	case ofStep && set("action") && slices.Contains(parameters, said):
		return "it belongs below parameters, as " + said
	case slices.Contains(known, said):
		return "here it is " + said
	case said != "" && !oneWord.MatchString(said) &&
		(ofStep || ofJob || slices.Contains(known, "serialize") || slices.Contains(known, "template")):
		return said
	case ofStep && actions[withoutCollection(name)] != "":
		return "here it is action: " + actions[withoutCollection(name)] + ", with its parameters below parameters"
	case ofStep && strings.Count(name, ".") == 1:
		return "write action: " + name + ", with its parameters below parameters"
	case ofJob && strings.Contains("apiVersion kind labels annotations uuid", name):
		return "it stands below metadata"
	case ofJob:
		return stateHint(name, value)
	case slices.Contains(known, "labels") && (len(known) == 1 || name == "role" || name == "roles"):
		return fmt.Sprintf("a label stands below labels: {labels: {%s: ...}}", name)
	}
	return ""
}

// stateHint shows how a state of Salt is written, which has its name before its function: nginx: pkg.installed; "" for
// another value.
func stateHint(name string, value *yaml.Node) string {
	function := value.Value
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
		function = value.Content[0].Value
		first := value.Content[1]
		if first.Kind == yaml.AliasNode {
			first = first.Alias
		}
		if first.Kind == yaml.SequenceNode && len(first.Content) > 0 && !strings.Contains(function, ".") {
			function += "." + first.Content[0].Value // pkg: [installed]
		}
	}
	if !stateFunction.MatchString(function) {
		return ""
	}
	action, with := function, ""
	if ours := actions[function]; ours != "" {
		action, with, _ = strings.Cut(ours, " with ")
	}
	given := "name: " + name
	if strings.Contains(with, ": ") {
		given += ", " + with
	}
	return fmt.Sprintf(
		"a state is a step here: steps: [{name: %s, action: %s, parameters: {%s}}]",
		path.Base(name),
		action,
		given,
	)
}

var stateFunction = lazyregexp.New(`^[a-z_]+\.[a-z_]+$`)
