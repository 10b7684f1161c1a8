package action_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// write is a step that writes a file, with more of the step behind.
func write(name, path, content string, more ...string) string {
	return fmt.Sprintf("{name: %s, action: file.managed, parameters: {name: %s, content: %q, makeDirs: true}%s}", name, path, content,
		strings.Join(append([]string{""}, more...), ", "))
}

// TestGroups: steps whose files become durable together come out as if each had run after the one before it.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		name  string
		host  []string
		steps []string
		order bool              // it counts: nothing else says what comes first
		told  string            // of the first run; see told
		want  map[string]string // what is in a file afterwards, or gone
	}{
		{name: "a command sees what stands before it in the file, and not what stands behind it", order: true,
			steps: []string{write("a", "/a", "1"), write("b", "/b", "2"), "{name: look, action: cmd.run, parameters: {cmd: 'cat a b c >seen 2>/dev/null; true'}}", write("c", "/c", "3")},
			told:  "a/a changed, a/b changed, a/look changed, a/c changed", want: map[string]string{"seen": "12", "c": "3"}},
		{name: "two steps on one file", order: true, host: []string{"f /x 0644 2"},
			steps: []string{write("one", "/x", "1"), write("two", "/x", "2")},
			told:  "a/one changed, a/two changed", want: map[string]string{"x": "2"}},
		{name: "two steps on one file by two paths", order: true, host: []string{"d /real 0755", "f /real/x 0644 2", "l /way /real"},
			steps: []string{write("one", "/real/x", "1"), write("two", "/way/x", "2")},
			told:  "a/one changed, a/two changed", want: map[string]string{"real/x": "2"}},
		{name: "what was a link to a directory becomes a file", order: true, host: []string{"d /real 0755", "l /way /real"},
			steps: []string{write("one", "/way", "1"), write("two", "/way/x", "2")},
			told:  "a/one changed, a/two failed", want: map[string]string{"way": "1", "real/x": gone}},
		{name: "one of them fails", host: []string{"d /dir 0755"},
			steps: []string{write("a", "/a", "1"), "{name: b, action: file.managed, parameters: {name: /no/b, content: x}}", write("dir", "/dir", "x"), write("c", "/c", "3"), write("d", "/d", "4", "require: b")},
			told:  "a/b failed, a/dir failed, a/d unmet, a/a changed, a/c changed", want: map[string]string{"a": "1", "c": "3", "d": gone}},
		{name: "one requires another", steps: []string{write("a", "/a", "1"), write("b", "/b", "2", "require: a"), write("c", "/c", "3", "require: b")},
			told: "a/a changed, a/b changed, a/c changed", want: map[string]string{"c": "3"}},
		{name: "what watches one of them", steps: []string{write("a", "/a", "1"), write("b", "/b", "2"), "{name: w, action: cmd.run, parameters: {cmd: cat a b >seen}, onchanges: a}"},
			told: "a/a changed, a/b changed, a/w changed", want: map[string]string{"seen": "12"}},
		{name: "a condition looks at the host when what stands before it is there",
			steps: []string{write("a", "/a", "1"), write("b", "/b", "2", `conditions: {when: {condition: "steps['a'].State == 'ok'"}}`)},
			told:  "a/a changed, a/b changed", want: map[string]string{"b": "2"}},
		{name: "a step that has to stop the run", order: true, host: []string{"d /dir 0755"},
			steps: []string{write("a", "/a", "1"), write("dir", "/dir", "x", "runOptions: {failHard: true}"), write("b", "/b", "2")},
			told:  "a/a changed, a/dir failed", want: map[string]string{"a": "1", "b": gone}},
		{name: "only the mode differs", host: []string{"f /a 0600 1", "f /b 0600 1"},
			steps: []string{"{name: a, action: file.managed, parameters: {name: /a, mode: '0644'}}", write("b", "/b", "2")},
			told:  "a/a changed, a/b changed", want: map[string]string{"a": "1", "b": "2"}},
	} {
		for _, ordering := range []string{"ansible", "genius"} {
			if ordering == "genius" && c.order {
				continue
			}
			t.Run(c.name+"/"+ordering, func(t *testing.T) { checkGroup(t, ordering, c.host, c.steps, c.told, c.want) })
		}
	}
}

func checkGroup(t *testing.T, ordering string, host, steps []string, want string, files map[string]string) {
	s := newScene(t, host...)
	p, err := s.bindText("runOptions: {ordering: " + ordering + "}\nsteps:\n- " + strings.Join(steps, "\n- ") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	r := s.runAll(context.Background(), p)
	if got := told(r); got != want && ordering == "ansible" {
		t.Errorf("told %s\nwant %s\nwhy  %s", got, want, r.Why())
	}
	for name, want := range files {
		if got := s.content(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name := range s.tree() {
		if strings.Contains(name, ".pullet") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestManyGroups: more files than one group takes are placed in the order of their file, and a second run finds nothing to do.
func TestManyGroups(t *testing.T) {
	const files = 600
	s := newScene(t)
	var steps, want []string
	for i := range files {
		steps = append(steps, write(fmt.Sprint("f", i), fmt.Sprint("/d/f", i), fmt.Sprint(i)))
		want = append(want, fmt.Sprintf("a/f%d changed", i))
	}
	p, err := s.bindText("steps:\n- " + strings.Join(steps, "\n- ") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := told(s.runAll(context.Background(), p)); got != strings.Join(want, ", ") {
		t.Errorf("told %s", got)
	}
	for i := range files {
		if got := s.content(fmt.Sprint("d/f", i)); got != fmt.Sprint(i) {
			t.Errorf("f%d has %q", i, got)
		}
	}
	if r := s.runAll(context.Background(), p); r.Counts[apply.OK] != files {
		t.Errorf("a second run: %v", r.Counts)
	}
}

// TestGroupOnDisk: before a command starts, the journal says of the files before it that they are durable; before a file gets its name, that its step
// started.
func TestGroupOnDisk(t *testing.T) {
	s := newScene(t)
	var seen []string
	copied := filepath.Join(s.root, "journal")
	p, err := s.bindText("steps:\n- " + strings.Join([]string{write("a", "/a", "1"), write("b", "/b", "2"),
		fmt.Sprintf("{name: c, action: cmd.run, parameters: {cmd: cp %s/journal.jsonl %s}}", s.state, copied)}, "\n- ") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if r := s.runAll(context.Background(), p); r.Failed() {
		t.Fatal(r.Why())
	}
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.Contains(line, `"settled"`):
			seen = append(seen, "settled")
		case strings.Contains(line, `"end":true`):
			seen = append(seen, "end "+between(line, `"step":"`, `"`))
		case strings.Contains(line, `"step"`):
			seen = append(seen, "start "+between(line, `"step":"`, `"`))
		}
	}
	want := []string{"start a/a", "start a/b", "end a/a", "end a/b", "settled", "start a/c"}
	if !slices.Equal(seen, want) {
		t.Errorf("the journal has %q, want %q", seen, want)
	}
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	out, _, _ := strings.Cut(rest, to)
	return out
}

// TestGroupCutOffTwice: what a run changed that was cut off is still a change when the run that goes on is cut off, too.
func TestGroupCutOffTwice(t *testing.T) {
	job := text("", write("conf", "/conf", "x"), sh("one", "true"), sh("two", "true"))
	history{name: "conf", pulls: []pull{{job: job, cut: "conf"}, {job: job, again: true, cut: "one"}, {job: job, again: true}},
		told: "a/conf changed, a/one changed, a/two changed", want: map[string]string{"conf": "x"}}.check(t)
}
