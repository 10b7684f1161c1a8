package render

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// hostile are texts that would be something else if YAML, a template or pullet's own marks read them.
var hostile = []string{
	"x\n- name: evil\n  action: cmd.run\n  parameters: {cmd: evil}\n", "x\nevil: 1", `", evil: "`, `', evil: '`, ": ", "a: b", "# x", "x # y", "'", `"`, "*a", "&a",
	"!!binary x", "!evil", "---", "---\n- evil", "...", "{", "[", "}", "]", "{a: b}", "[a, b]", "- x", "? x", "|", ">", "%YAML 1.1", "@x", "`x`", "<<", "~", "null", " x ",
	"{{ vars.secret }}", "\uE000", "\uE000f0\uE001", "\uE0000\uE001", "\uE000\uE001", "\uE002", "\xff0\xfe", "\\", `\n`, "\t", "\r\n", "\u2028", "\x00", strings.Repeat("x\n", 5000),
}

// of is an input in which every text that others choose is this one.
func of(text string) Input {
	return Input{
		Node:  Node{Name: "web1", Labels: map[string]string{"role": "web", "site": text}},
		Facts: Facts{"os": "debian", "fqdn": text, "nested": map[string]any{"list": []any{text, 7}, text: "of a key"}, "address": text},
		View: View{
			Nodes: map[string]Node{text: {Name: text, Labels: map[string]string{"role": "db", "site": text}}},
			Facts: map[string]Facts{text: {"fqdn": text}},
			Services: map[string][]Service{"db": {{Name: "db", Node: text, Address: text, Port: 5432, Tags: []string{text},
				Addresses: map[string]any{text: []any{text}}}}},
		},
	}
}

// foreignRoots are the ways in which templates read such a text.
var foreignRoots = []string{
	"server.fqdn", "server.labels.site", "server.Spec.FQDN", "server.ObjectMetadata.Labels.site", "index server.nested.list 0", "first server.nested.list",
	"dig `labels` `site` `` server", "get server `fqdn`", "(index (services `db`) 0).address", "(index (services `db`) 0).node", "index (first (services `db`)).tags 0",
	"range $name, $addresses := (index (services `db`) 0).addresses }}{{ $name }}{{ end", "range $name, $facts := servervars }}{{ $name }}{{ end",
	"range servervars }}{{ .labels.site }}{{ end", "index (pullet.servers `role=db`) 0", "pullet.servers `role=db` | join ` `", "keys servervars | first",
	"with server.fqdn }}{{ . }}{{ end", "macro `fqdn`", "macro `echo` server.fqdn", "vars.fqdn", "vars.nested.fqdn", "range vars.list }}{{ . }}{{ end",
	"printf `%s` server.fqdn", "print server.fqdn", "cat server.fqdn | trimPrefix `never`", "server.fqdn | toString", "or server.fqdn ``", "index (splitList `never` server.fqdn) 0",
	"define `t` }}{{ . }}{{ end }}{{ template `t` server.fqdn", "$x := server.fqdn }}{{ $x", "b64enc server.fqdn | b64dec", "list server.fqdn | last", "(dict `k` server.fqdn).k",
	"tuple server.fqdn | join ``", "index (merge (dict) (dict `a` server.fqdn)) `a`", "ternary server.fqdn `` true", "coalesce server.fqdn ``",
	"regexReplaceAll `never` server.fqdn `x`", "server.fqdn | replace `never` `x`", "toJson server.fqdn | fromJson",
}

// styles are the ways in which YAML writes a scalar; %s is the text.
var styles = map[string]string{
	"plain": "%s", "single": "'%s'", "double": `"%s"`, "literal": "|-\n      %s", "folded": ">-\n      %s", "between": "'<%s>'", "plain between": "<%s>",
}

// shapeOf is a tree without its texts.
func shapeOf(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode {
		return "."
	}
	var below []string
	for _, c := range n.Content {
		below = append(below, shapeOf(resolve(c)))
	}
	if n.Kind == yaml.MappingNode { // an encoder sorts keys
		slices.Sort(below)
	}
	return fmt.Sprint(n.Kind, "(", strings.Join(below, ""), ")")
}

func opaqueRepo(more map[string]string) map[string]string {
	files := map[string]string{
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "base/vars.yaml": "files: {'*': [{name: v}]}\n", "base/macros.yaml": "macros: {'*': [{name: m}]}\n",
		"vars/v.yaml":   "fqdn: '{{ server.fqdn }}'\nnested: {fqdn: '{{ server.fqdn }}'}\nlist: ['{{ server.fqdn }}']\nsecret: no\n",
		"macros/m.yaml": "fqdn: {template.expression: [{content: '{{ server.fqdn }}'}]}\necho: {template.expression: [{content: '{{ .what }}'}], params: [what]}\n",
	}
	maps.Copy(files, more)
	return files
}

// TestForeignTextsAreText puts hostile texts into every root, every style of scalar and every way to read them: the
// steps are those that a harmless text gives, and the value is the text.
func TestForeignTextsAreText(t *testing.T) {
	for style, scalar := range styles {
		for n, root := range foreignRoots {
			action := "{{ " + root + " }}"
			if style == "double" {
				action = strings.ReplaceAll(action, `"`, "`")
			}
			job := "steps:\n- name: one\n  action: x\n  parameters:\n    before: 1\n    value: " + fmt.Sprintf(scalar, action) + "\n    after: 2\n- {name: two, action: x}\n"
			r := repo(opaqueRepo(map[string]string{"jobs/a.yaml": job}))
			for i, text := range hostile {
				if testing.Short() && (i+n)%8 != 0 { // every text, every root and every style, but not each with each
					continue
				}
				checkText(t, r, style+" "+root, text)
			}
		}
	}
}

func checkText(t *testing.T, r *Repository, what, text string) {
	t.Helper()
	cat, err := r.Compile(of(text))
	if err != nil {
		t.Errorf("%s: %.40q: %v", what, text, err)
		return
	}
	steps := cat.Jobs[0].Steps
	if len(steps) != 2 || steps[0].Name != "one" || steps[1].Name != "two" {
		t.Errorf("%s: %.40q made steps: %v", what, text, steps)
		return
	}
	want := strings.ToValidUTF8(text, "\uFFFD")
	if strings.Contains(what, "macro") { // it is what its text gives, without the blanks around it
		want = strings.TrimSpace(want)
	}
	if strings.HasPrefix(what, "between") || strings.HasPrefix(what, "plain between") {
		want = "<" + want + ">"
	}
	got := steps[0].Params.Value()
	if len(got) != 3 || got["before"] != 1 || got["after"] != 2 {
		t.Errorf("%s: %.40q made parameters: %.200v", what, text, got)
	}
	if got["value"] != want {
		t.Errorf("%s: got %.80q, want %.80q", what, got["value"], want)
	}
}

// TestForeignTextsEverywhere puts hostile texts into every file that is a template, as keys, names, paths, items and
// values.
func TestForeignTextsEverywhere(t *testing.T) {
	step := "steps:\n- {name: one, action: x, parameters: {v: 1}}\n"
	for name, files := range map[string]map[string]string{
		"step name":          {"jobs/a.yaml": "steps:\n- {name: {{ server.fqdn }}, action: x}\n- {name: two, action: x}\n"},
		"action":             {"jobs/a.yaml": "steps:\n- {name: one, action: '{{ server.fqdn }}'}\n- {name: two, action: x}\n"},
		"key of vars":        {"vars/v.yaml": "{{ server.fqdn }}: 1\nfqdn: a\nlist: []\n'x{{ server.fqdn }}': {b: 2}\n", "jobs/a.yaml": "steps:\n{{ range $k, $v := vars }}- {name: {{ $k }}, action: x, parameters: {k: {{ $k }}, v: {{ toJson $v }}}}\n{{ end }}"},
		"vars":               {"vars/v.yaml": "all: {{ toJson server.nested }}\nmore:\n  {{ toYaml server.nested | nindent 2 }}\n", "jobs/a.yaml": "steps:\n- name: one\n  action: x\n  parameters:\n    a: {{ toJson vars }}\n    b:\n{{ toYaml vars | indent 6 }}\n"},
		"paths of vars":      {"base/vars.yaml": "files: {'*': [{name: v, paths: ['{{ server.fqdn }}.yaml', 'v.yaml']}]}\n", "jobs/a.yaml": step},
		"path of vars alone": {"base/vars.yaml": "files:\n  '*':\n  - name: v\n    paths:\n    - {{ server.fqdn }}\n    - v\n", "jobs/a.yaml": step},
		"base/jobs.yaml":     {"base/jobs.yaml": "# {{ server.fqdn }}\njobs:\n  '*':\n  - name: a\n", "jobs/a.yaml": step},
		"metadata":           {"jobs/a.yaml": "metadata: {name: {{ server.fqdn }}, annotations: {a: {{ server.fqdn }}}}\nspec:\n  " + strings.ReplaceAll(step, "\n", "\n  ") + "\n"},
		"services":           {"base/services.yaml": "services:\n  '*':\n  - name: db\n    check: {cmd: 'x {{ server.fqdn }}'}\n", "jobs/a.yaml": step},
		"loop":               {"jobs/a.yaml": "steps:\n{{ range services `db` }}- {name: one, action: x, parameters: {a: {{ .address }}, p: {{ .port }}, t: [{{ join `,` .tags }}]}}\n{{ end }}"},
		"condition":          {"jobs/a.yaml": "{{ if server.fqdn }}{{ end }}" + step + "{{ if eq server.fqdn `safe` }}{{ else }}{{ end }}"},
		"literal list":       {"jobs/a.yaml": "steps:\n- name: one\n  forEach: [{{ server.fqdn }}, b]\n  action: x\n  parameters: {a: {{ item }}, b: 'x{{ item }}'}\n"},
		"forEach":            {"jobs/a.yaml": "steps:\n- name: one\n  forEach: services('db')\n  action: x\n  parameters: {a: {{ item.address }}, b: 'x{{ item.node }}', c: {{ toJson item }}, d: {{ printf `%s` item.address }}}\n"},
		"forEach over vars":  {"jobs/a.yaml": "steps:\n- name: one\n  forEach: vars.list\n  action: x\n  parameters: {a: {{ item }}, b: {{ toString item }}}\n"},
		"forEach over facts": {"jobs/a.yaml": "steps:\n- name: one\n  forEach: entries(services('db')[0].addresses)\n  action: x\n  parameters:\n    a: {{ item.key }}\n    b: |\n      {{ range item.value }}\n      {{ . }}\n      {{ end }}\n"},
		"quoted":             {"jobs/a.yaml": "steps:\n- name: one\n  action: x\n  parameters: {a: {{ server.fqdn | quote }}, b: {{ squote server.fqdn }}, c: {{ toJson server.nested }}, d: {{ toYaml server.fqdn }}}\n"},
		"comment":            {"jobs/a.yaml": step + "# {{ server.fqdn }}\n"},
		"separator":          {"jobs/a.yaml": "---\n" + step},
		"with a mark":        {"jobs/a.yaml": "steps:\n- {name: t, action: x}\n- name: one\n  action: x\n  parameters: {a: 'x {{ server.fqdn }} {{ (step `t`).StdOut }}'}\n"},
		"list in a list":     {"jobs/a.yaml": "steps:\n- name: one\n  action: x\n  parameters:\n    a:\n    - {{ server.fqdn }}\n    - - {{ server.fqdn }}\n      - b: {{ server.fqdn }}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			want := ""
			for i, text := range append([]string{"safe"}, hostile...) {
				cat, err := repo(opaqueRepo(files)).Compile(of(text))
				if err != nil {
					t.Errorf("%.40q: %v", text, err)
					continue
				}
				got := catalogShape(cat, text)
				if i == 0 {
					want = got
				}
				if got != want {
					t.Errorf("%.40q:\ngot  %.400s\nwant %.400s", text, got, want)
				}
			}
		})
	}
}

// catalogShape is what a catalog holds, with TEXT where the text stands.
func catalogShape(c *Catalog, text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	scrub := func(v any) string { return strings.ReplaceAll(fmt.Sprintf("%v", scrubbed(v, text)), "\n", " ") }
	var out []string
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			out = append(out, shapeOf(s.Params.node()), scrub([]any{s.Name == text, s.Action, s.Params.Value()}))
		}
	}
	for _, o := range c.Offers() {
		out = append(out, fmt.Sprint(o.Name, o.Check.Cmd == "x "+text))
	}
	slices.Sort(out)
	return strings.Join(append(out, fmt.Sprint(len(c.Vars))), "\n")
}

// scrubbed is a value with TEXT where the text stands.
func scrubbed(v any, text string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, text, "TEXT")
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = scrubbed(v[i], text)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			out[strings.ReplaceAll(key, text, "TEXT")] = scrubbed(value, text)
		}
		return out
	}
	return v
}

// TestForeignValues shows what becomes of opaque texts that encoders write, and of numbers.
func TestForeignValues(t *testing.T) {
	const bad = "a\"b: c\n- d"
	job := func(value string) map[string]string {
		return opaqueRepo(map[string]string{"jobs/a.yaml": "steps:\n- name: one\n  action: x\n  parameters:\n    value: " + value + "\n"})
	}
	for value, want := range map[string]any{
		"{{ quote server.fqdn }}": bad, "{{ toJson server.fqdn }}": bad, "{{ toYaml server.fqdn }}": bad, "'{{ quote server.fqdn }}'": `"a\"b: c\n- d"`,
		"{{ toJson server.nested.list }}": []any{bad, 7}, "{{ dict `k` server.fqdn | toJson }}": map[string]any{"k": bad},
		"|-\n      {{ toJson server.nested.list }}": `["a\"b: c\n- d",7]`, "|-\n      x={{ quote server.fqdn }}": `x="a\"b: c\n- d"`,
		"{{ (index (services `db`) 0).port }}": 5432, "'{{ (index (services `db`) 0).port }}'": "5432", "{{ len server.nested.list }}": 2,
		"{{ index server.nested.list 1 }}": 7, "{{ add (index server.nested.list 1) 1 }}": 8, "{{ eq server.fqdn server.address }}": true,
		"\n{{ toYaml (dict `k` (list server.fqdn 1)) | indent 6 }}": map[string]any{"k": []any{bad, 1}}, "{{ toJson server.fqdn | upper }}": `"A\"B: C\N- D"`,
		"{{ sha256sum server.fqdn | trunc 8 }}": "aaee3d27",
	} {
		cat, err := repo(job(value)).Compile(of(bad))
		if err != nil {
			t.Errorf("%s: %v", value, err)
			continue
		}
		if got := cat.Jobs[0].Steps[0].Params.Value()["value"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", value, got, want)
		}
	}
	for text, want := range map[string]any{"17": 17, "1.5": 1.5, "true": true, "0644": "0644", "null": "null", "~": "~", "": "", "2026-01-01": "2026-01-01", "<<": "<<"} {
		cat, err := repo(job("{{ server.fqdn }}")).Compile(of(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := cat.Jobs[0].Steps[0].Params.Value()["value"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
	}
}

// TestForeignRefused shows where an opaque text would decide about structure.
func TestForeignRefused(t *testing.T) {
	one := "steps:\n- name: one\n  action: x\n"
	for name, c := range map[string]struct{ path, text, want string }{
		"expression":     {"jobs/a.yaml", one + "  conditions: {when: {condition: '{{ server.fqdn }} == 1'}}\n", "jobs/a.yaml:4:34: an expression cannot hold a text that comes from a host's facts or from another host, unless that is a plain name (an expression reads such values itself: server.fqdn, services('db'))"},
		"forEach":        {"jobs/a.yaml", one + "  forEach: vars.{{ server.fqdn }}\n", "jobs/a.yaml:4:12: forEach cannot hold a text that comes from a host's facts or from another host, unless that is a plain name (an expression reads such values itself: server.fqdn, services('db'))"},
		"target":         {"base/vars.yaml", "files: {'{{ server.fqdn }}': [{name: v}]}\n", "base/vars.yaml:1:9: a target cannot hold a text that comes from a host's facts or from another host, unless that is a plain name (a target reads labels itself: role=web)"},
		"hosts":          {"jobs/a.yaml", one + "  runOptions: {target: {hosts: ['{{ server.fqdn }}']}}\n", "jobs/a.yaml:4:33: a target cannot hold a text that comes from a host's facts or from another host, unless that is a plain name (a target reads labels itself: role=web)"},
		"field":          {"jobs/a.yaml", one + "  {{ server.fqdn }}: 1\n", "jobs/a.yaml:4:3: step: the name of a field cannot come from a host's facts or from another host"},
		"tag":            {"jobs/a.yaml", one + "  parameters: {a: !<{{ server.fqdn }}> b}\n", "jobs/a.yaml:4:21: invalid YAML: while parsing a tag: did not find expected tag URI (rendered: parameters: {a: !<\"a'b: \\\"c\\n\"> b})"},
		"set":            {"jobs/a.yaml", "{{ $_ := set (dict) server.fqdn 1 }}" + one, "jobs/a.yaml:1:10: set (dict) server.fqdn 1: set: \"a'b: \\\"c\\n\" cannot be a key: it comes from a host's facts or from another host, and is no plain name"},
		"dict":           {"jobs/a.yaml", "{{ $_ := dict server.fqdn 1 }}" + one, "jobs/a.yaml:1:10: dict server.fqdn 1: dict: \"a'b: \\\"c\\n\" cannot be a key: it comes from a host's facts or from another host, and is no plain name"},
		"merge":          {"jobs/a.yaml", "{{ $_ := merge vars server.nested }}" + one, "jobs/a.yaml:1:10: merge vars server.nested: merge: \"a'b: \\\"c\\n\" cannot be a key: it comes from a host's facts or from another host, and is no plain name"},
		"index":          {"jobs/a.yaml", "{{ index server.fqdn 0 }}" + one, "jobs/a.yaml:1:4: index server.fqdn 0: a text from another host or from this host's facts has no elements: use substr"},
		"two keys":       {"vars/v.yaml", "'{{ server.fqdn }}': 1\n{{ server.fqdn }}: 2\n", "vars/v.yaml:2:1: key \"a'b: \\\"c\\n\" stands here twice: first in line 1"},
		"a mark":         {"jobs/a.yaml", one + "  parameters: {a: \"\\uE000f0\\uE001 {{ server.fqdn }}\", b: x}\n", "jobs/a.yaml:4:19: the characters U+E000 and U+E001 are kept for pullet"},
		"mark of a step": {"jobs/a.yaml", one + "  parameters: {a: \"\uE0000\uE001\"}\n", "jobs/a.yaml:4:19: the characters U+E000 and U+E001 are kept for pullet"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := repo(opaqueRepo(map[string]string{c.path: c.text})).Compile(of("a'b: \"c\n"))
			list, _ := err.(ErrorList)
			if !slices.ContainsFunc(list, func(e *Error) bool { return e.Error() == c.want }) {
				t.Errorf("got  %v\nwant %s", list, c.want)
			}
		})
	}
}
