package datastore

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	node := state.Identity{Kind: authority.Node}
	one := map[string]state.Identity{"web1": node}
	asks := map[string]state.Request{"web1": {}}
	yes := map[string]bool{"web1": true}
	ended := map[string]state.Invitation{
		"a": {Invitation: authority.Invitation{Until: noon.Add(-1)}}, "b": {Invitation: authority.Invitation{Until: noon}},
	}
	for _, c := range []struct {
		what  string
		of    state.Credentials
		users []string
		want  todo
	}{
		{"nothing", state.Credentials{}, nil, todo{}},
		{"a user of nobody", state.Credentials{}, []string{"web1"}, todo{drop: []string{"web1"}}},
		{"nobody's request", state.Credentials{Requests: asks}, nil, todo{}},
		{"nobody's mark", state.Credentials{Gone: yes, Revoking: yes}, nil, todo{}},
		{"all is well", state.Credentials{Identities: one}, []string{"web1"}, todo{}},
		{"no user", state.Credentials{Identities: one}, nil, todo{grant: []string{"web1"}}},
		{"asks", state.Credentials{Identities: one, Requests: asks}, []string{"web1"}, todo{issue: []string{"web1"}}},
		{"gone", state.Credentials{Identities: one, Requests: asks, Gone: yes}, []string{"web1"}, todo{revoke: []string{"web1"}}},
		{"revoking", state.Credentials{Identities: one, Requests: asks, Revoking: yes}, nil, todo{revoke: []string{"web1"}}},
		{"invitations", state.Credentials{Invitations: ended}, nil, todo{invitations: []string{"a"}}},
		{"revoked", state.Credentials{Revoked: map[string]state.Revoked{"1": {Until: noon.Add(-1)}, "2": {Until: noon}}}, nil,
			todo{revoked: []string{"1"}}},
	} {
		if got := decide(c.of, c.users, noon); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, and it has to be %+v", c.what, got, c.want)
		}
	}
}

// TestDecideProperties: whatever is on record, nobody gets something who loses it, and who is done for stays done for:
// a second decision about what the first one left does nothing.
func TestDecideProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		c, users := anyCredentials(random)
		got := decide(c, users, noon)
		for _, name := range slices.Concat(got.grant, got.issue) {
			if _, known := c.Identities[name]; !known || c.Revoking[name] || c.Gone[name] {
				t.Fatalf("%s gets something: %+v of %+v", name, got, c)
			}
		}
		for name := range c.Identities {
			if out := c.Revoking[name] || c.Gone[name]; out != slices.Contains(got.revoke, name) {
				t.Fatalf("%s: %+v of %+v", name, got, c)
			}
		}
		if again := decide(c, users, noon); !reflect.DeepEqual(got, again) {
			t.Fatal("it is no function: ", got, again)
		}
		c, users = after(c, users, got)
		if left := decide(c, users, noon); !reflect.DeepEqual(left, todo{}) {
			t.Fatalf("something is left: %+v of %+v", left, c)
		}
	}
}

// anyCredentials is any record, and any users.
func anyCredentials(random *rand.Rand) (c state.Credentials, users []string) {
	c = state.Credentials{
		Identities: map[string]state.Identity{}, Requests: map[string]state.Request{}, Invitations: map[string]state.Invitation{},
		Revoking: map[string]bool{}, Gone: map[string]bool{}, Revoked: map[string]state.Revoked{},
	}
	sometimes := func() bool { return random.IntN(3) == 0 }
	for i := range 6 {
		name := fmt.Sprint("web", i)
		for _, put := range []func(){
			func() { c.Identities[name] = state.Identity{Kind: authority.Node} }, func() { c.Requests[name] = state.Request{} },
			func() { c.Revoking[name] = true }, func() { c.Gone[name] = true }, func() { users = append(users, name) },
			func() { c.Revoked[name] = state.Revoked{Until: noon.Add(time.Duration(random.IntN(3) - 1))} },
			func() { c.Invitations[name] = state.Invitation{} },
		} {
			if sometimes() {
				put()
			}
		}
	}
	return c, users
}

// after is what is on record when it was done.
func after(c state.Credentials, users []string, t todo) (state.Credentials, []string) {
	for _, name := range t.revoke {
		delete(c.Identities, name)
		delete(c.Requests, name)
		delete(c.Revoking, name)
	}
	users = slices.DeleteFunc(users, func(name string) bool {
		return slices.Contains(t.revoke, name) || slices.Contains(t.drop, name)
	})
	for _, name := range t.issue {
		delete(c.Requests, name)
	}
	for _, id := range t.invitations {
		delete(c.Invitations, id)
	}
	for _, number := range t.revoked {
		delete(c.Revoked, number)
	}
	return c, append(users, t.grant...)
}

// TestEnding: people hear of the certificates that end within 14 days, of those that end first, and only of the last
// one that somebody has.
func TestEnding(t *testing.T) {
	now := time.Now()
	ends := func(days ...int) (i state.Identity) {
		for _, d := range days {
			i.Serials = append(i.Serials, state.Serial{Number: "1", Until: now.AddDate(0, 0, d)})
		}
		return i
	}
	all := map[string]state.Identity{"a": ends(13), "b": ends(15), "c": ends(2, 60), "d": ends(-1), "e": ends(5, 9)}
	var names []string
	for _, e := range ending(all, now) {
		names = append(names, e.Name)
	}
	if got := strings.Join(names, " "); got != "d e a" {
		t.Error(got)
	}
	for i := range 2 * mostEnding {
		all[fmt.Sprint("n", i)] = ends(1)
	}
	if got := ending(all, now); len(got) != mostEnding || got[0].Name != "d" {
		t.Error(len(got), got)
	}
}
