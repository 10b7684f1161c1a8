package datastore

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/tier"
)

const backedUpByChild = "PULLET_TEST_BACKUP"

// TestBackUpForParent makes backups in a process of its own, which TestBackupKilled kills.
func TestBackUpForParent(t *testing.T) {
	text := os.Getenv(backedUpByChild)
	if text == "" {
		t.Skip("this is no child of another test")
	}
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	for at := time.Now().Add(-50 * time.Minute); ; at = at.Add(time.Second) { // another name each time
		if _, err := Backup(t.Context(), c, fleetName, c.Backup.To, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBackupKilled: who is killed while a backup is made leaves none that is half written: each that has its name is
// whole. What else is left goes with a later one.
func TestBackupKilled(t *testing.T) {
	t.Parallel()
	f := created(t)
	f.put(strings.Repeat("x", 1_000_000))
	f.Backup = Backups{To: filepath.Join(t.TempDir(), "backups"), Keep: 1000}
	text, err := json.Marshal(f.Config)
	f.must(err)
	const kills = 5
	seed := tier.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		before, _ := filepath.Glob(f.Backup.To + "/*.tar")
		c := exec.Command(os.Args[0], "-test.run=^TestBackUpForParent$")
		c.Env = append(os.Environ(), backedUpByChild+"="+string(text))
		f.must(c.Start())
		more := 1 + random.IntN(3)
		f.until("some are made", func() bool {
			now, _ := filepath.Glob(f.Backup.To + "/*.tar")
			return len(now) >= len(before)+more
		})
		f.must(c.Process.Kill())
		_ = c.Wait()
	}
	all, err := filepath.Glob(f.Backup.To + "/*.tar")
	if err != nil || len(all) < kills {
		t.Fatal(all, err)
	}
	at := f.restoring("", noKeys)
	for _, at.From = range all {
		if _, err := at.unpack(); err != nil {
			t.Errorf("%s: %v", at.From, err)
		}
	}
	f.must(os.WriteFile(f.Backup.To+"/.prod-20200101T000000Z.tar123", nil, 0o600)) // the kills may have left none by chance
	_, err = Backup(t.Context(), f.Config, fleetName, f.Backup.To, time.Now().AddDate(0, 0, 2))
	f.must(err)
	if left, _ := filepath.Glob(f.Backup.To + "/.*"); len(left) > 0 {
		t.Error(left)
	}
}
