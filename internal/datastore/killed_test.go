package datastore

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/tier"
	"github.com/pullet/pullet/state"
)

const servedByChild = "PULLET_TEST_DATASTORE"

// TestServeForParent serves a datastore in a process of its own, which TestKilled kills.
func TestServeForParent(t *testing.T) {
	text := os.Getenv(servedByChild)
	if text == "" {
		t.Skip("this is no child of another test")
	}
	log := logrus.New()
	log.Out = io.Discard
	o := Options{
		Fleet: fleetName, Node: "db1", Log: logrus.NewEntry(log),
		Invited: func(state.Invitation, *authority.Answer) error { return nil },
	}
	if err := json.Unmarshal([]byte(text), &o.Config); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// child serves the datastore in another process. It returns when the door is open.
func (f *fleet) child() *exec.Cmd {
	f.Helper()
	text, err := json.Marshal(f.Config)
	f.must(err)
	_ = os.Remove(f.DoorSocket())
	c := exec.Command(os.Args[0], "-test.run=^TestServeForParent$")
	c.Env = append(os.Environ(), servedByChild+"="+string(text))
	f.must(c.Start())
	f.until("the door is open", func() bool {
		_, err := os.Stat(f.DoorSocket())
		return err == nil
	})
	return c
}

// TestKilled: a datastore that is killed while hosts join loses none of those that joined, and the others can be
// invited again. Nobody is half let in.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := made(t)
	seed := tier.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range 2 {
		c := f.child()
		s := f.store("admin")
		names := []string{"web0", "web1"} // these join again and again
		for n := range 6 {
			names = append(names, fmt.Sprintf("web%d-%d", round, n))
		}
		last := random.IntN(len(names))
		var lost []string
		for n, name := range names {
			i, token, err := authority.Invite(name, authority.Node, "admin", time.Now().Add(time.Hour).UTC())
			f.must(err)
			if err := s.Identities.Invite(t.Context(), state.Invitation{Invitation: i}); err != nil {
				lost = append(lost, name)
				break
			}
			delete(f.credentials, name)
			if n == last {
				go func() { _ = c.Process.Kill() }()
			}
			credentials, err := f.asks(token)
			if err != nil {
				lost = append(lost, name)
				break
			}
			f.credentials[name] = credentials
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		f.serve()
		f.wantWhole()
		s = f.store("admin")
		for _, name := range lost {
			f.join(s, name, authority.Node)
		}
		f.wantWhole()
		f.end()
	}
}

// wantWhole fails unless those on record are the users of etcd, and all that joined may write.
func (f *fleet) wantWhole() {
	f.Helper()
	s := f.keeperStore()
	users, err := users{s.Client, fleetName}.list(f.Context())
	f.must(err)
	all, err := s.Identities.All(f.Context())
	f.must(err)
	for _, name := range users {
		if _, known := all.Identities[name]; !known {
			f.Errorf("%s is a user and nobody on record", name)
		}
	}
	for name := range all.Identities {
		if !slices.Contains(users, name) {
			f.Errorf("%s is on record and no user", name)
		}
		if got, err := s.Client.UserGet(f.Context(), name); err != nil || len(got.Roles) != 2 {
			f.Errorf("%s has %v: %v", name, got, err)
		}
	}
	for name := range f.credentials {
		if name == "root" {
			continue
		}
		if _, err := f.client(name).Put(f.Context(), "/pullet/prod/bell", ""); err != nil {
			f.Errorf("%s joined, and cannot write: %v", name, err)
		}
	}
}
