package agent

import (
	"strings"
	"testing"
)

// TestEtcdGoesAwayInMidPull: a pull that ends because etcd went away says that, and does not try to tell etcd so.
func TestEtcdGoesAwayInMidPull(t *testing.T) {
	t.Parallel()
	web1, _, m := pair(t, job("one", "true"), nil)
	web1.exits(ExitOK, "")
	web1.log.Reset()
	web1.write("f/web1/root/etc/motd", "by hand")
	asked := 0
	m.mu.Lock()
	m.refuse = func(string) bool { asked++; return asked > 2 } // it is registered then
	m.mu.Unlock()
	out, err := web1.with(Options{})
	if said := saidBy(out, err); !strings.Contains(said, "refuses this host") || strings.Contains(web1.log.String(), "could not be made is not recorded") {
		t.Errorf("%s\n%s", said, &web1.log)
	}
	m.denies("")
	if web1.exits(ExitOK, ""); web1.file("etc/motd") != "one" {
		t.Errorf("%q", web1.file("etc/motd"))
	}
}
