package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/pullet/pullet/internal/durable"
)

// OpenStep is the key of the end of a step whose action succeeded and whose conditions after it are still asked for.
const OpenStep = "open"

// Finish ends the run: what is done for good is kept, the rest forgotten. Steps that the catalog no longer has are
// dropped. With a step that succeeded and waits for what comes behind that, the next run goes on.
func (j *Journal) Finish(has, waits func(step string) bool) error {
	for step := range j.done {
		if !has(step) {
			delete(j.done, step)
			j.dirty = true
		}
	}
	if err := j.saveDone(); err != nil {
		return err
	}
	if err := j.Close(); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	maps.DeleteFunc(j.steps, func(step string, line journalLine) bool { return !line.End || !line.OK || !waits(step) })
	if len(j.steps) > 0 {
		text, err := whole(j.head, j.steps)
		if err := errors.Join(err, durable.Place(j.path("journal.jsonl"), text)); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		return nil
	}
	j.head = journalLine{}
	if err := os.Remove(j.path("journal.jsonl")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// whole is what the file says with the steps that are left of a run. What groups changed is settled.
func whole(head journalLine, steps map[string]journalLine) ([]byte, error) {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	err := lines.Encode(head)
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		line := steps[step]
		line.Grouped = false
		err = errors.Join(err, lines.Encode(line))
	}
	return text.Bytes(), err
}

// saveDone writes what is done for good, where that is not on disk yet.
func (j *Journal) saveDone() error {
	if !j.dirty {
		return nil
	}
	if err := durable.WriteJSON(j.path("done.json"), j.done); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.dirty = false
	return nil
}
