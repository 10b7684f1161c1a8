package render

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzYAML compiles any text of a job file: it ends, with a catalog or with mistakes that have a place.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		"steps:\n- {name: a, action: cmd.run, parameters: {cmd: x}}\n", "steps: [", "{{ server.name }}", "{{", "a: &a [*a]\n", "steps: &a\n- *a\n",
		"steps:\n- {name: a, action: x, parameters: {y: &a [*a]}}\n", "steps:\n- {name: a, action: x, parameters: &a {<<: *a}}\n",
		"steps:\n- &a {name: a, action: x, <<: *a}\n", "metadata: {name: x}\nspec: {steps: []}\n", "steps:\n- {name: a, action: x, require: [a, {b: c}]}\n",
		"steps:\n- {name: a, action: x, conditions: {when: {condition: \"steps['b'].Changed\"}}}\n", "\x00", "? [a]\n: b\n", "--- a\n--- b\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.Contains(text, "until") || strings.Contains(text, "repeat") {
			return
		}
		files := map[string]string{"base/jobs.yaml": "jobs: {'*': [{name: a}]}\n", "jobs/a.yaml": text}
		_, err := repo(files).Compile(web1)
		list, ok := err.(ErrorList)
		if err != nil && (!ok || len(list) == 0 || list[0].Pos.File == "") {
			t.Errorf("a mistake without a place: %v", err)
		}
	})
}

// FuzzTarget: what is read matches, or does not, without a panic.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"*", "web*", "role=web", "role!=w[a-z]", "!x", "a,b", "", ",", "[", "a=", "=b", "\\"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err == nil {
			target.Matches("web1", map[string]string{"role": "web", "x": ""})
		} else if !strings.HasPrefix(err.Error(), "target ") {
			t.Errorf("%v", err)
		}
	})
}

// FuzzDuration: a duration is never negative, and what Go prints is read as the same.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"1s", "1w2d3h", "0d", "-1d", "-1d25h", "2147483647w", "106751d24h", "9223372036s", "d", "1 d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err == nil && d < 0 {
			t.Errorf("%q is %s", text, d)
		}
		if again, bad := ParseDuration(d.String()); err == nil && (bad != nil || again != d) {
			t.Errorf("%q is %s, which is %s %v", text, d, again, bad)
		}
	})
}

// FuzzExpression: the rewriting of macro calls keeps the length, so that columns stay right; what is rewritten for the
// limits compiles and runs, or says what is wrong.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{"macros['a']()", "macros['ü'](1) == 'ö'", "'ü' == macros['a'](1,2)", "macros[", "macros['a'](", "'macros[1]()'", "é macros['x'](y)",
		"all(1..9, {# in [1, vars.a] or vars.t matches 'x+'})", "join(map(keys(vars), # + 'x'), ',')", "reduce(1..9, #acc + #, 0) > len({'a': [1]})", "replace(vars.t, 'x', 'y')?.b ?? uniq([1])"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if out := callMacros(text); utf8.RuneCountInString(out) != utf8.RuneCountInString(text) {
			t.Errorf("%q became %q", text, out)
		}
		if code, err := compileExpression(text, &references{}); err == nil {
			_, _ = runExpression(code, &scope{macros: &macroSet{}, vars: map[string]any{"a": 1, "t": "xx", "l": []any{1, "b"}}}) // its errors are its own
		}
	})
}

func TestSizes(t *testing.T) {
	pattern := regexp.MustCompile((*Size)(nil).shape().Pattern)
	for text, want := range map[string]Size{
		"0B": 0, "1B": 1, "1023B": 1023, "500KiB": 500 << 10, "1024KiB": 1 << 20, "50MiB": 50 << 20, "50 MiB": 50 << 20, "1GiB": 1 << 30, "999999999GiB": 999999999 << 30,
	} {
		var got struct {
			Size Size `yaml:"size"`
		}
		err := DecodeFile("f", []byte("size: "+text+"\n"), &got)
		if err != nil || got.Size != want || !pattern.MatchString(text) || !pattern.MatchString(got.Size.String()) {
			t.Errorf("%q: %s %v, want %d", text, got.Size, err, want)
		}
	}
	for text, want := range map[Size]string{0: "0B", 1: "1B", 1 << 10: "1KiB", 1 << 20: "1MiB", 50 << 20: "50MiB", 3 << 29: "1536MiB", 1<<30 + 1: "1073741825B"} {
		if got := text.String(); got != want {
			t.Errorf("%d: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "5", "50M", "50MB", "-1MiB", "1.5MiB", "1000000000B", "MiB", "[1MiB]", "50mib"} {
		var got struct {
			Size Size `yaml:"size"`
		}
		if err := DecodeFile("f", []byte("size: "+text+"\n"), &got); err == nil || !strings.Contains(err.Error(), "is not a size: write 500KiB, 50MiB or 1GiB") {
			t.Errorf("%q: %s %v, want an error", text, got.Size, err)
		}
		if pattern.MatchString(text) {
			t.Errorf("%q: the pattern takes it", text)
		}
	}
}

func TestDurations(t *testing.T) {
	day := 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "2d": 2 * day, "1w": 7 * day, "1w2d3h": 9*day + 3*time.Hour, "1d 2h": day + 2*time.Hour,
		"0": 0, "0s": 0, "0d": 0, "1ms": time.Millisecond,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "1", "-1s", "-1d", "-1d25h", "1.5d", "1d1w", "d", "2147483647w", "106752d", "106751d24h", "1x"} {
		if got, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), "is not a duration: write 30s") {
			t.Errorf("%q: %s %v, want an error", text, got, err)
		}
	}
}

// FuzzForeign: a text that the repository does not hold never changes the shape of a tree, and is in it as it is.
func FuzzForeign(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	job := "steps:\n- name: one\n  action: x\n  parameters:\n"
	for name, scalar := range styles {
		job += "    " + strings.ReplaceAll(name, " ", "_") + ": " + fmt.Sprintf(scalar, "{{ server.fqdn }}") + "\n"
	}
	job += "    all: {{ toJson server.nested }}\n    more:\n      {{ toYaml (services `db`) | nindent 6 }}\n"
	r := repo(opaqueRepo(map[string]string{"jobs/a.yaml": job}))
	shape := func(t *testing.T, text string) string {
		cat, err := r.Compile(of(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return shapeOf(cat.Jobs[0].Steps[0].Params.node())
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "list" || text == "" { // a key that is there already, and an invalid one
			return
		}
		if got, want := shape(t, text), shape(t, "safe"); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	})
}
