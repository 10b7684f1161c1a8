package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Runs are the ids of the runs whose reports the node kept, the newest first.
func Runs(dir string) ([]string, error) {
	names, err := reportNames(filepath.Join(dir, "reports"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	slices.Reverse(names)
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".json")
	}
	return names, err
}

// LoadReport reads the report of a run.
func LoadReport(dir, run string, report any) error {
	path := filepath.Join(dir, "reports", filepath.Base(run)+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, report); err != nil {
		return fmt.Errorf("%s is damaged: %w; remove it", path, err)
	}
	return nil
}

// Entry is what the journal says of a step of the run in progress.
type Entry struct {
	Step  string `json:"step"`
	State string `json:"state"` // started, done, failed, booting
}

// Entries are the steps of the run in progress, by name.
func (j *Journal) Entries() []Entry {
	var out []Entry
	for step, line := range j.steps {
		e := Entry{step, "started"}
		switch {
		case line.End && line.OK:
			e.State = "done"
		case line.End:
			e.State = "failed"
		case line.Boot != "":
			e.State = "booting"
		}
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Step, b.Step) })
	return out
}

// DoneForGood are the steps that succeeded and do not run again for the same version and parameters, by name.
func (j *Journal) DoneForGood() []string {
	var out []string
	for step := range j.done {
		out = append(out, step)
	}
	slices.Sort(out)
	return out
}
