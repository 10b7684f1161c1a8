package gitrules

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// starsBehind finds two stars that are not a whole part of a pattern.
var starsBehind = regexp.MustCompile(`([^/*])\*\*+`)

// TestAsGit draws rules and compares what they mean with what git makes of them.
func TestAsGit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	git := func(stdin string, args ...string) string {
		c := exec.Command("git", args...)
		c.Dir, c.Stdin = dir, strings.NewReader(stdin)
		c.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1")
		out, err := c.Output()
		if err != nil && c.ProcessState.ExitCode() != 1 { // check-ignore: no path is ignored
			t.Fatal(args, err)
		}
		return string(out)
	}
	git("", "init", "-q")
	var files []string
	for _, name := range []string{"a", "b", "a.c", "[x]", "é", "sp ace", "A"} {
		files = append(files, name, "d/"+name, "d/a/"+name, "d/a/b/"+name, "e/"+name)
	}
	files = slices.DeleteFunc(files, func(f string) bool { return f == "d/a" || f == "d/a/b" })
	for _, f := range files {
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, f), nil, 0o644))
	}
	r := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"a", "b", "d", "e", "*", "**", "/", "/", "?", "[a-c]", "[!a]", "[^b-d]", "[]x]", "[[:upper:]]", `\[x\]`, "*.c", "é", "**/", "/**", "[", `\`, "sp ace", `[\]a-b]`, "x]",
	}
	draw := func() string {
		text := ""
		for range 1 + r.IntN(4) {
			text += pieces[r.IntN(len(pieces))]
		}
		text = strings.ReplaceAll(text, "**/**", "**")   // git takes a**/** for a, too,
		return starsBehind.ReplaceAllString(text, "$1*") // and a** for what starts with a, also with slashes
	}
	for range 150 {
		var top, below []string
		for range 3 {
			top = append(top, strings.Repeat("!", r.IntN(2))+draw())
			below = append(below, strings.Repeat("!", r.IntN(2))+draw())
		}
		ignore := map[string]string{"": strings.Join(top, "\n"), "d": strings.Join(below, "\r\n") + "  \n"}
		must(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(ignore[""]), 0o600))
		must(t, os.WriteFile(filepath.Join(dir, "d/.gitignore"), []byte(ignore["d"]), 0o600))
		want := strings.Split(strings.TrimSuffix(git(strings.Join(files, "\x00")+"\x00", "check-ignore", "-z", "--stdin"), "\x00"), "\x00")
		for _, f := range files {
			if got := ignored(t, ignore, f); got != slices.Contains(want, f) {
				t.Errorf("ignored %q: %v, git says %v\n%q", f, got, !got, ignore)
			}
		}

		texts := map[string][]byte{}
		for _, name := range []string{".gitattributes", "d/.gitattributes"} {
			for range 4 {
				pattern := strings.TrimPrefix(draw(), "!")
				if strings.Contains(pattern, " ") {
					pattern = `"` + strings.ReplaceAll(pattern, `\`, `\\`) + `"`
				}
				states := []string{"filter=x", "filter=y", "-filter", "!filter", "filter", "sealed", "-sealed", "sealed filter=z", "filter=w sealed", "text", "bad^name"}
				texts[name] = append(texts[name], pattern+" "+states[r.IntN(len(states))]+"\n"...)
			}
		}
		texts[".gitattributes"] = append(texts[".gitattributes"], "[attr]sealed filter=seal\n"...)
		for name, text := range texts {
			must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
		}
		f, err := ReadFilters(texts)
		must(t, err)
		fields := strings.Split(git(strings.Join(files, "\x00")+"\x00", "check-attr", "-z", "--stdin", "filter"), "\x00")
		for i := 0; i+2 < len(fields); i += 3 {
			want := fields[i+2]
			if want == "unspecified" || want == "unset" || want == "set" {
				want = ""
			}
			if got, err := f.Of(t.Context(), fields[i]); got != want || err != nil {
				t.Errorf("filter of %q: %q, git says %q (%v)\n%s", fields[i], got, want, err, texts)
			}
		}
	}
}

// ignored walks down to a path as a reader of a work tree does.
func ignored(t *testing.T, texts map[string]string, name string) bool {
	t.Helper()
	rules, at := Ignore{}, ""
	for rest, more := name, true; more; {
		var err error
		if text, ok := texts[at]; ok {
			rules, err = rules.Add("./"+at, []byte(text))
			must(t, err)
		}
		var elem string
		elem, rest, more = strings.Cut(rest, "/")
		at = strings.TrimPrefix(at+"/"+elem, "/")
		is, err := rules.Ignores(t.Context(), at, more)
		must(t, err)
		if is {
			return true
		}
	}
	return false
}

// TestLimits: rules are bounded, and a long match ends with its context.
func TestLimits(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("a filter=b\n"), 1<<17)
	if _, err := (Ignore{}).Add(".", large); err == nil || err.Error() != "the gitignore rules of the repository are larger than the limit of 1 MiB" {
		t.Error(err)
	}
	if _, err := ReadFilters(map[string][]byte{".gitattributes": large}); err == nil {
		t.Error("no error for large attributes")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rules, err := Ignore{}.Add(".", []byte("a\n"))
	must(t, err)
	if _, err := rules.Ignores(ctx, "b", false); err == nil {
		t.Error("the context is over")
	}
	f, err := ReadFilters(map[string][]byte{".gitattributes": []byte("a filter=b\n")})
	must(t, err)
	if _, _, err := f.First(ctx, []string{"b"}, NotLFS); err == nil {
		t.Error("the context is over")
	}
	stars := strings.Repeat("*a", 1000)
	if parsePattern("", stars).matches(strings.Repeat("a", 999)+"b", false) || !parsePattern("", stars).matches(strings.Repeat("a", 1000), false) {
		t.Error("stars")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
