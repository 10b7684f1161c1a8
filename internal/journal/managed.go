package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/pullet/pullet/internal/durable"
)

// Managed is what the catalog of a node brought to it: how drift is told from a change by git, and what is no longer
// declared is found.
type Managed struct {
	Digest string            `json:"digest"`           // of the catalog that was applied as a whole, with its version
	Steps  map[string]string `json:"steps,omitempty"`  // what each step said when it was applied last, as a digest
	Things map[string]Thing  `json:"things,omitempty"` // by the id of the resource
	Left   []string          `json:"left,omitempty"`   // the ids of those that no step declares any longer
	Owed   []string          `json:"owed,omitempty"`   // steps that have not answered a change of what they watch
}

// Thing is a resource that a step brought to the node.
type Thing struct {
	Job      string         `json:"job"`
	Step     string         `json:"step"`
	Order    int            `json:"order"`              // of the step in its run: what came last goes first
	New      bool           `json:"new,omitempty"`      // it was not there before
	Prune    bool           `json:"prune,omitempty"`    // what the job said of things that it no longer declares
	Path     string         `json:"path,omitempty"`     // of a file
	Part     bool           `json:"part,omitempty"`     // it stands in the file
	Absent   string         `json:"absent,omitempty"`   // the action that removes it
	Params   map[string]any `json:"params,omitempty"`   // of that action
	Watchers []string       `json:"watchers,omitempty"` // the steps that react when it changes

	Sensitive bool `json:"sensitive,omitempty"` // what is said of it stays out of reports
	Secret    bool `json:"secret,omitempty"`    // it holds a secret: so may the next diff of it
}

// loadManaged reads what is managed.
func (j *Journal) loadManaged() error {
	err := durable.ReadJSON(j.path("managed.json"), &j.managed)
	if j.managed.Steps == nil {
		j.managed.Steps = map[string]string{}
	}
	if j.managed.Things == nil {
		j.managed.Things = map[string]Thing{}
	}
	return err
}

// Managed is what the node's last runs brought to it. It is the journal's own: change it and SaveManaged.
func (j *Journal) Managed() *Managed { return &j.managed }

// SaveManaged writes what is managed, whole and durable, unless that is on disk already.
func (j *Journal) SaveManaged() error {
	text, err := json.Marshal(j.managed)
	if err != nil {
		return err
	}
	path := j.path("managed.json")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(bytes.TrimSpace(have), text) {
		return nil
	}
	if err := durable.Place(path, text); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}
