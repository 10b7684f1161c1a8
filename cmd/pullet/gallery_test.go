package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/render"
)

var update = flag.Bool("update", false, "write docs/errors.md anew")

// wrong is a repository with one mistake: a file of it, and what to do about it.
type wrong struct {
	title, file, text, advice string
	more                      map[string]string // files that the mistake needs beside it
}

const galleryHead = `# Mistakes in files and their messages

Every mistake has its place: the file of the repository, line and column, also when it shows only after templates were executed. ` + "`pullet\nvalidate`" + ` finds all of these on a laptop; a pull finds the errors before it touches anything, and the fleet never gets the version.

This file is made by a test: ` + "`go test ./cmd/pullet -run TestGallery -update`" + `.
`

// TestGallery holds docs/errors.md against what validate says.
func TestGallery(t *testing.T) {
	var b strings.Builder
	b.WriteString(galleryHead)
	for _, w := range gallery() {
		message := findingsOf(t, w).Error()
		fmt.Fprintf(&b, "\n## %s\n\n`%s`\n\n```yaml\n%s```\n\n```text\n%s\n```\n\n%s\n", w.title, w.file, w.text, message, w.advice)
		if strings.Count(message, w.file+":") == 0 {
			t.Errorf("%s: no finding in %s:\n%s", w.title, w.file, message)
		}
	}
	const path = "../../docs/errors.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != b.String() {
		t.Errorf("docs/errors.md is not what validate says (%v): go test ./cmd/pullet -run TestGallery -update", err)
	}
}

// gallery returns the repositories of docs/errors.md.
func gallery() []wrong {
	return slices.Concat(wrongYAML(), wrongTemplates(), wrongReferences(), wrongFleets(), wrongHabits())
}

// files returns the files of a repository that is right but for one file.
func (w wrong) files() map[string]string {
	files := map[string]string{
		"nodes/hosts.yaml": "nodes: {web1: {labels: {role: web}}, db1: {labels: {role: db}}}\n",
		"base/jobs.yaml":   "jobs: {'*': [{name: site}]}\n", "jobs/site.yaml": "steps: []\n",
		"base/vars.yaml": "files: {'*': [{name: site}]}\n", "vars/site.yaml": "server_port: 8080\n",
	}
	maps.Copy(files, w.more)
	files[w.file] = w.text
	return files
}

// findingsOf returns the findings of validate in such a repository.
func findingsOf(t *testing.T, w wrong) render.ErrorList {
	t.Helper()
	m := fstest.MapFS{}
	for name, text := range w.files() {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	_, found, err := validate(t.Context(), render.Open(render.Layer{Name: "main", FS: m}), "", nil, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", w.title, err)
	}
	return slices.DeleteFunc(found, func(e *render.Error) bool { // what the scene itself leaves unused
		return strings.Contains(e.Message, `mentions the variable "server_port"`)
	})
}

// site is a job of one step with these lines.
func site(lines ...string) string {
	return "steps:\n  - name: settings\n    " + strings.Join(lines, "\n    ") + "\n"
}

func wrongYAML() []wrong {
	job := "jobs/site.yaml"
	managed := "action: file.managed"
	return []wrong{
		{"Invalid YAML", job, "steps:\n  - name: settings\n   action: file.managed\n", "Put the keys of one map into one column.", nil},
		{"A tab", job, "steps:\n\t- name: settings\n", "Indent with blanks.", nil},
		{"A bracket that is never closed", job, "steps:\n  - name: settings\n    action: cmd.run\n    parameters: {cmd: [echo, hello}\n", "Close it; the caret shows where what is open begins.", nil},
		{"A duplicate key", job, site(managed, "parameters: {name: /etc/app.conf}", "parameters: {name: /etc/other.conf}"), "Keep one: which of them would count?", nil},
		{"An unknown field", job, site(managed, "parameters: {name: /etc/app.conf}", "conditons: {}"), "Take the field of the hint, or see `pullet explain`.", nil},
		{"A misspelled action", job, site("action: file.manged", "parameters: {name: /etc/app.conf}"), "Take the name of the hint.", nil},
		{"A missing parameter", job, site(managed, "parameters: {content: hello}"), "Add it.", nil},
		{"A parameter of the wrong type", job, site(managed, "parameters: {name: /etc/app.conf, backup: perhaps}"), "Write what is expected.", nil},
		{"A list where a map is expected", "vars/site.yaml", "- server_port: 8080\n", "Variables have names: write a map.", nil},
		{"An invalid duration", job, site("action: cmd.run", "parameters: {cmd: make, creates: /x/y}", "runOptions: {timeout: 5 minutes}"), "Write a number with its unit.", nil},
		{"An alias inside its own anchor", "vars/site.yaml", "server_port: &port [*port]\n", "Write the value out.", nil},
	}
}

func wrongTemplates() []wrong {
	job := "jobs/site.yaml"
	run := "action: cmd.run"
	before := "steps:\n  - {name: ask, action: cmd.run, parameters: {cmd: hostname}}\n  - "
	return []wrong{
		{"A variable that does not exist", job, site(run, "parameters: {cmd: 'listen {{ vars.server_prot }}'}"), "Take the name of the hint, or set the variable; `get vars \"name\"` is for what may be missing.", nil},
		{"A template that does not parse", job, site(run, "parameters: {cmd: 'echo {{ if }}'}"), "Give the `if` a value to decide on.", nil},
		{"An if without an end", job, "steps:\n{{- if vars.server_port }}\n  - name: settings\n", "Close every `if`, `range` and `with` with `{{ end }}`.", nil},
		{"A function that does not exist", job, site(run, "parameters: {cmd: 'echo {{ vars.server_port | uppper }}'}"), "Use a function of `pullet explain functions`; those that read the clock, chance or the environment are left out on purpose.", nil},
		{"A service read as a field", job, site(run, "parameters: {cmd: 'echo {{ services.db }}'}"), "A service has instances: name it as an argument, and go through them. In conditions it is `services('db')`.", nil},
		{"Escaped quotes in an action", job, before + "name: tell\n    action: cmd.run\n    parameters: {cmd: \"echo {{ (step \\\"ask\\\").StdOut }}\"}\n", "Templates are executed before YAML is read: use backquotes within double quotes, or single quotes around the text.", nil},
		{"A decision on what a step returns", job, before + "name: tell\n    action: cmd.run\n    parameters:\n      cmd: echo {{ if (step \"ask\").Changed }}new{{ end }}\n", "The catalog is complete before anything runs: decide in `conditions.when`.", nil},
		{"A result in a step's name", job, before + "name: tell {{ (step \"ask\").StdOut }}\n    action: cmd.run\n    parameters: {cmd: echo}\n", "Names, actions and requisites must be known before anything runs: use the result in the parameters.", nil},
		{"A result in a requisite", job, before + "name: tell\n    action: cmd.run\n    parameters: {cmd: echo}\n    require: ['{{ (step \"ask\").StdOut }}']\n", "Require the step by its name.", nil},
		{"item where there is none", job, site(run, "parameters: {cmd: 'echo {{ item }}'}"), "Add `forEach` to the step.", nil},
		{"A macro with the wrong arguments", job, site(run, "parameters: {cmd: 'echo {{ macro \"greet\" }}'}"), "Give as many arguments as `params` names.", macroFiles("greet:\n  template.expression: [{content: 'hello {{ .who }}'}]\n  params: [who]\n")},
		{"Macros that call each other", "macros/site.yaml", "a: {template.expression: [{content: '{{ macro \"b\" }}'}]}\nb: {template.expression: [{content: '{{ macro \"a\" }}'}]}\n", "Let one of them hold the text.", macroFiles("")},
		{"A file template that fails", "files/app.conf", "port = {{ vars.server_prot }}\n", "Sources with `template: true` are executed when the catalog is made: their mistakes are found as early as all others.",
			map[string]string{job: site("action: file.managed", "parameters: {name: /etc/app.conf, source: app.conf, template: true}")}},
	}
}

// macroFiles is a macro file that every node gets.
func macroFiles(text string) map[string]string {
	return map[string]string{"base/macros.yaml": "macros: {'*': [{name: site}]}\n", "macros/site.yaml": text}
}

func wrongReferences() []wrong {
	job := "jobs/site.yaml"
	run, echo := "action: cmd.run", "parameters: {cmd: echo}"
	when := func(text string) string { return site(run, echo, `conditions: {when: {condition: "`+text+`"}}`) }
	return []wrong{
		{"An expression that does not parse", job, when("server.memory >"), "Finish the expression; its language is that of expr-lang.org.", nil},
		{"A name that no expression has", job, when("variable.server_port == 1"), "The roots are those of templates: `vars`, `server`, `steps`, `macros` and so on.", nil},
		{"A variable in an expression that the host lacks", job, when("vars.server_prot == 1"), "Take the name of the hint; `vars?.name` and `??` are for what may be missing.", nil},
		{"A fact in an expression that the host lacks", job, when("server.memmory > 1024"), "Take the name of the hint; `pullet facts` lists them.", nil},
		{"A macro in an expression that the host lacks", job, when("macros['helthy'] == 'yes'"), "Take the name of the hint.", macroFiles("healthy: {template.expression: [{content: 'yes'}]}\n# healthy is for later\n")},
		{"A step that does not exist", job, when("steps['setings'].Changed"), "Name a step of the run: `name`, or `job/name`.", nil},
		{"A requisite to nothing", job, site(run, echo, "require: [{file: /etc/app}]"), "Add the step, or drop the requisite.", nil},
		{"Steps that wait for each other", job, "steps:\n  - {name: a, action: cmd.run, parameters: {cmd: echo}, require: [b]}\n  - {name: b, action: cmd.run, parameters: {cmd: echo}, require: [a]}\n", "Drop one of the requisites.", nil},
		{"Two contents of one file", job, "steps:\n  - {name: settings, action: file.managed, parameters: {name: /etc/app.conf, content: a}}\n  - {name: port, action: file.line, parameters: {name: /etc/app.conf, line: port=80}}\n", "Each would undo the other at every pull: keep one, or write the line into the content.", nil},
		{"Steps that contradict each other", job, "steps:\n  - {name: admin, action: user.present, parameters: {name: ada}}\n  - {name: old admin, action: user.absent, parameters: {name: ada}}\n", "Each would undo the other at every pull: keep one. Conditions that may keep them apart make a warning of it.", nil},
		{"A source that does not exist", job, site("action: file.managed", "parameters: {name: /etc/app.conf, source: app.cnf}"), "Sources are below files/.", map[string]string{"files/app.conf": "a\n"}},
		{"A parenthesis in a target", "base/jobs.yaml", "jobs: {'role=web,(os=debian)': [{name: site}], '(': [{name: site}]}\n", "All terms of a target have to hold; a list of targets means any of them.", nil},
		{"A job that does not exist", "base/jobs.yaml", "jobs: {'*': [{name: stie}]}\n", "Name a file below jobs/, without .yaml.", nil},
		{"Variables that do not exist", "base/vars.yaml", "files: {'*': [{name: stie}]}\n", "Name a file below vars/; `paths` with `optional: true` is for files that may be missing.", nil},
		{"A macro file that does not exist", "base/macros.yaml", "macros: {'*': [{name: flet}]}\n", "Name a file below macros/.", map[string]string{"macros/fleet.yaml": "banner: {template.expression: [{content: x}]}\n"}},
	}
}

func wrongFleets() []wrong {
	return []wrong{
		{"An invalid target", "base/jobs.yaml", "jobs:\n  'role=[web': [{name: site}]\n", "Write `*`, a host's name, `key=value`, `key!=value` or `!key`, each with * ? [].", nil},
		{"A target that no host matches", "base/jobs.yaml", "jobs:\n  '*': [{name: site}]\n  'role=wbe': [{name: site}]\n", "A warning: give a node of nodes/ that label, or fix the target.", nil},
		{"A role that no node has", "pullet.yaml", "rollout:\n  roleDependencies: {web: [dbs]}\n", "Take the name of the hint.", nil},
		{"Roles that wait for each other", "pullet.yaml", "rollout:\n  roleDependencies: {web: [db], db: [web]}\n", "Nobody could begin: drop one of the dependencies.", nil},
		{"An invalid limit", "pullet.yaml", "rollout:\n  rollingRules: {global: half}\n", "Write a number of hosts, or a share.", nil},
		{"A secret in clear", "vars/site.yaml", "server_port: 8080\ndatabase: {password: \"correct horse\"} # for the database\n", "A warning, in which the value is not shown: put the secret into an [encrypted file](secrets.md), or give it to the hosts in /etc/pullet/vars.d. Change it, too: git remembers it.", map[string]string{"jobs/site.yaml": site("action: cmd.run", "parameters: {cmd: 'echo {{ vars.database.password }}'}")}},
		{"A file that nothing refers to", "jobs/old.yaml", "steps: []\n", "A warning: remove it, or name it in base/jobs.yaml.", nil},
		{"A variable that nothing uses", "vars/site.yaml", "server_port: 8080\nold_port: 80\n", "A warning: remove it, or use it.", nil},
	}
}

// wrongHabits are what people write who use other tools every day.
func wrongHabits() []wrong {
	job := "jobs/site.yaml"
	run, echo := "action: cmd.run", "parameters: {cmd: echo}"
	managed := func(params string) string {
		return site("action: file.managed", "parameters: {name: /etc/app.conf, "+params+"}")
	}
	return []wrong{
		{"A playbook", job, "- hosts: all\n  tasks:\n    - name: web server\n      apt: {name: nginx}\n", "A job is a map with `steps`; who gets it stands in base/jobs.yaml.", nil},
		{"An action as the key", job, site("pkg.installed:", "  - name: nginx"), "The action is a field of the step.", nil},
		{"Parameters beside the action", job, site("action: file.managed", "dest: /etc/app.conf"), "Put them below `parameters`.", nil},
		{"A state file", job, "web:\n  service.running:\n    - enable: true\n", "Write the step of the hint.", nil},
		{"The name of a collection", job, site("ansible.builtin.copy:", "  dest: /etc/app.conf"), "Take the action of the hint.", nil},
		{"Jinja", job, "steps:\n  {% if grains['os'] == 'Debian' %}\n", "Templates are those of Go.", nil},
		{"A loop of Jinja, and another mistake", job, "steps:\n{% for user in vars.users %}\n  - name: settings\n    action: file.manged\n    parameters: {name: /etc/app.conf}\n{% endfor %}\n", "Write `range`, or a `forEach`.", nil},
		{"Jinja in a text", job, managed("content: '{% if debian %}apt{% endif %}'"), "A warning: the text is valid without it, and would be written as it stands.", nil},
		{"A list that is missing", job, site("action: user.present", "parameters: {name: ada, groups: {{ toJson (get vars \"groups\") }}}"), "Set the variable, or say what holds without it.", nil},
		{"Brackets in a template", job, managed("content: \"{{ pillar['port'] }}\""), "Maps are read by dots or `index`.", nil},
		{"Grains", job, managed("content: '{{ grains.os }}'"), "Facts are `server`: `pullet facts` lists them.", nil},
		{"A variable without its root", job, managed("content: '{{ server_port }}'"), "Variables are `vars`.", nil},
		{"The values of a chart", job, managed("content: '{{ .Values.port }}'"), "Variables are `vars`; nothing is passed to a job in the dot.", nil},
		{"A function that pullet leaves out", job, managed("content: '{{ now }}'"), "Let a command or a macro ask for what the commit does not say.", nil},
		{"A condition without its key", job, site(run, echo, "conditions: {when: server.os == 'debian'}"), "A condition can also have `retry`.", nil},
		{"A condition that compares with one =", job, site(run, echo, `conditions: {when: {condition: "server.os = 'debian'"}}`), "Write `==`.", nil},
		{"A text without quotes in a condition", job, site(run, echo, `conditions: {when: {condition: "server.os == debian"}}`), "Texts in expressions stand in quotes.", nil},
		{"A fact in capitals", job, site(run, echo, `conditions: {when: {condition: "server.osFamily == 'Debian'"}}`), "A warning: `pullet facts` shows how facts are written.", nil},
		{"A template in a forEach", job, "steps:\n  - name: settings\n    forEach: '{{ toJson vars.server_port }} items'\n    action: cmd.run\n    parameters: {cmd: echo}\n", "A forEach is a list, or an expression that gives one.", nil},
		{"A field that no result has", job, "steps:\n  - {name: ask, action: cmd.run, parameters: {cmd: hostname}}\n  - name: tell\n    action: cmd.run\n    parameters: {cmd: 'echo {{ (step \"ask\").Stdout }}'}\n", "Take the name of the hint.", nil},
		{"A macro whose action does not exist", "macros/site.yaml", "load: {action: cmd.rum, parameters: {cmd: uptime}}\n# load is for later\n", "Take the name of the hint.", macroFiles("")},
		{"A text with a colon", job, site(run, "parameters: {cmd: echo a: b}"), "Put it in quotes.", nil},
		{"A word that YAML reserves", job, site(run, "parameters:", "  cmd: %d"), "Put it in quotes.", nil},
		{"Two documents in one file", job, "steps: []\n---\nsteps: []\n", "One file is one job.", nil},
		{"A star without quotes", "base/jobs.yaml", "jobs:\n  *: [{name: site}]\n", "Write '*'.", nil},
		{"A target of words", "base/jobs.yaml", "jobs:\n  'G@os:debian and web*': [{name: site}]\n", "Join terms by commas.", nil},
		{"The whole path of a job", "base/jobs.yaml", "jobs: {'*': [{name: jobs/site.yaml}]}\n", "Jobs are named by their path below jobs/, without .yaml.", nil},
		{"Labels beside a host", "nodes/hosts.yaml", "nodes: {web1: {role: web}}\n", "Put them below `labels`.", nil},
		{"Canaries without a host", "pullet.yaml", "rollout: {canary: {target: canary=true}}\n", "A warning: give a node of nodes/ the label, or drop the canary.", nil},
		{"A step that nobody takes", job, site(run, echo, "runOptions: {target: {hosts: role=wbe}}"), "A warning: fix the target.", nil},
		{"A wait for hosts of a later stage", job, "steps:\n  - {name: database, action: service.wait, parameters: {name: db}}\n", "A warning: in a fleet that is new nobody goes on; move the wait, or change the order.",
			map[string]string{"pullet.yaml": "rollout: {roleDependencies: {db: [web]}}\n", "base/services.yaml": "services: {role=db: [{name: db, port: 5432}]}\n", "base/jobs.yaml": "jobs: {role=web: [{name: site}]}\n"}},
	}
}
