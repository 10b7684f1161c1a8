package render

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// valueVars are variables of every kind, as authors write them.
const valueVars = `
port:
n: 5
s: x
pad: '08'
list: [1, 2]
holes: [a, null]
map: {k: v, none: null}
version: 1.10
large: 18446744073709551615
ratio: 1234567.5
small: 0.00001
exponent: 1e3
mode: 0644
odd: 08
hex: 0x1f
yes: true
never: .inf
`

// fileOf is what a file template writes on a host with valueVars.
func fileOf(t *testing.T, template string) (string, error) {
	t.Helper()
	cat := compile(t, map[string]string{
		"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": valueVars,
		"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": "steps: []\n",
	})
	text, err := cat.Template(nil, "files/o", template, nil, nil)
	return string(text), err
}

// TestTemplatesYieldWhatIsMeant: what a template prints is what its author meant, or it is a mistake with its place.
func TestTemplatesYieldWhatIsMeant(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		`{{ vars.n }}`: "5", `{{ vars.yes }}`: "true", `{{ vars.version }}`: "1.10", `{{ vars.large }}`: "18446744073709551615",
		`{{ vars.ratio }}`: "1234567.5", `{{ vars.small }}`: "0.00001", `{{ vars.exponent }}`: "1e3", `{{ vars.mode }}`: "0644",
		`{{ vars.odd }}`: "08", `{{ vars.hex }}`: "0x1f", `{{ vars.never }}`: ".inf", `{{ toYaml (dict "a" vars.never "h" vars.hex "m" vars.mode) }}`: "a: .inf\nh: 0x1f\nm: \"0644\"", `{{ toJson (list vars.hex vars.mode) }}`: `[31,"0644"]`, `{{ vars.never | default 1 }}`: ".inf",
		`{{ vars.list | toJson }}`: "[1,2]", `{{ join "," vars.list }}`: "1,2", `{{ toYaml vars.map }}`: "k: v\nnone: null",
		`{{ toYaml (dict "v" vars.version "r" vars.ratio "k" 3 "l" vars.large) }}`: "k: 3\nl: 18446744073709551615\nr: 1234567.5\nv: 1.10",
		`{{ toJson (list vars.version vars.ratio vars.large) }}`:                   "[1.10,1234567.5,18446744073709551615]",
		`{{ printf "%s:%d" vars.s vars.n }}`:                                       "x:5", `{{ printf "%.1f|%v|%s|%5.2f" vars.version vars.version vars.ratio vars.ratio }}`: "1.1|1.10|1234567.5|1234567.50",
		`{{ printf "100%% of %s" "%!s(int=5)" }}`: "100% of %!s(int=5)",
		`{{ print vars.ratio " " vars.version }}`: "1234567.5 1.10", `{{ quote vars.ratio }}`: `"1234567.5"`, `{{ cat vars.s vars.ratio }}`: "x 1234567.5",
		`{{ toString vars.version }}`: "1.10", `{{ html vars.version }}`: "1.10",
		`{{ int vars.pad }}`: "8", `{{ add vars.odd 1 }}`: "9", `{{ int vars.hex }}`: "31", `{{ int 1.7 }}`: "1", `{{ int vars.version }}`: "1", `{{ add 1 2 3 }}`: "6",
		`{{ mulf vars.version 2 }}`: "2.2", `{{ float64 vars.version }}`: "1.1", `{{ toDecimal vars.mode }}`: "420", `{{ max 3 vars.n 4 }}`: "5", `{{ min 3 vars.n }}`: "3",
		`{{ sub 3 5 }}`: "-2", `{{ mul 3 5 2 }}`: "30", `{{ div -7 2 }}`: "-3", `{{ mod -7 2 }}`: "-1", `{{ add1 4 }}`: "5", `{{ atoi "010" }}`: "10", `{{ floor "2.7" }}`: "2", `{{ round 2.678 2 }}`: "2.68",
		`{{ b64dec "aGk=" }}`: "hi", `{{ (fromJson "{\"n\": 1234567, \"v\": 1.10, \"l\": 18446744073709551615}").n }}`: "1234567",
		`{{ (fromJson "[1.10]") | first }}`: "1.10", `{{ (fromYaml "{v: 1.10, m: 0644}") | toYaml }}`: "m: \"0644\"\nv: 1.10", `{{ fromYaml "" | default "d" }}`: "d",
		`{{ get vars "port" }}`: "", `{{ get vars "nope" }}`: "", `{{ vars.port | default "80" }}`: "80", `{{ dig "map" "none" "d" vars }}`: "d", `{{ dig "port" "deep" "d" vars }}`: "d",
		`{{ if eq vars.n 5 }}y{{ end }}`: "y", `{{ if gt vars.ratio 1.5 }}y{{ end }}`: "y", `{{ with vars.port }}y{{ else }}n{{ end }}`: "n",
		`{{ semver "1.2.3" }}`: "1.2.3",
	} {
		if got, err := fileOf(t, template); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", template, got, err, want)
		}
	}
	for template, want := range map[string]string{
		`Listen {{ vars.port }}`: "files/o:1:11: vars.port: null has no text", `{{- vars.port -}}`: "1:5: vars.port: null", `{{ vars.map.none | upper }}`: "upper",
		`{{ vars.list }}`: "a list has no text", `{{ vars.map }}`: "a map has no text", `{{ $x := vars.list }}{{ $x }}`: "$x: a list",
		`{{ range $i, $x := vars.holes }}{{ $x }}{{ end }}`: "$x: null", `{{ define "t" }}{{ . }}{{ end }}{{ template "t" vars.map }}`: "a map",
		`{{ toString vars.port }}`: "toString", `{{ quote vars.port }}`: "quote", `{{ squote vars.list }}`: "a list", `{{ cat "a" vars.port }}`: "null", `{{ print vars.list }}`: "a list",
		`{{ printf "%v" vars.map }}`: "a map", `{{ join "," vars.holes }}`: "element 1: null", `{{ join "," vars.port }}`: "null", `{{ html vars.map }}`: "a map", `{{ urlquery vars.port }}`: "null",
		`{{ printf "%d" vars.s }}`: "%d cannot write a text: %s can", `{{ printf "%s" vars.n }}`: "%s cannot write this value: %v can", `{{ printf "%s-%s" vars.s }}`: "no value for %s", `{{ printf "%s" vars.s vars.s }}`: "more values than verbs", `{{ printf "100%" }}`: "a % stands alone",
		`{{ b64dec "@@" }}`: "invalid base64", `{{ b32dec "@@" }}`: "invalid base32", `{{ fromJson "{" }}`: "invalid JSON", `{{ fromJson "1 2" }}`: "more behind", `{{ fromYaml "{" }}`: "line 1: invalid YAML",
		`{{ int "x" }}`: `expected a number, found "x"`, `{{ int64 vars.port }}`: "expected a number, found null", `{{ add vars.s 1 }}`: `expected a number, found "x"`, `{{ add 1.5 1 }}`: "1.5 has a fraction", `{{ max 1.5 2 }}`: "has a fraction",
		`{{ int vars.list }}`: "expected a number, found a list", `{{ float64 "1.x" }}`: `expected a number, found "1.x"`, `{{ atoi "x" }}`: "atoi", `{{ toDecimal "9" }}`: `expected an octal number, found "9"`, `{{ mulf "a" 2 }}`: `mulf`, `{{ add vars.yes 1 }}`: "expected a number, found true",
		`{{ int vars.large }}`: "too large", `{{ add 9223372036854775807 1 }}`: "too large", `{{ int 1e300 }}`: "too large", `{{ div 1 0 }}`: "division by zero", `{{ mod 1 0 }}`: "division by zero", `{{ divf 1 0 }}`: "divf",
		`{{ float64 vars.never }}`: "expected a number, found .inf", `{{ toJson vars.never }}`: "unsupported value", `{{ regexFind "(" "x" }}`: "regexFind", `{{ first vars.s }}`: "first",
	} {
		got, err := fileOf(t, template)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q %v, want a mistake with %q", template, got, err, want)
		}
	}
}

// TestNullInSteps: the same holds wherever a template stands.
func TestNullInSteps(t *testing.T) {
	t.Parallel()
	for _, job := range []string{
		"steps: [{name: a, action: x, parameters: {content: 'Listen {{ vars.port }}'}}]",
		"steps: [{name: a, action: x, parameters: {name: '/out{{ vars.port }}'}}]",
		"steps: [{name: a, action: x, parameters: {cmd: [sh, '{{ vars.list }}']}}]",
		"steps: [{name: '{{ vars.port }}', action: x}]",
		"steps: [{name: a, action: x, parameters: {content: '{{ macro `m` }}'}}]",
	} {
		_, err := repo(map[string]string{
			"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": valueVars, "base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": job,
			"base/macros.yaml": "macros: {'*': [{name: m}]}\n", "macros/m.yaml": "m: {template.expression: [{content: 'is {{ vars.port }}'}]}\n",
		}).Compile(web1)
		if err == nil || !strings.Contains(err.Error(), "has no text") {
			t.Errorf("%s: %v, want a mistake", job, err)
		}
	}
}

// TestItemsKeepTheirText: numbers of a list are the items that they are written as, and expressions compute with them.
func TestItemsKeepTheirText(t *testing.T) {
	t.Parallel()
	cat := compile(t, map[string]string{
		"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "versions: [1.10, 2, 1e3]\nrate: 1.50\n", "base/jobs.yaml": "jobs: {'*': [{name: a}]}\n",
		"jobs/a.yaml": "steps:\n- {name: a, action: x, forEach: vars.versions, parameters: {v: 'v{{ item }}'}}\n- {name: b, action: x, forEach: [1.10], parameters: {v: 'v{{ item }}'}}\n" +
			"- {name: c, action: x, conditions: {when: {condition: 'vars.rate > 1.4 && vars.rate * 2 == 3'}}}\n",
	})
	var got []any
	for _, s := range cat.Jobs[0].Steps[:4] {
		v, err := cat.Fill(s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, v.Value()["v"])
	}
	if want := []any{"v1.10", "v2", "v1e3", "v1.10"}; !reflect.DeepEqual(got, want) {
		t.Errorf("items are %v, want %v", got, want)
	}
	if yes, err := cat.Eval(cat.Jobs[0].Steps[4].Conditions.When.Expression, Judged{}); !yes || err != nil {
		t.Errorf("an expression computes %v %v", yes, err)
	}
}

// TestEveryFunctionIsStrict: a function that makes text or numbers of whatever it gets is given values that have them,
// or is named here with what it does instead. A new one cannot print null.
func TestEveryFunctionIsStrict(t *testing.T) {
	takesAny := strings.Fields(`
		all any append chunk coalesce compact concat deepCopy deepEqual default dict dig empty first float64 fromJson get has hasKey index initial int int64
		keys kindIs kindOf last len length list add add1 sub mul div mod max min biggest macro merge mergeOverwrite omit pick pluck prepend push required rest reverse set
		shquote slice ternary toDecimal toJson toPrettyJson toRawJson toYaml tuple typeIs typeIsLike typeOf uniq unset until values without urlJoin seq untilStep repeat`)
	r := Open()
	for name, f := range pureFuncs() {
		in := reflect.TypeOf(f)
		for i := range in.NumIn() {
			p := in.In(i)
			if in.IsVariadic() && i == in.NumIn()-1 {
				p = p.Elem()
			}
			if _, strict := wants[name]; p.Kind() == reflect.Interface && !strict && !slices.Contains(takesAny, base(name)) {
				t.Errorf("%s takes any value: see wants in conversions.go", name)
			}
		}
	}
	for name := range wants {
		if r.first.funcs[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
}

// FuzzNumbers: a number of a file prints as it stands there.
func FuzzNumbers(f *testing.F) {
	for _, text := range []string{"1", "1.10", "-0", "+5", "08", "1e3", ".5", "5.", "0x1F", "1_000", "18446744073709551616", "1e999", "0.1", "123456789.123456789"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n yaml.Node
		if yaml.Load([]byte(text), &n) != nil || len(n.Content) != 1 {
			return
		}
		scalar := n.Content[0]
		if tag := scalar.ShortTag(); tag != "!!int" && tag != "!!float" {
			return
		}
		if got := fmt.Sprint(asNumeral(keptNumber(scalar.Value))); got != scalar.Value {
			t.Errorf("%q prints as %q", scalar.Value, got)
		}
	})
}
