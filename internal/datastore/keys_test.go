package datastore

import (
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
)

// TestDue: the datastore's own credentials are renewed in time, and when the configuration names another address.
func TestDue(t *testing.T) {
	t.Parallel()
	f := made(t)
	now := time.Now()
	for _, c := range []struct {
		what string
		Config
		at   time.Time
		want bool
	}{
		{"new", f.Config, now, false},
		{"before two thirds", f.Config, now.Add(authority.DefaultLife/3*2 - 2*time.Hour), false},
		{"behind two thirds", f.Config, now.Add(authority.DefaultLife / 3 * 2), true},
		{"another name", Config{Dir: f.Dir, Addresses: Addresses{Client: "etcd1.example.org:2379"}}, now, true},
		{"another address of the door", Config{Dir: f.Dir, Addresses: Addresses{Client: f.Client, Door: "192.0.2.1:2378"}}, now, true},
	} {
		k, err := readKeys(c.Config, fleetName)
		f.must(err)
		if due, err := k.due(c.at); err != nil || due != c.want {
			t.Errorf("%s: %v, %v", c.what, due, err)
		}
		if err := k.write(c.at); err != nil {
			t.Fatal(err)
		}
		if due, err := k.due(c.at); err != nil || due {
			t.Errorf("%s, renewed: %v, %v", c.what, due, err)
		}
		f.must((&keys{Config: f.Config, fleet: fleetName, authority: k.authority}).write(now))
	}
}
