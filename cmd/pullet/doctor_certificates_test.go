package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/state"
)

// TestDoctorNamesTheEndOfCertificates: one that ends within 14 days is a warning, one that ended is bad, and what helps
// depends on who made it.
func TestDoctorNamesTheEndOfCertificates(t *testing.T) {
	made := time.Now()
	_, text := certificateOf(t, made) // for an hour
	file := filepath.Join(t.TempDir(), "host.pem")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := agent.Config{Etcd: agent.Etcd{TLS: state.TLS{Cert: file}}}
	const day = 24 * time.Hour
	for _, one := range []struct {
		at    time.Time
		renew bool
		state string
		says  string
	}{
		{made.Add(-30 * day), false, fine, "none ends within 14 days"},
		{made.Add(-9 * day), false, warn, file + " ends in 9 days, "},
		{made.Add(2 * time.Hour), false, bad, file + " ended "},
		{made.Add(-9 * day), true, warn, "a pull renews it while the datastore serves; once it ended: pullet fleet invite web1"},
	} {
		c.Etcd.Renew, c.Node.Name = one.renew, "web1"
		got := certificates(c, one.at)
		if len(got) != 1 || got[0].State != one.state || !strings.Contains(got[0].What+"; "+got[0].Do, one.says) {
			t.Errorf("%+v, want %s %q", got, one.state, one.says)
		}
	}
}
