package render

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLimitsOfFiles: what would never end, or fill the memory, is a mistake with a place, soon.
func TestLimitsOfFiles(t *testing.T) {
	job := func(template string) string { return "steps: []\n" + template + "\n" }
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, c := range []struct{ name, file, text, want string }{
		{"a loop in a loop", "jobs/a.yaml", job("{{ $l := until 99999 }}{{ range $l }}\n{{ range $l }}{{ end }}{{ end }}"), "jobs/a.yaml:3:10: the file takes too much work"},
		{"a loop over a number", "jobs/a.yaml", job("{{ range 2000000000 }}{{ end }}"), "jobs/a.yaml:2:"},
		{"a loop that calls functions", "jobs/a.yaml", job("{{ range until 99999 }}{{ $_ := until 99999 }}{{ end }}"), "too much work"},
		{"much output", "jobs/a.yaml", job("{{ range until 99999 }}{{ repeat 1000 \"x\" }}{{ end }}"), "jobs/a.yaml:2:1: the output is larger than 16 MiB"},
		{"a template that calls itself", "jobs/a.yaml", job("{{ define \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}"), "templates call templates more than 100 deep"},
		{"templates that call two", "jobs/a.yaml", job(callTwo(60)), "too much work"},
		{"a text that doubles", "jobs/a.yaml", job("{{ $s := \"x\" }}{{ range until 100 }}{{ $s = printf \"%s%s\" $s $s }}{{ end }}"), "larger than 16 MiB"},
		{"a list that doubles", "jobs/a.yaml", job("{{ $s := list 1 }}{{ range until 100 }}{{ $s = list $s $s }}{{ end }}{{ $s }}"), "more than 200000 values"},
		{"an escape that doubles", "jobs/a.yaml", job("{{ $s := \"<\" }}{{ range until 100 }}{{ $s = js $s }}{{ end }}"), "larger than 16 MiB"},
		{"a great repeat", "jobs/a.yaml", job("{{ $s := repeat 99999 \"x\" }}{{ repeat 99999 $s }}"), "repeat: this makes or looks through more than 64 MB"},
		{"a great indent", "jobs/a.yaml", job("{{ indent 2000000000 \"x\" }}"), "indent: this makes"},
		{"a great replace", "jobs/a.yaml", job("{{ $s := repeat 99999 \"x\" }}{{ replace \"x\" $s $s }}"), "replace: this makes"},
		{"a great format", "jobs/a.yaml", job("{{ $s := repeat 9999 \"%900000d\" }}{{ printf $s 1 }}"), "printf: this makes"},
		{"a great join", "jobs/a.yaml", job("{{ $s := repeat 99999 \"x\" }}{{ until 99999 | join $s }}"), "join: this makes"},
		{"a great split", "jobs/a.yaml", job("{{ $s := repeat 99999 \",,,,,,,,,,,,,,,,\" }}{{ splitList \",\" $s }}"), "splitList: this makes"},
		{"a map in itself", "jobs/a.yaml", job("{{ $d := dict \"a\" 1 }}{{ $_ := set $d \"b\" (list $d) }}{{ $d }}"), "set: a map cannot hold itself"},
		{"a map merged into itself", "jobs/a.yaml", job("{{ $d := dict \"a\" (dict) }}{{ $_ := merge $d (dict \"a\" (dict \"x\" (get $d \"a\"))) }}x: {{ toJson $d }}"), `unknown field "x"`},
		{"a long pattern", "jobs/a.yaml", job("{{ regexMatch (repeat 1001 \"x\") \"x\" }}"), "jobs/a.yaml:2:4: regexMatch (repeat 1001 \"x\") \"x\": regexMatch: the pattern is longer than 1000 bytes"},
		{"a slow pattern", "jobs/a.yaml", job("{{ regexMatch \"(x?y?){490}z\" (repeat 99999 \"xxxxxxxxxx\") }}"), "regexMatch: this makes or looks through more than 64 MB"},
		{"many blocks", "jobs/a.yaml", job(strings.Repeat("{{ if 1 }}", 40_000)), "more than 500 blocks are open here"},
		{"many actions", "jobs/a.yaml", job(strings.Repeat("{{ 1 }}", 50_001)), "the template has more than 50000 actions"},
		{"many long texts", "jobs/a.yaml", job("{{ $s := repeat 99999 (repeat 100 \"x\") }}{{ range until 20000 }}{{ $_ := upper $s }}{{ end }}"), "too much work"},
		{"long texts that are compared", "jobs/a.yaml", job("{{ $s := repeat 99999 (repeat 100 \"x\") }}{{ range until 60000 }}{{ $_ := eq $s \"y\" }}{{ end }}"), "too much work"},
		{"long lists as text", "jobs/a.yaml", job("{{ $l := until 50000 }}{{ range until 20000 }}{{ $_ := toJson $l }}{{ end }}"), "too much work"},
		{"loops for a forEach", "jobs/a.yaml", "steps:\n" + strings.Repeat("- {name: n, action: x, forEach: 'filter(1..90000, # < 0)'}\n", 100), "the templates and expressions of this host take too much work together: more than 10000000 steps"},
		{"a slow pattern of a forEach", "jobs/a.yaml", "steps:\n- {name: n, action: x, forEach: '\"" + strings.Repeat("x", 9000) + "\" matches \"" + strings.Repeat("[a-z]{900}", 90) + "\" ? [] : []'}\n", "matches: this looks through more than 64 MB"},
		{"a long pattern of a forEach", "jobs/a.yaml", "steps:\n- {name: n, action: x, forEach: '\"x\" matches \"" + strings.Repeat("x", 1001) + "\" ? [] : []'}\n", "the pattern is longer than 1000 bytes"},
		{"many alternatives", "jobs/a.yaml", job("{{ if 1 }}" + strings.Repeat("{{ else if 1 }}", 1000)), "more than 500 blocks are open here"},
		{"many parentheses", "jobs/a.yaml", job("{{ " + strings.Repeat("(", 1_000_000)), "jobs/a.yaml:2:"},
		{"a large template", "jobs/a.yaml", job("{{ }}" + strings.Repeat("x", 5<<20)), "larger than 4 MiB"},
		{"a large document", "jobs/a.yaml", job("# " + strings.Repeat("x", 5<<20)), "larger than 4 MiB"},
		{"deep YAML", "vars/v.yaml", "a: " + deep + "\n", "vars/v.yaml:1:"},
		{"deep YAML in a text", "jobs/a.yaml", job("{{ fromYaml \"" + deep + "\" }}"), "depth"},
		{"many values", "vars/v.yaml", "a: [" + strings.Repeat("1,", 200_001) + "]\n", "more than 200000 values"},
		{"a long expression", "jobs/a.yaml", "steps:\n- {name: a, action: x, conditions: {when: {condition: '" + strings.Repeat("(", 20_000) + "'}}}\n", "jobs/a.yaml:2:55: the expression is longer than 10000 bytes"},
		{"a long list of items", "jobs/a.yaml", "steps:\n- {name: a, action: x, forEach: '" + strings.Repeat("(", 20_000) + "'}\n", "jobs/a.yaml:2:33: the expression is longer than 10000 bytes"},
		{"many steps", "jobs/a.yaml", "steps:\n{{ range until 11 }}\n- {name: n{{ . }}, action: x, forEach: '0..9998'}\n{{ end }}", "jobs/a.yaml:3:3: the node has more than 100000 steps"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			files := map[string]string{
				"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": "steps: []\n",
				"base/vars.yaml": "files: {'*': [{name: v}]}\n", "vars/v.yaml": "{}\n",
			}
			files[c.file] = c.text
			_, err := repo(files).Compile(web1)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %.300v\nwant %s", err, c.want)
			}
			if list, ok := err.(ErrorList); ok && list[0].Pos.File != c.file {
				t.Errorf("the mistake is in %s", list[0].Pos)
			}
			if made := (after.TotalAlloc - before.TotalAlloc) >> 20; made > 4096 || after.Sys>>20 > 2048 {
				t.Errorf("made %d MB, of which %d MB stay", made, after.Sys>>20)
			}
			t.Logf("%s, %d MB: %.200v", time.Since(start).Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, err)
		})
	}
}

// callTwo are templates each of which calls the next one twice.
func callTwo(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "{{ define \"t%d\" }}{{ template \"t%d\" }}{{ template \"t%d\" }}{{ end }}", i, i+1, i+1)
	}
	fmt.Fprintf(&b, "{{ define \"t%d\" }}{{ end }}{{ template \"t0\" }}", depth)
	return b.String()
}

// TestWithinLimits: what real repositories do stays possible.
func TestWithinLimits(t *testing.T) {
	for _, text := range []string{
		"steps:\n{{- range until 5000 }}\n- {name: n{{ . }}, action: x, parameters: {a: '{{ printf \"%05d\" . | upper | replace \"0\" \"o\" }}'}}\n{{- end }}\n",
		"steps:\n{{- $d := dict \"a\" 1 }}{{ $_ := set $d \"b\" 2 }}{{ $_ := merge $d (dict \"c\" (list 1 2)) }}\n- {name: '{{ $d | toJson | b64enc }}', action: x}\n",
		"{{ define \"n\" }}{{ . }}{{ if gt . 0 }}{{ template \"n\" (sub . 1) }}{{ end }}{{ end }}steps: [{name: x{{ template \"n\" 50 }}, action: x}]\n",
		"steps: [{name: '{{ regexReplaceAll \"[^a-z]+\" \"a b  c\" \"-\" }}{{ html \"<\" }}{{ print 1 2 }}', action: x}]\n",
	} {
		compile(t, map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": text})
	}
}
