// Package journal is a node's memory of what it did, in three files of its state directory: the run in progress, what
// is done for good, and what the node's steps manage.
package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pullet/pullet/internal/durable"
)

// Journal is a node's memory of what it did, written before and after every step that changes something. It has two
// parts: the run in progress (journal.jsonl, appended line by line), and what is done for good (done.json): results of
// actions that cannot check whether they are needed. A Journal is not safe for concurrent use; the run lock guards its
// files.
//
// A line is on disk when the method that writes it returns, except for those of steps in a group: see StartGrouped.
type Journal struct {
	dir     string
	file    *os.File
	done    map[string]doneLine
	dirty   bool
	managed Managed

	progress
}

// journalLine is a line of journal.jsonl: the first names the run, the others a step's start or end.
type journalLine struct {
	Run     string `json:"run,omitempty"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
	Step    string `json:"step,omitempty"`
	End     bool   `json:"end,omitempty"`
	OK      bool   `json:"ok,omitempty"`
	Key     string `json:"key,omitempty"`
	Boot    string `json:"boot,omitempty"` // in which a step started that ends with the next one
	// the end of a step of a group: until it is settled, only the process that wrote it believes it
	Grouped bool            `json:"grouped,omitempty"`
	Settled bool            `json:"settled,omitempty"` // what the steps of groups changed is durable, up to here
	Result  json.RawMessage `json:"result,omitempty"`

	Made    map[string]Thing `json:"made,omitempty"`    // what a step is going to make
	Attempt string           `json:"attempt,omitempty"` // a step that the fleet is told of is about to start
}

// doneLine is what is known of a step beyond its run: its success, or else its last attempt.
type doneLine struct {
	Key     string          `json:"key"`
	Result  json.RawMessage `json:"result,omitempty"` // of its success
	Attempt string          `json:"attempt,omitempty"`
	Began   bool            `json:"began,omitempty"` // the attempt began, and has no end
}

// Open reads the journal below a state directory. A line that was cut off in mid-write does not count.
func Open(dir string) (*Journal, error) {
	j := &Journal{dir: dir, done: map[string]doneLine{}, progress: progress{steps: map[string]journalLine{}}}
	err := durable.ReadJSON(j.path("done.json"), &j.done)
	if _, damaged := errors.AsType[*durable.DamagedError](err); damaged {
		return nil, fmt.Errorf("%w; commands that have already run here then run again", err)
	}
	if err != nil {
		return nil, err
	}
	if j.done == nil { // null is JSON, too
		j.done = map[string]doneLine{}
	}
	if err := j.loadManaged(); err != nil {
		return nil, err
	}
	f, err := os.Open(j.path("journal.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 64<<20)
	for scan.Scan() {
		var line journalLine
		if json.Unmarshal(scan.Bytes(), &line) == nil {
			j.remember(line)
		}
	}
	return j, scan.Err()
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }

func (j *Journal) remember(line journalLine) {
	switch {
	case line.Settled:
		j.grouped = nil
		return
	case line.Step == "" && line.Run == "": // damage that happens to be JSON
		return
	case line.Step == "":
		j.head = line
		return
	case line.Attempt != "":
		j.done[line.Step], j.dirty = doneLine{Key: line.Key, Attempt: line.Attempt}, true
		return
	}
	if d, ok := j.done[line.Step]; ok && d.Attempt != "" {
		d.Began = !line.End || line.Key == OpenStep
		j.done[line.Step], j.dirty = d, true
	}
	if line.Made == nil {
		line.Made = j.steps[line.Step].Made
	}
	j.steps[line.Step] = line
	if line.Grouped {
		j.grouped = append(j.grouped, line.Step)
	}
	if line.End && line.OK && line.Key != "" && line.Key != OpenStep {
		j.done[line.Step] = doneLine{Key: line.Key, Result: line.Result}
		j.dirty = true
	}
}

// Begin starts a run, or goes on with the unfinished one if that was for the same version and catalog. It returns the
// id of the run that goes on. Nothing is written before the first step starts.
func (j *Journal) Begin(run, version, digest string) string {
	if j.Resumes(version, digest) {
		return j.head.Run
	}
	j.head = journalLine{Run: run, Version: version, Digest: digest}
	j.steps, j.grouped, j.doubted = map[string]journalLine{}, nil, nil
	return run
}

// abandoned is the digest of a run that no other goes on with.
const abandoned = "abandoned"

// Abandon makes sure that no run goes on with this one: what it did is about to be undone.
func (j *Journal) Abandon() error {
	if j.file == nil {
		if len(j.steps) == 0 { // nothing was started
			return nil
		}
		if err := j.create(); err != nil { // all of it was done by the run that was cut off
			return fmt.Errorf("journal: %w", err)
		}
	}
	head := j.head
	head.Digest = abandoned
	return j.append(head)
}

// Booted ends the steps that were to make the host boot, if it did: their start was in another boot. It comes before
// Begin.
func (j *Journal) Booted(boot string) error {
	for _, line := range j.steps {
		if line.Boot != "" && line.Boot != boot && !line.End {
			line.End, line.OK = true, true
			j.remember(line)
		}
	}
	return j.saveDone()
}

// ended reports a successful end, and reads its result.
func (l journalLine) ended(result any) bool {
	return l.End && l.OK && json.Unmarshal(l.Result, result) == nil
}

// Done reports whether a step succeeded once and for all under a key, and reads its result.
func (j *Journal) Done(step, key string, result any) bool {
	line, ok := j.done[step]
	return ok && line.Key == key && line.Attempt == "" && json.Unmarshal(line.Result, result) == nil
}

// Start records that a step begins to change the host, and what it is going to make. It is on disk when Start returns.
func (j *Journal) Start(step string, made map[string]Thing) error {
	return j.append(journalLine{Step: step, Made: made})
}

// StartBoot records that a step makes the host boot. Once it booted, the step has succeeded with the result, under the
// key.
func (j *Journal) StartBoot(step, boot, key string, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return j.append(journalLine{Step: step, Boot: boot, Key: key, Result: data})
}

// End records how a step ended. A success with a key is remembered beyond the run.
func (j *Journal) End(step, key string, ok bool, result any) error {
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return j.append(journalLine{Step: step, End: true, OK: ok, Key: key, Result: data})
}

// create opens the file of the run in progress: a new one, or that of the run which goes on.
func (j *Journal) create() error {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	resumes := len(j.steps) > 0
	if !resumes {
		if err := j.saveDone(); err != nil { // what is known of the run that is forgotten here
			return err
		}
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(j.path("journal.jsonl"), flags, 0o600)
	if err != nil {
		return err
	}
	j.file = f
	if resumes {
		return j.goOn()
	}
	return errors.Join(j.write(j.head), j.Sync(), durable.SyncDir(j.dir))
}

// goOn ends a line that was cut off, and writes down which ends are not believed: they must not be settled later.
func (j *Journal) goOn() error {
	if _, err := j.file.WriteString("\n"); err != nil {
		return err
	}
	for step := range j.doubted {
		if err := j.write(j.steps[step]); err != nil {
			return err
		}
	}
	return nil
}

// append writes a line and makes it durable, with all lines before it.
func (j *Journal) append(line journalLine) error {
	if err := j.put(line); err != nil {
		return err
	}
	return j.Sync()
}

// put writes a line, the first of which makes the file.
func (j *Journal) put(line journalLine) error {
	if j.file == nil {
		if err := j.create(); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return j.write(line)
}

func (j *Journal) write(line journalLine) error {
	data, err := json.Marshal(line)
	if err != nil {
		return err
	}
	if _, err := j.file.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.remember(line)
	return nil
}
