package extension_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/apply/action/actiontest"
	"github.com/pullet/pullet/apply/action/extension"
	"github.com/pullet/pullet/render"
)

const script = "#!/bin/sh\necho '{}'\n"

// manifest is one that is right, with lines replaced or added.
func manifest(lines map[string]string) string {
	all := map[string]string{"name": "acme.it", "file": "it", "digest": digestOf(script)}
	maps.Copy(all, lines)
	var out string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if all[key] != "" {
			out += key + ": " + all[key] + "\n"
		}
	}
	return out
}

type lines = map[string]string

// TestBadManifests: what is wrong with a manifest is found before any host is touched, at its place.
func TestBadManifests(t *testing.T) {
	wrong := "sha256:" + strings.Repeat("0", 64)
	schema := func(text string) string { return manifest(lines{"parameters": text}) }
	for text, want := range map[string]string{
		"":                               "extensions/it.yaml: the manifest is empty (pullet explain extensions lists what it says)",
		"- a":                            "extensions/it.yaml:1:1: expected a map, found a list",
		manifest(lines{"name": ""}):      `extensions/it.yaml:1:1: "name" is missing`,
		manifest(lines{"digest": ""}):    `extensions/it.yaml:1:1: one of "digest" and "signature" is missing: which executable is meant (print the right one with: sha256sum extensions/it)`,
		manifest(lines{"name": "it"}):    `extensions/it.yaml:3:7: name: "it" is not the name of an action: two words with a dot between them`,
		manifest(lines{"name": "a.b.c"}): `extensions/it.yaml:3:7: name: "a.b.c" is not the name of an action`,
		manifest(lines{"name": "file.managed"}): `extensions/it.yaml:3:7: name: file is a module of pullet's own, and "file.managed" would take a name in it ` +
			`(take a word of yours, such as acme.managed)`,
		manifest(lines{"name": "cmd.own"}):                                                     `extensions/it.yaml:3:7: name: cmd is a module of pullet's own`,
		manifest(lines{"digset": "x"}):                                                         `extensions/it.yaml:2:1: unknown field "digset" (did you mean "digest"?)`,
		manifest(lines{"digest": "sha256:abc"}):                                                `extensions/it.yaml:1:9: digest: expected sha256: and 64 hexadecimal digits, found "sha256:abc" (print the right one with: sha256sum extensions/it)`,
		manifest(lines{"digest": wrong}):                                                       "extensions/it.yaml:1:9: digest: extensions/it has " + digestOf(script) + ", and the manifest wants " + wrong + " (print the right one with: sha256sum extensions/it)",
		manifest(lines{"file": "its"}):                                                         `extensions/it.yaml:2:7: file: there is no extensions/its in the repository (did you mean "it"?)`,
		manifest(lines{"file": "../base/jobs.yaml"}):                                           `extensions/it.yaml:2:7: file: "../base/jobs.yaml" leads out of extensions/`,
		manifest(lines{"file": ""}):                                                            `extensions/it.yaml:1:1: one of "file", "url" and "datastore" is missing`,
		manifest(lines{"url": "https://example.org/it"}):                                       "extensions/it.yaml:4:6: url: file and url exclude each other",
		manifest(lines{"file": "", "url": "ftp://x/it"}):                                       "extensions/it.yaml:3:6: url: expected an address that begins with https:// or http://",
		manifest(lines{"file": "", "url": "https://"}):                                         "extensions/it.yaml:3:6: url: expected an address",
		manifest(lines{"file": "", "url": "http://a:b@c"}):                                     "extensions/it.yaml:3:6: url: a password does not belong into a repository",
		manifest(lines{"file": "", "url": "https://example.org/it", "datastore": "true"}):      "extensions/it.yaml:1:12: datastore: file, url and datastore exclude each other",
		manifest(lines{"datastore": "true"}):                                                   "extensions/it.yaml:1:12: datastore: file, url and datastore exclude each other",
		manifest(lines{"file": "", "datastore": "true", "digest": ""}):                         `extensions/it.yaml:1:1: one of "digest" and "signature" is missing: which executable is meant (print the right one with: pullet extension list)`,
		manifest(lines{"version": "4"}):                                                        `extensions/it.yaml:4:10: version: it goes with "signature": a digest is one version already`,
		manifest(lines{"signature": "it.sig"}):                                                 `extensions/it.yaml:4:12: "version" is missing: the least one that hosts take, such as 1`,
		manifest(lines{"signature": "it", "version": "4"}):                                     `extensions/it.yaml:4:12: signature: "it" does not end with NAME.sig: the text that is signed is in NAME, beside it`,
		manifest(lines{"signature": ".sig", "version": "4"}):                                   `extensions/it.yaml:4:12: signature: ".sig" does not end with NAME.sig`,
		manifest(lines{"signature": "../it.sig", "version": "4"}):                              `extensions/it.yaml:4:12: signature: "../it.sig" leads out of extensions/`,
		manifest(lines{"signature": "https://example.org/it?x=.sig", "version": "4"}):          `extensions/it.yaml:4:12: signature: "https://example.org/it?x=.sig" does not end with NAME.sig`,
		manifest(lines{"signature": "ftp://example.org/it.sig", "version": "4"}):               `extensions/it.yaml:4:12: signature: expected an address that begins with https:// or http://`,
		manifest(lines{"signature": "https://a:b@example.org/it.sig", "version": "4"}):         `extensions/it.yaml:4:12: signature: a password does not belong into a repository`,
		manifest(lines{"signature": "https://example.org/it.sig", "version": "v4"}):            `extensions/it.yaml:5:10: version: "v4" is not a version: write up to four numbers with dots between them, such as 4 or 1.10.2`,
		manifest(lines{"signature": "its.sig", "version": "4"}):                                `extensions/it.yaml:4:12: signature: there is no extensions/its in the repository (write into it, in one line: acme.it 4 sha256:DIGEST)`,
		manifest(lines{"signature": "it.sig", "version": "4"}):                                 `extensions/it.yaml:4:12: signature: there is no extensions/it.sig in the repository (make it with: ssh-keygen -Y sign -n pullet-extension -f KEY extensions/it)`,
		manifest(lines{"check": "maybe"}):                                                      `extensions/it.yaml:1:8: check: expected true or false, found "maybe"`,
		manifest(lines{"timeout": "soon"}):                                                     `extensions/it.yaml:4:10: "soon" is not a duration`,
		manifest(lines{"interpreter": "['']"}):                                                 "extensions/it.yaml:3:14: interpreter: the program is missing",
		"metadata: {name: it}\nspec: {name: it, file: it, digest: '" + digestOf(script) + "'}": `extensions/it.yaml:2:14: name: "it" is not the name`,
		schema("[a]"):                                                                        "extensions/it.yaml:4:13: parameters: expected a JSON Schema, found a list",
		schema("{type: array}"):                                                              "extensions/it.yaml:4:20: parameters: expected type: object, found array: parameters are a map",
		schema("{type: objekt}"):                                                             "extensions/it.yaml:4:20: parameters: expected type: object, found objekt",
		schema("{propertes: {}}"):                                                            `extensions/it.yaml:4:14: parameters: JSON Schema has no keyword "propertes" (did you mean "properties"? What is yours begins with x-)`,
		schema("{properties: {a: {minimun: 1}}}"):                                            `extensions/it.yaml:4:31: parameters: JSON Schema has no keyword "minimun" (did you mean "minimum"?`,
		schema("{properties: {a: {type: strin}}}"):                                           "extensions/it.yaml:4:37: parameters: no valid JSON Schema: properties.a.type: none of the forms fits: ",
		schema("{properties: {a: {minimum: x}}}"):                                            "extensions/it.yaml:4:40: parameters: no valid JSON Schema: properties.a.minimum: expected a number, found a text",
		schema("{properties: {a: {required: true}}}"):                                        "extensions/it.yaml:4:41: parameters: no valid JSON Schema: properties.a.required: expected a list, found true or false",
		schema("{properties: {a: {pattern: '('}}}"):                                          "extensions/it.yaml:4:40: parameters: ",
		schema("{properties: {a: {pattern: '" + strings.Repeat("a", 1001) + "'}}}"):          "extensions/it.yaml:4:40: parameters: no valid JSON Schema: properties.a.pattern: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa... is no regex: the regular expression is longer than 1000 bytes",
		schema("{properties: {a: {$ref: 'https://example.org/x'}}}"):                         `extensions/it.yaml:4:37: parameters: $ref: "https://example.org/x" leads out of the manifest: a reference begins with #`,
		schema("{properties: {a: {$ref: '#/$defs/d0'}}, $defs: {" + doublingRefs(20) + "}}"): "extensions/it.yaml:4:13: parameters: no valid JSON Schema: with its references followed it has more than 20000 parts",
		schema("{properties: {a: {$ref: '#/$defs/b'}}}"):                                     "extensions/it.yaml:4:13: parameters: no valid JSON Schema: ",
		schema("{$schema: 'http://json-schema.org/draft-07/schema#'}"):                       "extensions/it.yaml:4:23: parameters: expected a schema of the draft https://json-schema.org/draft/2020-12/schema, found",
		schema("{properties: {a: {type: integer, default: x}}}"):                             `extensions/it.yaml:4:55: the default of "a" is not what its schema allows: expected a whole number, found a text`,
		schema("{maximum: .nan}"):                                                            "extensions/it.yaml:4:13: parameters: no valid JSON Schema: ",
	} {
		files := fstest.MapFS{"extensions/it": {Data: []byte(script)}, "extensions/it.yaml": {Data: []byte(text)}}
		_, errs := extension.Load(render.Open(render.Layer{Name: "main", FS: files}), action.All())
		if len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), want) {
			t.Errorf("%.80s\n got %.300v\nwant %s", text, errs, want)
		}
		if len(errs) > 1 {
			t.Errorf("%.80s: %d mistakes, want 1: %v", text, len(errs), errs)
		}
	}
}

// parameters is a schema with something of everything.
const parameters = `parameters:
  type: object
  required: [name]
  properties:
    name: {type: string, minLength: 2}
    port: {type: integer, minimum: 1, maximum: 65535}
    mode: {enum: [fast, slow], default: slow}
    when: {type: [string, 'null'], format: date}
    ports: {type: array, items: {type: object, required: [number], additionalProperties: false, properties: {number: {type: integer}}}}
    either: {anyOf: [{type: integer}, {type: string, pattern: '^auto$'}]}
    one: {oneOf: [{minimum: 1}, {minimum: 2}]}
    on: {type: boolean}
    never: false
`

// TestBadExtensionParameters: a step's parameters are held against the schema when it is bound, with their places.
func TestBadExtensionParameters(t *testing.T) {
	files := brings(script, parameters)
	for params, want := range map[string]string{
		"{}":                                                `jobs/a.yaml:2:3: parameters: "name" is missing`,
		"{name: }":                                          `jobs/a.yaml:2:3: parameters: "name" is missing`,
		"{name: x}":                                         "jobs/a.yaml:4:22: name: expected at least 2 characters, found 1",
		"{nam: xy, name: xy}":                               `jobs/a.yaml:4:16: parameters: unknown field "nam" (did you mean "name"?)`,
		"{name: xy, xyzzy: 1}":                              `jobs/a.yaml:4:26: parameters: unknown field "xyzzy" (known: either, mode, name, never, on, one, port, ports, when)`,
		"{name: xy, port: 0}":                               "jobs/a.yaml:4:32: port: expected at least 1, found 0",
		"{name: xy, port: high}":                            "jobs/a.yaml:4:32: port: expected a whole number, found a text",
		"{name: xy, port: 1.5}":                             "jobs/a.yaml:4:32: port: expected a whole number, found a number",
		"{name: {a: b}}":                                    "jobs/a.yaml:4:22: name: expected a text, found a map",
		"{name: xy, mode: best}":                            "jobs/a.yaml:4:32: mode: expected \"fast\" or \"slow\", found \"best\"",
		"{name: xy, when: soon}":                            "jobs/a.yaml:4:32: when: \"soon\" is no date: ",
		"{name: xy, on: maybe}":                             "jobs/a.yaml:4:30: on: expected true or false, found a text",
		"{name: xy, ports: [{}]}":                           `jobs/a.yaml:4:34: ports[0]: "number" is missing`,
		"{name: xy, either: nope}":                          "jobs/a.yaml:4:34: either: none of the forms fits: \"nope\" does not match ^auto$; or expected a whole number, found a text",
		"{name: xy, one: 5}":                                "jobs/a.yaml:4:31: one: more than one of the forms fits, and only one may",
		"{name: xy, never: 1}":                              "jobs/a.yaml:4:33: never: nothing is allowed here",
		"{name: xy, port: .nan}":                            "jobs/a.yaml:2:3: parameters: json: unsupported value: NaN",
		"[{name: xy}, {port: high}]":                        "jobs/a.yaml:4:35: port: expected a whole number, found a text",
		"{name: xy, ports: [{number: 1}, {number: x}]}":     "jobs/a.yaml:4:56: ports[1].number: expected a whole number, found a text",
		"{name: xy, ports: [{number: 1, nmuber: 2}]}":       `jobs/a.yaml:4:46: ports[0]: unknown field "nmuber"`,
		"{port: high, name: '{{ (step `other`).StdOut }}'}": "jobs/a.yaml:4:22: port: expected a whole number, found a text",
		"{nam: 1, name: '{{ (step `other`).StdOut }}'}":     `jobs/a.yaml:4:16: parameters: unknown field "nam" (did you mean "name"?)`,
		"{port: '{{ (step `other`).StdOut }}'}":             `jobs/a.yaml:2:3: parameters: "name" is missing`,
	} {
		text := fmt.Sprintf("steps:\n- name: it\n  action: acme.it\n  parameters: %s\n- name: other\n  action: cmd.run\n  parameters: {cmd: x}\n  require_in: [it]\n", params)
		_, err := bindLayers(actiontest.New(t), jobs(files, text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Count(err.Error(), "jobs/a.yaml") != 1 {
			t.Errorf("%s\n got %v\nwant %s", params, err, want)
		}
	}
}

// TestExtensionParameters that are right.
func TestExtensionParameters(t *testing.T) {
	for _, params := range []string{
		"{name: xy}", "{name: 12, port: '80', on: 'off', mode: fast, when: 2024-01-31}", "{name: xy, port: , either: auto, one: 1}",
		"{name: xy, port: '{{ (step `other`).StdOut }}', ports: [{number: 1}]}", "{name: '{{ (step `other`).StdOut }}', mode: '{{ (step `other`).StdOut }}'}",
	} {
		text := fmt.Sprintf("steps:\n- name: other\n  action: cmd.run\n  parameters: {cmd: x}\n- name: it\n  action: acme.it\n  parameters: %s\n", params)
		if _, err := bindLayers(actiontest.New(t), jobs(brings(script, parameters), text)); err != nil {
			t.Errorf("%s: %v", params, err)
		}
	}
}

// TestOpenSchema: one that says what becomes of other parameters is left as it is, and branches are followed.
func TestOpenSchema(t *testing.T) {
	branches := "{properties: {kind: {}}, if: {properties: {kind: {const: a}}}, then: {required: [x], properties: {x: {}}}, else: {properties: {y: {}}}}"
	for _, c := range []struct{ schema, params, want string }{
		{"", "{}", ""},
		{"", "{a: 1}", `unknown field "a"`},
		{"{additionalProperties: true}", "{a: 1}", ""},
		{"{unevaluatedProperties: true}", "{a: 1}", ""},
		{"{patternProperties: {^x: {type: integer}}}", "{x1: 1}", ""},
		{"{patternProperties: {^x: {type: integer}}}", "{y1: 1}", `unknown field "y1"`},
		{"{$ref: '#/$defs/a', $defs: {a: {properties: {a: {}}}}}", "{a: 1}", ""},
		{"{allOf: [{properties: {a: {}}}]}", "{b: 1}", `unknown field "b"`},
		{"{allOf: [{properties: {a: {type: integer}}}]}", "{a: x}", "a: expected a whole number"},
		{branches, "{kind: a, x: 1}", ""},
		{branches, "{kind: b, y: 1}", ""},
		{branches, "{kind: a, y: 1}", `"x" is missing`},
		{branches, "{kind: b, x: 1}", `unknown field "x"`},
		{branches, "{kind: '{{ (step `other`).StdOut }}', x: 1}", ""},
	} {
		more := ""
		if c.schema != "" {
			more = "parameters: " + c.schema + "\n"
		}
		text := fmt.Sprintf("steps:\n- name: other\n  action: cmd.run\n  parameters: {cmd: x}\n- name: it\n  action: acme.it\n  parameters: %s\n", c.params)
		_, err := bindLayers(actiontest.New(t), jobs(brings(script, more), text))
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "jobs/a.yaml") != 1) {
			t.Errorf("%s %s: %v, want %q", c.schema, c.params, err, c.want)
		}
	}
}

// TestLateParameters: what another step returned is held against the schema when the step runs.
func TestLateParameters(t *testing.T) {
	told := "#!/bin/sh\ncat >\"$PULLET_ROOT/told\"\necho '{}'\n"
	for printed, want := range map[string]string{"8080": "", "many": "port: expected a whole number, found a text", "70000": "port: expected at most 65535, found 70000"} {
		s := actiontest.New(t)
		text := "steps:\n- name: other\n  action: cmd.run\n  parameters: {cmd: printf " + printed + "}\n" +
			"- name: it\n  action: acme.it\n  parameters: {name: xy, port: '{{ (step `other`).StdOut }}'}\n"
		r := s.RunAll(t.Context(), mustBindLayers(s, jobs(brings(told, parameters), text)))
		last := r.Steps[1]
		if (last.Outcome == apply.OK) != (want == "") || !strings.Contains(last.Reason, want) {
			t.Errorf("%s: %s %q, want %q", printed, last.Outcome, last.Reason, want)
		}
		if want == "" && !strings.Contains(s.Read("told"), `"parameters":{"mode":"slow","name":"xy","port":8080}`) {
			t.Errorf("it was told %s", s.Read("told"))
		}
	}
}

// TestSeveralRepositories: of two extensions of a name the last repository's counts, and of two files of a path; in one
// repository it is a mistake.
func TestSeveralRepositories(t *testing.T) {
	says := func(word string) string { return answering(`printf '{"change": "`+word+`"}'`, "") }
	first := job(brings(says("first"), ""), "acme.it", "{}")
	same := brings(says("second"), "")
	other := fstest.MapFS{"extensions/o": same["extensions/it"], "extensions/o.yaml": {Data: []byte("name: acme.it\nfile: o\ndigest: " + digestOf(says("second")) + "\n")}}
	onlyManifest := fstest.MapFS{"extensions/it.yaml": {Data: []byte("name: acme.it\nfile: it\npassive: true\ndigest: " + digestOf(says("first")) + "\n")}}
	s := actiontest.New(t)
	for _, c := range []struct {
		name string
		fs   fstest.MapFS
		want string
	}{{"the same path", same, "second"}, {"another path", other, "second"}, {"only its manifest", onlyManifest, "first"}} {
		if r := s.Plan(mustBindLayers(s, first, c.fs)); r.Summary != c.want {
			t.Errorf("%s: %q %s, want %s", c.name, r.Summary, r.Reason, c.want)
		}
	}
	both := job(brings(says("first"), ""), "acme.it", "{}")
	maps.Copy(both, other)
	if _, err := bindLayers(s, both); err == nil || !strings.HasPrefix(err.Error(), `extensions/o.yaml:1:7: there are two actions "acme.it": the other is in extensions/it.yaml`) {
		t.Error(err)
	}
	if _, err := bindLayers(s, first, fstest.MapFS{"extensions/it": same["extensions/it"]}); err == nil || !strings.Contains(err.Error(), "repo1:extensions/it.yaml:3:9: digest: extensions/it has "+digestOf(says("second"))) {
		t.Error(err)
	}
}

// TestUnknownAction: extensions are among the names that are suggested.
func TestUnknownAction(t *testing.T) {
	_, err := bindLayers(actiontest.New(t), job(brings(script, ""), "acme.ti", "{}"))
	if err == nil || !strings.Contains(err.Error(), `there is no action "acme.ti" (did you mean "acme.it"?)`) {
		t.Error(err)
	}
}

// doublingRefs are definitions each of which refers to the next one twice.
func doublingRefs(depth int) string {
	out := fmt.Sprintf("d%d: {type: string}", depth)
	for i := range depth {
		out += fmt.Sprintf(", d%d: {allOf: [{$ref: '#/$defs/d%d'}, {$ref: '#/$defs/d%d'}]}", i, i+1, i+1)
	}
	return out
}
