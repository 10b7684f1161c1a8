package render

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// foreignActions are what people who come from Ansible or Salt write, and what is written here.
var foreignActions = map[string]string{
	"apt":                          "pkg.installed",
	"yum":                          "pkg.installed",
	"dnf":                          "pkg.installed",
	"package":                      "pkg.installed",
	"pkg":                          "pkg.installed",
	"pkg.present":                  "pkg.installed",
	"pkg.uptodate_all":             "pkg.uptodate",
	"pkg.upgrade":                  "pkg.uptodate",
	"pkg.upgraded":                 "pkg.uptodate",
	"pkg.purged":                   "pkg.removed with purge: true",
	"pkg.absent":                   "pkg.removed",
	"pkg.newest":                   "pkg.latest",
	"apt_repository":               "pkgrepo.managed",
	"yum_repository":               "pkgrepo.managed",
	"apt_key":                      "pkgrepo.managed",
	"copy":                         "file.managed",
	"template":                     "file.managed with template: true",
	"file":                         "file.managed, file.directory, file.symlink or file.absent",
	"file.present":                 "file.managed",
	"file.copy":                    "file.managed",
	"file.template":                "file.managed with template: true",
	"file.touch":                   "file.managed",
	"file.contents":                "file.content",
	"file.recurse":                 "file.managed with recurse: true",
	"synchronize":                  "file.managed with recurse: true",
	"file.link":                    "file.symlink",
	"file.append":                  "file.line",
	"file.replace":                 "file.line with match",
	"lineinfile":                   "file.line",
	"replace":                      "file.line with match",
	"blockinfile":                  "file.block",
	"file.blockreplace":            "file.block",
	"file.removed":                 "file.absent",
	"file.mkdir":                   "file.directory",
	"get_url":                      "file.managed with source and its digest",
	"unarchive":                    "archive.extracted",
	"git":                          "git.checkout",
	"git.latest":                   "git.checkout",
	"systemd":                      "service.ensure",
	"service":                      "service.ensure",
	"service.running":              "service.ensure with state: started",
	"service.started":              "service.ensure with state: started",
	"service.dead":                 "service.ensure with state: stopped",
	"service.stopped":              "service.ensure with state: stopped",
	"service.enabled":              "service.ensure with enabled: true",
	"service.disabled":             "service.ensure with enabled: false",
	"service.restarted":            "service.ensure with watch",
	"service.masked":               "service.ensure with masked: true",
	"service.managed":              "service.ensure",
	"shell":                        "cmd.run",
	"command":                      "cmd.run",
	"raw":                          "cmd.run",
	"cmd":                          "cmd.run",
	"cmd.shell":                    "cmd.run",
	"script":                       "cmd.script",
	"cmd.wait":                     "cmd.run with onchanges",
	"cmd.wait_script":              "cmd.script with onchanges",
	"uri":                          "http.request",
	"http.query":                   "http.request",
	"user":                         "user.present",
	"group":                        "group.present",
	"authorized_key":               "ssh.authorized_key",
	"ssh_auth.present":             "ssh.authorized_key",
	"ssh_auth":                     "ssh.authorized_key",
	"known_hosts":                  "ssh.known_host",
	"ssh_known_hosts.present":      "ssh.known_host",
	"cron":                         "cron.present",
	"cron.file":                    "cron.present",
	"sysctl":                       "sysctl.present",
	"mount":                        "mount.mounted",
	"modprobe":                     "kmod.present",
	"hostname":                     "system.hostname",
	"network.system":               "system.hostname",
	"timezone":                     "system.timezone",
	"timezone.system":              "system.timezone",
	"reboot":                       "system.reboot",
	"system.restart":               "system.reboot",
	"wait_for":                     "conditions.continue with retry",
	"pause":                        "time.sleep",
	"debug":                        "test.echo",
	"event.send":                   "event.emit",
	"event.fire":                   "event.emit",
	"event.fire_master":            "event.emit",
	"test.nop":                     "test.succeed",
	"test.configurable_test_state": "test.succeed, test.change or test.fail",
	"test.succeed_without_changes": "test.succeed",
	"test.succeed_with_changes":    "test.change",
	"test.fail_without_changes":    "test.fail",
}

// foreignFields are fields of steps and parameters that others have, and how it is said here. A field that has the
// place of another is named alone, and meant only where that exists.
var foreignFields = map[string]string{
	"notify":        "here the step that reacts names the other: watch: [STEP]",
	"handlers":      "a step with listen: [STEP] is one",
	"become":        "steps run as the agent's user, which is root; commands have the parameter user",
	"become_user":   "commands have the parameter user",
	"runas":         "user",
	"run_as":        "user",
	"with_items":    "forEach",
	"loop":          "forEach",
	"with_dict":     "forEach",
	"for_each":      "forEach",
	"foreach":       "forEach",
	"when":          "conditions: {when: {condition: EXPRESSION}}",
	"register":      "what a step returned is steps['NAME'] in conditions, (step \"NAME\") in templates",
	"changed_when":  "a command has the parameter changed",
	"failed_when":   "a command has the parameter failed",
	"until":         "conditions.continue with retry",
	"retries":       "runOptions: {retry: {interval: 10s, limit: 3}}",
	"delay":         "runOptions: {retry: {interval: 10s, limit: 3}}",
	"ignore_errors": "a failed step stops only what requires it",
	"no_log":        "sensitive",
	"tasks":         "steps",
	"roles":         "include",
	"import_tasks":  "include",
	"dest":          "name",
	"path":          "name",
	"src":           "source",
	"text":          "content",
	"pkg":           "name",
	"chdir":         "cwd",
	"user":          "owner",
	"serial":        "runOptions: {serialize: {count: 1}} for a step, rollout.rollingRules in pullet.yaml for a version",
	"throttle":      "runOptions: {serialize: {count: 1}}",
	"run_once":      "runOptions: {target: {limit: 1}}",
	"context":       "nothing is passed to a template: it sees the variables of vars/ as vars.NAME",
	"tags":          "targets of base files choose hosts; there are no tags",
	"delegate_to":   "a step runs on its own host",
	"order":         "runOptions: {ordering: genius}, or require",
	"enable":        "enabled",
	"ensure":        "state",
	"daemon_reload": "unit files that changed are read anew by itself",
}

// ofActions are parameters that many actions have, as people know them.
var ofActions = []string{
	"name",
	"source",
	"content",
	"owner",
	"user",
	"group",
	"mode",
	"template",
	"cmd",
	"cwd",
	"state",
	"enabled",
	"version",
	"validate",
}

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
