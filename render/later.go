package render

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Why words have no effect, and what is written instead: those of the language of state repositories in a place where
// they mean nothing, and those of Salt.
const (
	whoEvaluates = "who evaluates which triggers stands in base/events.yaml, the triggers in files below events/"
	asReactions  = "what answers an event stands in files below reactions/: reactions: {EVENT: {reaction: {jobs: ...}}}"
	asTriggers   = "what a host looks for itself is a trigger, in a file below events/; " + whoTargets
	whoTargets   = "base/events.yaml says which hosts have it"
	noDataStore  = "settings of the fleet stand in pullet.yaml or in base/config.yaml, such as " +
		"config: {dataStore: {type: etcd, count: 3}}"
	encryptedVars = "secrets are variables in encrypted files, vars/NAME.yaml.age: pullet secrets --help"
	ofTheHost     = "a repository cannot vouch for itself: each host says it below repositories in its own " +
		"/etc/pullet/pullet.yaml"
)

// laterNames are these words, as fields of files and as names of files and directories.
var laterNames = map[string]string{
	"events": whoEvaluates, "triggers": whoEvaluates, "trigger": whoEvaluates,
	"reactions": asReactions, "reaction": asReactions, "reactor": asReactions, "reactors": asReactions,
	"beacon": asTriggers, "beacons": asTriggers,
	"config": noDataStore, "dataStore": noDataStore, "datastore": noDataStore,
	"secret": encryptedVars, "secrets": encryptedVars,
	"verify": ofTheHost, "signatures": ofTheHost,
}

// placeOf are the fields at the top of files, and the files that have them.
var placeOf = map[string]string{
	"jobs":        "who runs which jobs stands in base/jobs.yaml",
	"validations": "who runs which validations stands in base/jobs.yaml",
	"files":       "who gets which variables stands in base/vars.yaml",
	"macros":      "who gets which macros stands in base/macros.yaml",
	"services":    "who offers which services stands in base/services.yaml", "nodes": "nodes stand in files below nodes/",
	"rollout": "the rules of rollouts stand in pullet.yaml", "steps": "steps stand in files below jobs/",
}

// topFieldHint is the hint for an unknown field at the top of a file: it belongs in another file, or pullet does not
// know it yet.
func topFieldHint(name string) string {
	if said := laterNames[name]; said != "" {
		return said
	}
	return placeOf[name]
}

// IsYAML reports the name of a YAML file.
func IsYAML(name string) bool { return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml" }

// LaterHint is the hint for a file or directory that pullet does not read, by its name or by its fields; "" where they
// say nothing.
func LaterHint(files fs.FS, name string) string {
	if base := path.Base(name); base != "config.yaml" && base != "config.yml" { // a name for anything
		if said := laterNames[strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")]; said != "" {
			return said
		}
	}
	for _, field := range topFields(files, name) {
		if said := topFieldHint(field); said != "" {
			return fmt.Sprintf("%s: %s", field, said)
		}
	}
	return ""
}

var topField = lazyregexp.New(`(?m)^(\w+):`)

// topFields are the fields at the top of a YAML file that nobody reads, so that it need not be right: by its text.
func topFields(files fs.FS, name string) []string {
	if !IsYAML(name) {
		return nil
	}
	f, err := files.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	const most = 16 << 10
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range topField.FindAllSubmatch(text, -1) {
		if !slices.Contains(out, string(m[1])) {
			out = append(out, string(m[1]))
		}
	}
	return out
}
