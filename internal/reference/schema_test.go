package reference_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/reference"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
)

// checker holds files against the schemas.
type checker struct {
	t       *testing.T
	schemas map[string]*jsonschema.Schema
}

// newChecker compiles the schemas, which holds them against the draft's own schema, too.
func newChecker(t *testing.T, extensions ...string) *checker {
	t.Helper()
	made, err := reference.Schemas(extensions...)
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{t, map[string]*jsonschema.Schema{}}
	compiler := jsonschema.NewCompiler()
	for kind, schema := range made {
		if err := compiler.AddResource(kind+".json", c.plain(schema)); err != nil {
			t.Fatal(err)
		}
		if c.schemas[kind], err = compiler.Compile(kind + ".json"); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// plain is a value as it comes out of JSON.
func (c *checker) plain(v any) any {
	c.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// check holds a YAML text against the schema of a kind of file.
func (c *checker) check(kind, text string) error {
	c.t.Helper()
	var value any
	if err := yaml.Load([]byte(text), &value); err != nil && text != "" {
		c.t.Fatalf("%v\n%s", err, text)
	}
	return c.schemas[kind].Validate(c.plain(value))
}

// kindOf is the kind of a file by its path.
func kindOf(name string) string {
	switch dir, _, below := strings.Cut(name, "/"); {
	case name == "pullet.yaml":
		return "pullet"
	case dir == "base":
		return "base-" + strings.TrimSuffix(path.Base(name), ".yaml")
	case below && dir != "files":
		return dir
	}
	return ""
}

// TestSchemasAcceptOurFiles: what validate accepts, as it stands where that is YAML, and rendered for every node.
func TestSchemasAcceptOurFiles(t *testing.T) {
	c := newChecker(t)
	for _, dir := range []string{"../../example-repo", "../../cmd/pullet/starter"} {
		repo := render.Open(render.Layer{Name: "main", FS: os.DirFS(dir)})
		nodes, err := repo.Nodes()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range yamlFiles(t, dir) {
			text, err := os.ReadFile(path.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), "\n{{") {
				if err := c.check(kindOf(name), string(text)); err != nil {
					t.Errorf("%s/%s: %v", dir, name, err)
				}
			}
			if kindOf(name) == "macros" { // it holds templates, and is none
				continue
			}
			for _, n := range nodes {
				c.checkRendered(repo, n, dir, name, string(text))
			}
		}
	}
}

func (c *checker) checkRendered(repo *render.Repository, n render.Node, dir, name, text string) {
	c.t.Helper()
	view := render.View{Nodes: map[string]render.Node{n.Name: n}, Facts: map[string]render.Facts{n.Name: facts.Sample(n.Name)}}
	cat, err := repo.Compile(render.Input{Node: n, Facts: facts.Sample(n.Name), View: view})
	if err != nil {
		c.t.Fatal(err)
	}
	rendered, err := cat.Template(nil, name, text, nil, nil)
	if err != nil { // it is not for this node: it uses variables of another
		return
	}
	if err := c.check(kindOf(name), string(rendered)); err != nil {
		c.t.Errorf("%s/%s for %s: %v", dir, name, n.Name, err)
	}
}

func yamlFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".yaml" && kindOf(name) != "" {
			out = append(out, name)
		}
		return err
	})
	if err != nil || len(out) < 5 {
		t.Fatalf("%v: %v", out, err)
	}
	return out
}

// TestSchemas holds small files against their schemas; what is wrong begins with "!".
func TestSchemas(t *testing.T) {
	c := newChecker(t)
	step := func(text string) string { return "steps: [{name: a, " + text + "}]" }
	for kind, texts := range map[string][]string{
		"pullet": {
			"", "rollout: {rollingRules: {global: 25%, roles: {web: 2, db: '3'}}, roleDependencies: {web: db}, maxFailures: 1}",
			"metadata: {name: x}\nspec: {rollout: {maxFailures: '2'}}", "rollout:",
			"services: {skydns: yes, domain: example.org}", "!services: {dns: true}", "!rolout: {}", "!rollout: {rollingRules: {global: many}}", "!rollout: {rollingRules: {global: 200%}}", "!rollout: {maxFailures: few}",
			"rollout: {maxHostFailures: 2}", "rollout: {maxHostFailures: 10%}", "!rollout: {maxHostFailures: some}", "!rollout: {maxHostFailures: 0%}",
			"!rollout: {maxFailures: '{{ 1 }}'}", "!rollout: {roleDependencies: {web: {db: 1}}}", "!- a", "!spec: {rolout: {}}",
		},
		"secrets": {
			"hosts: {a: ssh-ed25519 AAAA}\npeople: {b: [age1x, age1y]}\nfiles: {'vars/**': {targets: '*', people: [b]}}", "files: {}",
			"!files: [a]", "!files: {a: {target: x}}", "!hosts: {a: {}}",
		},
		"nodes":         {"nodes: {a: {labels: {role: web, n: 1}}, b: }", "spec: {nodes: {a: {}}}", "!{metadata: {name: a}}", "!nodes: [a]", "!nodes: {a: {label: {}}}"},
		"base-vars":     {"files: {'*': [{name: a, paths: [x, y], optional: true}, {name: b, optional: '{{ x }}'}]}", "!files: {'*': {name: a}}", "!files: {'*': [{paths: a}]}", "!files: {'*': [{name: a, optional: maybe}]}"},
		"base-macros":   {"macros: {'*': [{name: a}]}", "!macros: {'*': [a]}"},
		"base-jobs":     {"jobs: {'*': [{name: a, conditions: {when: {condition: 'true'}}}]}", "validations: {'*': }", "jobs: {'*': [{name: a, runs: onUpdate}]}", "!jobs: {'*': [{name: a, runs: never}]}", "!job: {}", "!jobs: {'*': [{name: a, conditions: {if: {}}}]}"},
		"base-services": {"services: {'*': [{name: a, port: '{{ server.port }}', tags: x, check: {tcp: 1, interval: 10s}}]}", "!services: {'*': [{port: 1}]}", "!services: {'*': [{name: a, check: {udp: 1}}]}"},
		"base-events":   {"events: {triggers: {'*': [{name: a}]}}", "events:", "!events: {trigger: {}}", "!events: {triggers: {'*': [a]}}", "!triggers: {}"},
		"base-config":   {"config: {dataStore: {count: 3}}\nevents: {triggers: {'*': [{name: a}]}}", "!events: {triggers: [a]}"},
		"events": {
			"a: {expression: \"macros['pkg.uptodate']() != true\", name: b, interval: 10m, for: 5m, data: {x: 1}}", "a: {expression: x, interval: '{{ vars.x }}'}", "metadata: {name: x}",
			"!a: {name: b}", "!a: {expression: x, intervall: 1s}", "!a: {expression: x, for: soon}", "!a: x",
		},
		"reactions": {
			"reactions: {a/b: {reaction: {jobs: {'*': [{name: x, conditions: {when: {condition: 'true', retry: {limit: 3}}}}]}, conditions: {when: {condition: 'event.occurences > 10'}}, targets: event, on: [change]}, " +
				"triggerLimiter: {minOccurences: 2, reReactDealy: 5m, waitForMore: {timeout: 2m, resetTimeoutOnMore: true}}}}",
			"metadata: {name: x}\nspec: {reactions: {a: {reaction: {jobs: [{name: x}], on: change}, triggerLimiter: {minOccurrences: 2, window: 1h, reReactDelay: 5m, waitForMore: {timeout: 2m, max: 1h}}}}}",
			"!reactions: {a: {reaction: {jobs: x}}}", "!reactions: {a: {reaction: {jobs: [x]}}}", "!reactions: {a: {jobs: [{name: x}]}}", "!reactions: [a]", "!reactions: {a: {reaction: {jobs: [{name: x}], on: always}}}",
			"!reactions: {a: {reaction: {jobs: [{name: x}], conditions: {success: {condition: 'true'}}}}}", "!reactions: {a: {reaction: {jobs: [{name: x}], conditions: {when: {condition: 'true', retry: {limit: 3}}}}}}",
			"!reactions: {a: {reaction: {jobs: [{name: x}]}, triggerLimiter: {waitForMore: {max: 1h}}}}", "!reactions: {a: {reaction: {jobs: [{name: x}]}, triggerLimiter: {window: soon}}}",
		},
		"reaction-jobs": {"jobs: {'*': [{name: a, conditions: {when: {condition: 'true', retry: {limit: 20}}}}]}", "!steps: []", "!jobs: [{name: a}]"},
		"vars":          {"a: {b: [1, 2]}", "", "metadata: {name: x}\nspec: {variables: {a: 1}}", "![a]"},
		"macros": {
			"a: {template.expression: [{content: x}], params: [b]}", "a: {action: cmd.run, parameters: {cmd: uptime}}", "metadata: {name: x}",
			"!a: {action: cmd.run, parameters: {cmdd: uptime}}", "!a: {template.expression: {content: x}, param: [b]}", "!a: x",
		},
		"jobs": {
			step("action: file.managed, parameters: {name: /a, mode: 0644, template: '{{ x }}', require: [b, {file: /c}]}"),
			step("action: file.managed, parameters: [{name: /a}, {mode: '0644'}, {require: {file: /b}}]"),
			step("spec: {action: time.sleep, parameters: {time: 1w2d}, sensitive: yes}"),
			step("action: time.sleep, parameters: {time: '{{ vars.drain }}'}, runOptions: {runs: onUpdate, timeout: 0}"),
			step("action: cmd.run, parameters: {cmd: x}, runOptions: {failureClass: host}"), step("action: cmd.run, parameters: {cmd: x}, runOptions: {failureClass: {'75': host, '1': commit}}"),
			"!" + step("action: cmd.run, parameters: {cmd: x}, runOptions: {failureClass: mine}"), "!" + step("action: cmd.run, parameters: {cmd: x}, runOptions: {failureClass: {'0': host}}"),
			step("action: cmd.run, parameters: {cmd: [a, b], timeout: 1h30m}, forEach: [1, {a: b}], conditions: {when: {condition: 'true', retry: {limit: 3, interval: 1.5s}}}"),
			step("action: cmd.run, forEach: vars.all, use: [b]"),
			step("action: file.managed, parameters: {use: {step: b}}"),
			"defaults: {file.managed: {name: /a}}\n" + step("action: file.managed"),
			"spec: {defaults: {file.managed: {name: /a}}, " + step("action: file.managed") + "}",
			"steps: [{name: a, action: file.managed}, {name: b, action: file.managed, parameters: {name: /b}, use_in: [a]}]",
			"steps: [{name: a, action: file.managed}, {name: b, spec: {action: file.managed, parameters: [{name: /b}, {use_in: a}]}}]",
			"spec: {steps: [{name: a, action: file.managed}, {name: b, action: file.managed, parameters: {name: /b, use_in: a}}]}",
			"!steps: [{name: a, action: file.managed}, {name: b, action: file.managed, parameters: {name: /b}, require_in: [a]}]",
			"include: [a]\nspec: {" + step("action: cmd.run, parameters: {cmd: x}") + "}",
			"!" + step("action: file.managed"), "!" + step("action: file.managed, parameters: {mode: 0644}"), "!" + step("action: file.managed, parameters: [{mode: 0644}]"),
			"!" + step("action: file.managed, parameters: {name: /a, mod: 0644}"), "!" + step("action: file.managed, parameters: [{name: /a}, {mod: 0644}]"),
			"!" + step("action: file.manged, parameters: {name: /a}"), "!" + step("parameters: {name: /a}"),
			"!" + step("action: file.managed, parameters: {name: /a, backup: perhaps}"), "!" + step("action: time.sleep, parameters: {time: 5}"),
			"!" + step("action: time.sleep, parameters: {time: soon}"), "!" + step("action: cmd.run, parameters: {cmd: x}, runOptions: {runs: sometimes}"),
			"!" + step("spec: {action: cmd.run}"), "!" + step("action: cmd.run, parameters: {cmd: x}, conditions: {when: {retry: {}}}"),
			"!steps: {a: b}", "!include: [a]", "!spec: {" + step("action: cmd.run") + "}", "!defaults: {file.managed: {mod: 1}}\nsteps: []",
		},
		"extensions": {
			"name: a.b\nfile: c\ndigest: sha256:0", "metadata: {name: x}\nspec: {name: a.b, url: c, digest: d, check: no, timeout: 1m, interpreter: [sh, -e], parameters: {}}",
			"!file: c\ndigest: d", "!name: a.b\nurl: c\ndatastore: perhaps", "name: a.b\ndatastore: true\nsignature: c.sig\nversion: 1.10", "!name: a.b\ndigest: c\nparam: {}", "!name: a.b\ndigest: c\ntimeout: soon", "!name: a.b\ndigest: c\ncheck: '{{ x }}'",
		},
		"config": {
			"repositories: [{name: main, url: /a, ref: main, auth: {sshKey: /k}}]\nagent: {splay: 30s}\nnode: {labels: {role: web}}", "etcd: {endpoints: https://a}",
			"!repository: []", "!agent: {splay: 30}", "!agent: {splay: '{{ 1 }}'}", "!etcd: {tls: {cacert: x}}",
			"agent: {allowRun: true}", "agent: {allowRun: no}", "agent: {allowRun: []}", "agent: {allowRun: [operators, alice]}", "agent: {allowRun: }",
			"!agent: {allowRun: alice}", "!agent: {allowRun: {alice: true}}", "!agent: {allowRun: [[alice]]}",
		},
	} {
		for _, text := range texts {
			text, wrong := strings.CutPrefix(text, "!")
			switch err := c.check(kind, text); {
			case wrong && err == nil:
				t.Errorf("%s: the schema accepts %s", kind, text)
			case !wrong && err != nil:
				t.Errorf("%s: %s: %v", kind, text, err)
			}
		}
	}
}
