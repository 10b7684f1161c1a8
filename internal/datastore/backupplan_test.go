package datastore

import (
	"slices"
	"testing"
	"time"
)

// TestUntilDue: when the next backup is made.
func TestUntilDue(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	last := func(ago time.Duration) Past { return Past{Last: Made{Name: "x", At: now.Add(-ago)}} }
	failed := func(p Past, times int, ago time.Duration) Past {
		p.Failed = Failed{Times: times, At: now.Add(-ago)}
		return p
	}
	for name, c := range map[string]struct {
		past  Past
		every time.Duration
		want  time.Duration
	}{
		"never":                          {Past{}, day, 0},
		"just now":                       {last(0), day, day},
		"a while ago":                    {last(23 * time.Hour), day, time.Hour},
		"long ago":                       {last(9 * day), day, 0},
		"the clock was ahead":            {last(-99 * day), day, 0},
		"failed once":                    {failed(last(2*day), 1, 20*time.Second), day, 40 * time.Second},
		"failed once, and never a good":  {failed(Past{}, 1, 20*time.Second), day, 40 * time.Second},
		"failed three times":             {failed(last(2*day), 3, 0), day, 4 * time.Minute},
		"failed often":                   {failed(last(2*day), 1000, 0), day, time.Hour},
		"failed often, and every minute": {failed(last(day), 1000, 0), time.Minute, time.Minute},
		"failed a while ago":             {failed(last(2*day), 2, time.Hour), day, 0},
		"failed when the clock was off":  {failed(last(2*day), 2, -99*day), day, 0},
		"failed before its time":         {failed(last(time.Hour), 1, 0), day, 23 * time.Hour},
	} {
		if got := c.past.untilDue(c.every, now); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestSurplus: which files of a directory go: the oldest backups of this fleet, and what a kill left, and nothing else.
func TestSurplus(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	names := []string{
		"prod-20261120T120000Z.tar", "prod-20261121T120000Z.tar.age", "prod-20261122T120000Z.tar", "prod-20261123T120000Z.tar",
		"production-20261101T120000Z.tar", "prod-eu-20261101T120000Z.tar", "xprod-20261101T120000Z.tar", // of other fleets
		"prod-20261101T120000Z.tar.bak", "prod-20261101T120000Z.db", "prod-20261101.tar", "prod-20261101T120000Z.tar1", // of people
		"prod-20269901T120000Z.tar", ".prod-20261101T120000Z.tar", "notes", "prod",
		".prod-20261119T120000Z.tar123456", ".prod-20261119T120000Z.tar.age123456", // of a kill
		".prod-20261126T110000Z.tar123456", // another host writes it
	}
	for _, c := range []struct {
		fresh string
		keep  int
		want  []string
	}{
		{"prod-20261123T120000Z.tar", 4, nil},
		{"prod-20261123T120000Z.tar", 3, []string{"prod-20261120T120000Z.tar"}},
		{"prod-20261123T120000Z.tar", 1, []string{"prod-20261120T120000Z.tar", "prod-20261121T120000Z.tar.age", "prod-20261122T120000Z.tar"}},
		{"prod-20261120T120000Z.tar", 2, []string{"prod-20261121T120000Z.tar.age", "prod-20261122T120000Z.tar"}}, // the clock went back
	} {
		got := surplus(names, "prod", c.fresh, c.keep, now)
		slices.Sort(got)
		want := append([]string{".prod-20261119T120000Z.tar.age123456", ".prod-20261119T120000Z.tar123456"}, c.want...)
		if !slices.Equal(got, want) {
			t.Errorf("%s, %d:\ngot  %q\nwant %q", c.fresh, c.keep, got, want)
		}
	}
	if got := surplus([]string{"a.b-20261120T120000Z.tar", "aXb-20261120T120000Z.tar"}, "a.b", "f", 1, now); !slices.Equal(got, []string{"a.b-20261120T120000Z.tar"}) {
		t.Errorf("a name is no pattern: %q", got)
	}
}

// TestBackupSettings: what is wrong with the settings is said before they are needed, without what may be a secret.
func TestBackupSettings(t *testing.T) {
	for _, c := range []struct {
		Backups
		want string
	}{
		{Backups{}, ""},
		{Backups{To: "/b"}, ""},
		{Backups{To: "/b", Every: shortest, Keep: 3, Recipients: []string{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}}, ""},
		{Backups{To: "https://b.example.org/x", HeadersFile: "/h", CA: "/ca"}, ""},
		{Backups{Every: shortest}, "datastore.backup.to is missing: it says where backups go"},
		{Backups{To: "b"}, "datastore.backup.to: b is neither an absolute directory nor an https URL"},
		{Backups{To: "http://secret@b.example.org"}, "datastore.backup.to: write an https URL, such as https://backup.example.org/pullet, or a directory"},
		{Backups{To: "https://b.example.org/%zz?secret"}, "datastore.backup.to: write an https URL, such as https://backup.example.org/pullet, or a directory"},
		{Backups{To: "/b", Every: 1}, "datastore.backup.every: it has to be some time, such as 24h"},
		{Backups{To: "/b", Keep: -1}, "datastore.backup.keep: -1 is not a number of backups from 1 on"},
		{Backups{To: "https://b.example.org", Keep: 1}, "datastore.backup.keep is for directories: the server of the URL removes what is old"},
		{Backups{To: "/b", CA: "/ca"}, "datastore.backup.headersFile and ca are for URLs, and to is a directory"},
		{Backups{To: "/b", Recipients: []string{"ada"}}, `datastore.backup.recipients: invalid key "ada": write age1..., ssh-ed25519 KEY or ssh-rsa KEY`},
	} {
		got := ""
		if err := (Config{Addresses: Addresses{Client: "h:1"}, Backup: c.Backups}).Check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v\ngot  %s\nwant %s", c.Backups, got, c.want)
		}
	}
}
