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
	"time"
)

// Runs are the ids of the runs whose reports the node kept, the newest first: by when they ended, for ids of the same second do not tell.
func Runs(dir string) ([]string, error) {
	dir = filepath.Join(dir, "reports")
	names, err := reportNames(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	ended := map[string]time.Time{}
	for i, name := range names {
		names[i] = strings.TrimSuffix(name, ".json")
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil { // else it was dropped just now
			ended[names[i]] = info.ModTime()
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return ended[b].Compare(ended[a]) })
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
