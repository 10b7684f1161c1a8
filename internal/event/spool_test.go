package event

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pullet/pullet/state"
)

// TestDamagedSpool: what is damaged on the disk of a host is counted as lost, and keeps no other event from being told.
func TestDamagedSpool(t *testing.T) {
	good := `{"id":"e1","name":"x","by":"web1","time":"2026-03-01T12:00:00Z"}`
	for name, c := range map[string]struct {
		text          string
		kept, dropped int
	}{
		"whole":             {`{"events":[` + good + `]}`, 1, 0},
		"cut off":           {`{"events":[` + good, 0, 1},
		"empty":             {``, 0, 1},
		"a list":            {`[` + good + `]`, 0, 1},
		"nothing":           {`null`, 0, 0},
		"no event":          {`{"events":[{},` + good + `]}`, 1, 1},
		"a bad name":        {`{"events":[` + good + `,{"id":"e2","name":"/x","by":"web1","time":"2026-03-01T12:00:00Z"}],"dropped":2}`, 1, 3},
		"of another host":   {`{"events":[{"id":"e2","name":"x","by":"web2","time":"2026-03-01T12:00:00Z"},` + good + `]}`, 1, 1},
		"fewer than nobody": {`{"events":[` + good + `],"dropped":-5}`, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := Spool{Dir: t.TempDir(), By: "web1"}
			if err := os.WriteFile(filepath.Join(s.Dir, "events.json"), []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			more := state.Event{ID: "e9", Name: "y", By: "web1", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
			if err := s.Add(t.Context(), more); err != nil {
				t.Fatal(err)
			}
			have, err := s.read()
			if err != nil || len(have.Events) != c.kept+1 || have.Events[c.kept].ID != "e9" || have.Dropped != c.dropped {
				t.Errorf("%d events, %d dropped: %v", len(have.Events), have.Dropped, err)
			}
		})
	}
}
