package datastore

import (
	"maps"
	"slices"
	"time"

	"github.com/pullet/pullet/state"
)

// todo is what the keeper does next, by name.
type todo struct {
	revoke      []string // who loses all certificates
	grant       []string // whom etcd does not know yet
	drop        []string // users of etcd whom nobody invited
	uses        []string // who says that the next certificate is in its place
	issue       []string // who gets the next certificate
	invitations []string // that ended
	revoked     []string // certificates that would have ended by themselves
}

// decide says what the keeper does, from what is on record and the users of etcd.
func decide(c state.Credentials, users []string, now time.Time) (t todo) {
	for _, name := range slices.Sorted(maps.Keys(c.Identities)) {
		switch {
		case c.Revoking[name] || c.Gone[name]:
			t.revoke = append(t.revoke, name)
			continue
		case !slices.Contains(users, name):
			t.grant = append(t.grant, name)
		}
		switch r, asks := c.Requests[name]; {
		case asks && r.Uses != "":
			t.uses = append(t.uses, name)
		case asks:
			t.issue = append(t.issue, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(users)) {
		if _, invited := c.Identities[name]; !invited {
			t.drop = append(t.drop, name)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.Invitations)) {
		if now.After(c.Invitations[id].Until) {
			t.invitations = append(t.invitations, id)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(c.Revoked)) {
		if now.After(c.Revoked[number].Until) {
			t.revoked = append(t.revoked, number)
		}
	}
	return t
}

// mostEnding is how many certificates near their end are named.
const mostEnding = 20

// ending are the certificates that end soon, those that end first.
func ending(all map[string]state.Identity, now time.Time) (out []state.EndingSoon) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if until := all[name].Ends(); until.Sub(now) < state.Soon {
			out = append(out, state.EndingSoon{Name: name, Until: until})
		}
	}
	slices.SortStableFunc(out, func(a, b state.EndingSoon) int { return a.Until.Compare(b.Until) })
	return out[:min(len(out), mostEnding)]
}
