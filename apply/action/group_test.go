package action_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// update makes a step run only in a new version, as the first run of a test is: two steps on one file that do not run
// equally often are no mistake.
const update = "runOptions: {runs: onUpdate}"

// write is a step that writes a file, with more of the step behind.
func write(name, path, content string, more ...string) string {
	return fmt.Sprintf("{name: %s, action: file.managed, parameters: {name: %s, content: %q, makeDirs: true}%s}", name, path, content,
		strings.Join(append([]string{""}, more...), ", "))
}

// TestGroups: steps whose files become durable together come out as if each had run after the one before it.
func TestGroups(t *testing.T) {
	t.Parallel()
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
			steps: []string{write("one", "/x", "1"), write("two", "/x", "2", update)},
			told:  "a/one changed, a/two changed", want: map[string]string{"x": "2"}},
		{name: "two steps on one file by two paths", order: true, host: []string{"d /real 0755", "f /real/x 0644 2", "l /way /real"},
			steps: []string{write("one", "/real/x", "1"), write("two", "/way/x", "2")},
			told:  "a/one changed, a/two changed", want: map[string]string{"real/x": "2"}},
		{name: "what was a link to a directory becomes a file", order: true, host: []string{"d /real 0755", "l /way /real"},
			steps: []string{write("one", "/way", "1"), write("two", "/way/x", "2", update)},
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
		{name: "a directory between files that is right", host: []string{"d /d 0755"},
			steps: []string{write("a", "/d/a", "1"), "{name: dir, action: file.directory, parameters: {name: /d}}", write("b", "/d/b", "2")},
			told:  "a/dir ok, a/a changed, a/b changed", want: map[string]string{"d/a": "1", "d/b": "2"}},
		{name: "a directory between files that is new, and one that cannot be made", order: true,
			steps: []string{write("a", "/a", "1"), "{name: dir, action: file.directory, parameters: {name: /d}}",
				"{name: b, action: file.managed, parameters: {name: /d/b, content: '2'}}",
				"{name: bad, action: file.directory, parameters: {name: /a}, " + update + "}", write("c", "/c", "3")},
			told: "a/a changed, a/dir changed, a/b changed, a/bad failed, a/c changed", want: map[string]string{"a": "1", "d/b": "2", "c": "3"}},
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
	s := actiontest.New(t, host...)
	p, err := s.BindText("runOptions: {ordering: " + ordering + "}\nsteps:\n- " + strings.Join(steps, "\n- ") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	r := s.RunAll(context.Background(), p)
	if got := told(r); got != want && ordering == "ansible" {
		t.Errorf("told %s\nwant %s\nwhy  %s", got, want, r.Why())
	}
	for name, want := range files {
		if got := content(s, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for name := range s.Tree() {
		if strings.Contains(name, ".pullet") {
			t.Errorf("%s is left", name)
		}
	}
}

// TestManyGroups: more files than one group takes are placed in the order of their file, and a second run finds nothing
// to do.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	const files = 600
	s := actiontest.New(t)
	var steps, want []string
	for i := range files {
		steps = append(steps, write(fmt.Sprint("f", i), fmt.Sprint("/d/f", i), fmt.Sprint(i)))
		want = append(want, fmt.Sprintf("a/f%d changed", i))
	}
	p, err := s.BindText("steps:\n- " + strings.Join(steps, "\n- ") + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := told(s.RunAll(context.Background(), p)); got != strings.Join(want, ", ") {
		t.Errorf("told %s", got)
	}
	for i := range files {
		if got := content(s, fmt.Sprint("d/f", i)); got != fmt.Sprint(i) {
			t.Errorf("f%d has %q", i, got)
		}
	}
	if r := s.RunAll(context.Background(), p); r.Counts[apply.OK] != files {
		t.Errorf("a second run: %v", r.Counts)
	}
}

// TestGroupOnDisk: before a command starts, the journal says of the files before it that they are durable; before a
// file gets its name, that its step started. A directory that is right stands in a group, and one that is not ends it.
func TestGroupOnDisk(t *testing.T) {
	t.Parallel()
	a, b, dir := write("a", "/dir/a", "1"), write("b", "/dir/b", "2"), "{name: dir, action: file.directory, parameters: {name: /dir, mode: '0755'}}"
	for _, c := range []struct {
		name        string
		host, steps []string
		want        string
	}{
		{"files", []string{"d /dir 0755"}, []string{a, b}, "start a, start b, end a, end b, settled"},
		{"a directory that is right", []string{"d /dir 0755"}, []string{a, dir, b}, "start a, start b, end a, end b, settled"},
		{"a directory with another mode", []string{"d /dir 0700"}, []string{a, dir, b},
			"start a, end a, settled, start dir, end dir, start b, end b, settled"},
		{"a directory that is a link", []string{"d /real 0755", "l /dir /real"}, []string{a, dir, b}, "start a, end a, start b, end b, settled"},
		{"a new directory", nil, []string{dir, a, b}, "start dir, end dir, start a, start b, end a, end b, settled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := actiontest.New(t, c.host...)
			copied := filepath.Join(s.Root, "journal")
			look := fmt.Sprintf("{name: look, action: cmd.run, parameters: {cmd: cp %s/journal.jsonl %s}}", s.State, copied)
			p, err := s.BindText("steps:\n- " + strings.Join(append(c.steps, look), "\n- ") + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if r := s.RunAll(context.Background(), p); r.Failed() {
				t.Fatal(r.Why())
			}
			text, err := os.ReadFile(copied)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := journalSteps(string(text)), c.want+", start look"; got != want {
				t.Errorf("the journal has\n%s, want\n%s", got, want)
			}
		})
	}
}

// journalSteps says what stands in a journal.
func journalSteps(journal string) string {
	var seen []string
	for line := range strings.Lines(journal) {
		step := between(line, `"step":"a/`, `"`)
		switch {
		case strings.Contains(line, `"settled"`):
			seen = append(seen, "settled")
		case strings.Contains(line, `"end":true`):
			seen = append(seen, "end "+step)
		case step != "":
			seen = append(seen, "start "+step)
		}
	}
	return strings.Join(seen, ", ")
}

func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	out, _, _ := strings.Cut(rest, to)
	return out
}

// TestGroupCutOffTwice: what a run changed that was cut off is still a change when the run that goes on is cut off,
// too.
func TestGroupCutOffTwice(t *testing.T) {
	t.Parallel()
	job := text("", write("conf", "/conf", "x"), sh("one", "true"), sh("two", "true"))
	history{name: "conf", pulls: []pull{{job: job, cut: "conf"}, {job: job, again: true, cut: "one"}, {job: job, again: true}},
		told: "a/conf changed, a/one changed, a/two changed", want: map[string]string{"conf": "x"}}.check(t)
}
