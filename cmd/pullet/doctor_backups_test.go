package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/render"
)

// TestDoctorNamesOldBackups: doctor says when the last good backup is older than twice the time between two, why, and
// what helps.
func TestDoctorNamesOldBackups(t *testing.T) {
	now := time.Now()
	dir, to := filepath.Join(t.TempDir(), "datastore"), t.TempDir()
	c := agent.Config{Datastore: datastore.Config{Dir: dir, Addresses: datastore.Addresses{Client: "127.0.0.1:1"}}}
	made, err := datastore.Create(c.Datastore, "prod", now)
	if err != nil {
		t.Fatal(err)
	}
	c.Datastore.Backup = datastore.Backups{Every: render.Duration(24 * time.Hour), To: to}
	if err := os.WriteFile(filepath.Join(to, "there.tar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	last := func(name string, ago time.Duration, failed int) datastore.Past {
		return datastore.Past{
			To: to, Last: datastore.Made{Name: name, At: now.Add(-ago), Authority: made.Fingerprint()},
			Failed: datastore.Failed{Times: failed, At: now, Why: "no room"},
		}
	}
	elsewhere, rotated := last("there.tar", time.Hour, 0), last("there.tar", time.Hour, 0)
	elsewhere.To, rotated.Last.Authority = "/elsewhere", "sha256:another"
	const none, cure = "there is none that a restore would take in ", "see journalctl -u pullet-etcd, fix it, and try: pullet datastore backup"
	for what, one := range map[string]struct {
		past            datastore.Past
		state, says, do string
	}{
		"lately":                    {last("there.tar", 47*time.Hour, 0), fine, "the last one is there.tar in " + to + ", of ", ""},
		"lately, and a failure":     {last("there.tar", 30*time.Hour, 2), warn, "; then it failed 2 times: no room", ""},
		"long ago":                  {last("there.tar", 49*time.Hour, 0), bad, "the last one is there.tar in " + to + ", of ", cure},
		"long ago, and failures":    {last("there.tar", 49*time.Hour, 9), bad, "; then it failed 9 times: no room", cure},
		"gone":                      {last("gone.tar", time.Hour, 0), bad, none + to, cure},
		"never":                     {datastore.Past{}, bad, none + to, cure},
		"to another place":          {elsewhere, bad, none + to, cure},
		"of an authority of before": {rotated, bad, none + to, cure},
	} {
		text, err := json.Marshal(one.past)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "backups.json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		got := backups(c, now)
		if len(got) != 1 || got[0].State != one.state || !strings.Contains(got[0].What, one.says) || got[0].Do != one.do {
			t.Errorf("%s: %+v, want %s %q; %q", what, got, one.state, one.says, one.do)
		}
	}
	if got := backups(agent.Config{}, now); len(got) > 0 {
		t.Errorf("a host without a datastore: %+v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "backups.json"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := backups(c, now); len(got) != 1 || got[0].State != bad || !strings.Contains(got[0].What, "backups.json is damaged") {
		t.Errorf("%+v", got)
	}
}
