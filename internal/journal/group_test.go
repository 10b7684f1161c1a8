package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGroupedEnds: the end of a step of a group counts for others than the process that wrote it when it was settled,
// however the file was cut off. Its result is not lost.
func TestGroupedEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.StartGrouped("a", nil), j.EndGrouped("a", true, "of a"), j.Settled())
	must(t, j.StartGrouped("b", map[string]Thing{"file /b": {}}), j.EndGrouped("b", true, "of b"), j.StartGrouped("c", nil), j.EndGrouped("c", false, "of c"))
	var result string
	if !j.Ended("a", &result) || !j.Ended("b", &result) {
		t.Error("the process itself does not believe what it wrote")
	}
	must(t, j.Sync(), j.Close())
	for range 3 { // each is cut off again, before and after it wrote something
		j = open(t, dir)
		j.Doubt()
		if !j.Ended("a", &result) || j.Ended("b", &result) || !j.CutOff("b") || !j.CutOff("c") || strings.Join(j.Making("b"), "") != "file /b" {
			t.Errorf("a ended %v, b ended %v, b cut off %v, c cut off %v", j.Ended("a", &result), j.Ended("b", &result), j.CutOff("b"), j.CutOff("c"))
		}
		j.Begin("r2", "v", "d")
		must(t, j.Close())
	}
	if !j.Doubted("b", &result) || result != "of b" || j.Doubted("a", &result) || j.Doubted("c", &result) {
		t.Errorf("doubted: b %v %q, a %v, c %v", j.Doubted("b", &result), result, j.Doubted("a", &result), j.Doubted("c", &result))
	}
	// What is settled by the run that goes on are its own steps: not those of the run that was cut off.
	must(t, j.StartGrouped("e", nil), j.EndGrouped("e", true, "of e"), j.Settled(), j.Close())
	j = open(t, dir)
	j.Doubt()
	if !j.Ended("a", &result) || !j.Ended("e", &result) || j.Ended("b", &result) || !j.CutOff("b") {
		t.Errorf("b was settled by another run: ended %v, cut off %v", j.Ended("b", &result), j.CutOff("b"))
	}
}

// TestGroupedLinesBecomeDurable: a line that is durable makes those before it so: they are in the same file, in their
// order.
func TestGroupedLinesBecomeDurable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.StartGrouped("a", nil), j.EndGrouped("a", true, 1), j.Settled(), j.Start("b", nil), j.Close())
	text, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	must(t, err)
	want := `{"run":"r1","version":"v","digest":"d"}
{"step":"a"}
{"step":"a","end":true,"ok":true,"grouped":true,"result":1}
{"settled":true}
{"step":"b"}
`
	if string(text) != want {
		t.Errorf("the journal has\n%s\nwant\n%s", text, want)
	}
}

// TestAbandon: no run goes on with one that was abandoned, and where nothing was started nothing is written.
func TestAbandon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := open(t, dir)
	j.Begin("r1", "v", "d")
	must(t, j.Abandon(), j.Close())
	if _, err := os.Stat(filepath.Join(dir, "journal.jsonl")); !os.IsNotExist(err) {
		t.Errorf("there is a file of a run that started nothing: %v", err)
	}
	j.Begin("r1", "v", "d")
	must(t, j.Start("a", map[string]Thing{"file /a": {}}), j.End("a", "", true, "x"), j.Close())
	j = open(t, dir) // all of it was done by a process that was cut off
	if !j.Resumes("v", "d") {
		t.Fatal("the run does not go on")
	}
	must(t, j.Abandon(), j.Close())
	j = open(t, dir)
	if j.Resumes("v", "d") || len(j.Made()) > 0 {
		t.Errorf("a run goes on with one that was abandoned: %v, made %v", j.Resumes("v", "d"), j.Made())
	}
	if run := j.Begin("r2", "v", "d"); run != "r2" {
		t.Errorf("it goes on with %s", run)
	}
}

// TestSaveManaged: what is on disk is not written again, and what could not be written is written the next time.
func TestSaveManaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "managed.json")
	j := open(t, dir)
	j.Managed().Steps["a"] = "digest"
	must(t, os.MkdirAll(filepath.Join(file, "in the way"), 0o700))
	if err := j.SaveManaged(); err == nil {
		t.Fatal("it could be written")
	}
	must(t, os.RemoveAll(file), j.SaveManaged())
	before, err := os.Stat(file)
	must(t, err)
	j = open(t, dir)
	if j.Managed().Steps["a"] != "digest" {
		t.Errorf("read %v", j.Managed())
	}
	must(t, j.SaveManaged())
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written again: %v", err)
	}
}
