package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func every(string) bool { return true }

func none(string) bool { return false }

// open opens the journal of a directory.
func open(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestJournalResumes: what was written is read again, and only the same version and catalog go on.
func TestJournalResumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	if run := j.Begin("r1", "v1", "d1"); run != "r1" {
		t.Errorf("begins %s", run)
	}
	must(t, j.Start("a", nil), j.End("a", "", true, "result of a"), j.Start("b", nil), j.End("b", "", false, "bad"), j.Start("c", nil), j.Close())
	for _, c := range []struct{ version, digest, want string }{{"v1", "d1", "r1"}, {"v2", "d1", "r2"}, {"v1", "d2", "r2"}} {
		j := open(t, dir)
		if run, version := j.Unfinished(); run != "r1" || version != "v1" {
			t.Errorf("unfinished: %s %s", run, version)
		}
		if run := j.Begin("r2", c.version, c.digest); run != c.want {
			t.Errorf("%v: goes on with %s", c, run)
		}
		var result string
		resumed := c.want == "r1"
		if j.Ended("a", &result) != resumed || j.Ended("b", &result) || j.CutOff("c") != resumed || j.CutOff("a") || j.CutOff("b") || j.CutOff("never") {
			t.Errorf("%v: a ended %v, c cut off %v", c, j.Ended("a", &result), j.CutOff("c"))
		}
		if resumed && result != "result of a" {
			t.Errorf("result %q", result)
		}
	}
}

// TestJournalIsDamaged: a line that was cut off, and garbage, count as not written; what follows them is found.
func TestJournalIsDamaged(t *testing.T) {
	t.Parallel()
	head := `{"run":"r1","version":"v","digest":"d"}` + "\n"
	start := func(s string) string { return `{"step":"` + s + `"}` + "\n" }
	end := func(s string) string { return `{"step":"` + s + `","end":true,"ok":true,"result":"x"}` + "\n" }
	for _, c := range []struct {
		name, text, want string // run, ended, cut off
	}{
		{"whole", head + start("a") + end("a"), "r1 [a] []"},
		{"no end", head + start("a"), "r1 [] [a]"},
		{"torn end", head + start("a") + `{"step":"a","end":true,"ok":tr`, "r1 [] [a]"},
		{"torn end without its newline", head + start("a") + strings.TrimSpace(end("a")), "r1 [a] []"},
		{"torn start", head + start("a") + end("a") + `{"step":"`, "r1 [a] []"},
		{"torn head", `{"run":"r1","vers`, "new [] []"},
		{"empty", "", "new [] []"},
		{"zeros at the end", head + start("a") + strings.Repeat("\x00", 4096), "r1 [] [a]"},
		{"garbage in the middle", head + start("a") + "!?\xff\n" + end("a") + start("b"), "r1 [a] [b]"},
		{"an empty line in the middle", head + start("a") + "\n" + end("a"), "r1 [a] []"},
		{"json of another kind", head + start("a") + "{}\nnull\n[]\n7\n" + start("b"), "r1 [] [a b]"},
		{"a garbled end", head + start("a") + strings.Replace(end("a"), `"end"`, "\x00\x00\x00\x00\x00", 1) + start("b"), "r1 [] [a b]"},
		{"an end that does not say that it is one", head + start("a") + strings.Replace(end("a"), `"end":true,`, "", 1), "r1 [] [a]"},
		{"a long line", head + start("a") + strings.Replace(end("a"), `"x"`, `"`+strings.Repeat("x", 3<<20)+`"`, 1), "r1 [a] []"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte(c.text), 0o600))
			if got := found(open(t, dir)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			j := open(t, dir) // it can be written on, and nothing of before is lost
			run := j.Begin("new", "v", "d")
			must(t, j.Start("z", nil), j.End("z", "", true, "x"), j.Close())
			want := strings.Replace(strings.Replace(c.want, "]", " z]", 1), "[ z]", "[z]", 1)
			if got := found(open(t, dir)); got != want {
				t.Errorf("written on (%s): got %s, want %s", run, got, want)
			}
		})
	}
}

// found is what a journal has on record of a run.
func found(j *Journal) string {
	run := j.Begin("new", "v", "d")
	var ended, cutOff []string
	for _, s := range []string{"a", "b", "z"} {
		var result string
		if j.Ended(s, &result) {
			ended = append(ended, s)
		}
		if j.CutOff(s) {
			cutOff = append(cutOff, s)
		}
	}
	return fmt.Sprint(run, " ", ended, " ", cutOff)
}

// TestJournalFinishes: the run is forgotten, what is done for good is kept as long as the catalog has the step.
func TestJournalFinishes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.Start("a", nil), j.End("a", "key", true, 1), j.End("b", "key", true, 2), j.End("c", "key", false, 3), j.End("d", "", true, 4))
	must(t, j.Finish(every, none))
	if _, err := os.Stat(filepath.Join(dir, "journal.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of the run is left: %v", err)
	}
	j = open(t, dir)
	if run, _ := j.Unfinished(); run != "" {
		t.Errorf("unfinished: %s", run)
	}
	var n int
	for step, want := range map[string]bool{"a": true, "b": true, "c": false, "d": false} {
		if j.Done(step, "key", &n) != want {
			t.Errorf("%s: done %v, want %v", step, !want, want)
		}
	}
	if j.Done("a", "another key", &n) {
		t.Error("done under another key")
	}
	j.Begin("r2", "v", "d")
	must(t, j.Finish(func(step string) bool { return step != "b" }, none))
	if j = open(t, dir); j.Done("b", "key", &n) || !j.Done("a", "key", &n) {
		t.Error("b is not in the catalog any more, a is")
	}
}

// TestJournalWaits: of a run that ended, a step that succeeded and waits is kept for the next, until that is through.
func TestJournalWaits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.StartGrouped("a", nil), j.EndGrouped("a", true, "of a"), j.Settled(), j.End("b", "", true, "of b"), j.End("c", "", false, "of c"), j.Start("d", nil))
	must(t, j.Finish(every, func(step string) bool { return step != "b" }))
	for range 2 {
		j = open(t, dir)
		j.Doubt()
		if got := found(j); got != "r1 [a] []" || j.CutOff("d") || len(j.Entries()) != 1 || j.Open("a") {
			t.Errorf("found %s, %v", got, j.Entries())
		}
		must(t, j.Finish(every, every))
	}
	j = open(t, dir)
	j.Begin("r2", "v", "d")
	must(t, j.End("b", OpenStep, true, "of b"), j.Finish(every, every))
	if j = open(t, dir); found(j) != "r1 [a b] []" || !j.Open("b") || j.Open("a") {
		t.Errorf("%v, open: a %v, b %v", j.Entries(), j.Open("a"), j.Open("b"))
	}
	must(t, j.End("b", "", true, "of b"), j.Finish(every, every))
	if j = open(t, dir); j.Open("b") {
		t.Error("b has an end and is open")
	}
	must(t, j.Finish(every, none))
	if run, _ := open(t, dir).Unfinished(); run != "" {
		t.Errorf("unfinished: %s", run)
	}
}

// TestJournalCannotWait: a step that waits and cannot be kept for the next run is an error; the journal is there as it
// was.
func TestJournalCannotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	path := filepath.Join(dir, "journal.jsonl")
	must(t, j.End("a", "", true, "of a"), os.Remove(path), os.Mkdir(path, 0o700))
	if err := j.Finish(every, every); err == nil || !strings.HasPrefix(err.Error(), "journal: "+path+" cannot be written: rename ") {
		t.Error(err)
	}
}

// TestEndWithoutStart: an end can be the first line that is written.
func TestEndWithoutStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.End("a", "", true, "x"), j.Close())
	if got := found(open(t, dir)); got != "r1 [a] []" {
		t.Errorf("found %s", got)
	}
}

// TestFinishWritesNothing where nothing was written.
func TestFinishWritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.Finish(every, none))
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
}

// TestNull: JSON that says nothing is a journal of a node that did nothing.
func TestNull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "done.json"), []byte("null"), 0o600), os.WriteFile(filepath.Join(dir, "managed.json"), []byte(`{"steps":null,"things":null}`), 0o600))
	j := open(t, dir)
	j.Managed().Steps["a"], j.Managed().Things["b"] = "digest", Thing{}
	j.Begin("r1", "v", "d")
	must(t, j.Start("a", nil), j.End("a", "key", true, 1), j.Finish(every, none))
}

// TestDamaged: a journal that cannot be read is an error that names the file, what its loss means, and what helps.
func TestDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "done.json")
	must(t, os.WriteFile(path, []byte(`{"a`), 0o600))
	_, err := Open(dir)
	if want := path + " is damaged: unexpected end of JSON input; move it away to start anew; commands that have already run here then run again"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
