package system

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// FuzzHosts: edits are done after one time, do what they say, and leave every other line as it is.
func FuzzHosts(f *testing.F) {
	for _, text := range []string{"127.0.0.1 localhost\n::1 localhost # both\n", "10.0.0.5\tdb\t#x", "10.0.0.5 a a\n10.0.0.5 b\n\n# 10.0.0.5 c\n", "10.0.0.5#", "10.0.0.5\r\n", " 10.0.0.5 \v db \f\n"} {
		f.Add(text, true, false)
		f.Add(text, false, true)
	}
	f.Fuzz(func(t *testing.T, text string, exact, unique bool) {
		if parseHosts(text).String() != text {
			t.Fatalf("%q is not kept", text)
		}
		ip := netip.MustParseAddr("10.0.0.5")
		a := &HostPresent{Names: []string{"db.example.org", "db"}, Exact: exact, Unique: unique, ip: ip}
		once := a.edit(text)
		if again := a.edit(once); again != once {
			t.Fatalf("%q -> %q -> %q", text, once, again)
		}
		var at []string
		for _, line := range parseHosts(once) {
			if line.ip == ip {
				at = append(at, line.names...)
			} else if unique && line.ip.Is4() && line.has("db") {
				t.Fatalf("%q: db is still at %s", once, line.ip)
			}
		}
		if !slices.Contains(lower(at), "db") || exact && !slices.Equal(at, a.Names) {
			t.Fatalf("%q -> %q: names %q", text, once, at)
		}
		sameOthers(t, text, once, func(l hostsLine) bool { return l.ip == ip || unique && l.ip.Is4() })

		gone := &HostAbsent{Names: []string{"db"}}
		after := gone.edit(once)
		if slices.ContainsFunc(parseHosts(after), func(l hostsLine) bool { return l.has("db") }) || gone.edit(after) != after {
			t.Fatalf("%q -> %q", once, after)
		}
		sameOthers(t, once, after, func(l hostsLine) bool { return l.has("db") || l.ip == ip })
	})
}

func lower(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, strings.ToLower(n))
	}
	return out
}

// sameOthers: the lines that an edit has nothing to do with still stand there, in their order.
func sameOthers(t *testing.T, before, after string, mine func(hostsLine) bool) {
	t.Helper()
	rest := parseHosts(after)
	for _, line := range parseHosts(before) {
		if mine(line) {
			continue
		}
		i := slices.IndexFunc(rest, func(l hostsLine) bool { return strings.TrimSuffix(l.text, "\n") == strings.TrimSuffix(line.text, "\n") })
		if i < 0 {
			t.Fatalf("%q -> %q: the line %q is gone", before, after, line.text)
		}
		rest = rest[i+1:]
	}
}

// FuzzSchedule: what is taken has five words or a name, and no character that would end its line.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"*/5 * * * *", "@daily", "0,30 8-18/2 1-31 jan-dec sun", "", "* * * *", "*-* * * * *", "1-2-3 * * * *"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkSchedule(text) != nil {
			return
		}
		if n := len(strings.Fields(text)); n != 5 && (n != 1 || text[0] != '@') || strings.ContainsAny(text, "\n\r\t#=%") {
			t.Fatalf("%q is taken", text)
		}
	})
}
