package state

import (
	"os"
	"strings"
	"testing"
)

// TestNoOpenSocket: the embedded member listens only at sockets in its directory, which is closed to others. An
// abstract socket has no permissions: every local user could talk to the member as one of its peers.
func TestNoOpenSocket(t *testing.T) {
	open(t, t.TempDir())
	listens := 0
	for _, socket := range ownSockets(t) {
		const listening = "00010000"
		if fields := strings.Fields(socket); fields[3] == listening {
			listens++
			if len(fields) < 8 || strings.HasPrefix(fields[7], "@") {
				t.Errorf("everybody can connect to %q", socket)
			}
		}
	}
	if listens < 2 {
		t.Errorf("%d sockets listen: those of the member are not seen", listens)
	}
}

// ownSockets are the lines of /proc/net/unix about sockets of this process.
func ownSockets(t *testing.T) (out []string) {
	all, err := os.ReadFile("/proc/net/unix")
	must(t, err)
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	own := map[string]bool{}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil { // one was closed meanwhile
			own[to] = true
		}
	}
	for line := range strings.Lines(string(all)) {
		if fields := strings.Fields(line); len(fields) > 6 && own["socket:["+fields[6]+"]"] {
			out = append(out, line)
		}
	}
	return out
}
