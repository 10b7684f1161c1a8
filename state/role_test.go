package state

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var updateRoles = flag.Bool("update-roles", false, "write the table of docs/etcd.md")

// TestRolesPage: docs/etcd.md says who writes which keys, as the kinds of records do.
func TestRolesPage(t *testing.T) {
	const page, begin, end = "../docs/etcd.md", "-update-roles -->\n", "<!-- end of roles -->"
	text, err := os.ReadFile(page)
	must(t, err)
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	want := head + begin + rolesTable() + end + tail
	if *updateRoles {
		must(t, os.WriteFile(page, []byte(want), 0o644))
	} else if want != string(text) {
		t.Errorf("%s does not say who writes which keys: go test ./state -run TestRolesPage -update-roles", page)
	}
}

// rolesTable names the keys by who writes them.
func rolesTable() string {
	by := map[writer][]string{}
	for _, k := range kinds {
		by[k.by] = append(by[k.by], "`"+k.shape+"`")
	}
	var out strings.Builder
	out.WriteString("| written by | keys |\n| --- | --- |\n")
	for _, w := range []writer{itsNode, nodes, operators, keeper} {
		out.WriteString("| " + w.String() + " | " + strings.Join(by[w], ", ") + " |\n")
	}
	return out.String()
}

// TestRoles: a role grants what the kinds say, to the host and to nobody beside it.
func TestRoles(t *testing.T) {
	may := func(key string) bool {
		for _, r := range writable("f", "web1") {
			if r.covers(Range{From: key}) {
				return true
			}
		}
		return false
	}
	for key, want := range map[string]bool{
		"/pullet/f/node/web1": true, "/pullet/f/node/web10": false, "/pullet/f/node/web": false, "/pullet/f/node/web1/x": false,
		"/pullet/f/status/rollout/failed/web1": true, "/pullet/f/status/rollout/failed/web2": false,
		"/pullet/f/service/web1/http": true, "/pullet/f/service/web10/http": false, "/pullet/f/service/web2/web1": false,
		"/pullet/f/slot/web/0": true, "/pullet/f/rollout/v1/gate/web": true, "/pullet/f/current_version": true,
		"/pullet/f/config_state/enable/global": false, "/pullet/f/config_state/pause": false, "/pullet/f/config_state/store": true,
		"/pullet/f/command_given/c": false, "/pullet/f/command_result/c/web1": true, "/pullet/f/identity/web1": false,
		"/pullet/f/request/web1": true, "/pullet/f/request/web2": false, "/pullet/f/invitation/x": false, "/pullet/f/authority": false,
		"/pullet/g/node/web1": false, "/other": false, "/skydns/x": true,
	} {
		if may(key) != want {
			t.Errorf("%s: %t", key, !want)
		}
	}
	for _, all := range []Range{prefixed("/pullet/f/"), prefixed("/pullet/f/node/"), prefixed("/"), {"\x00", "\x00"}, {"/pullet/f/slot/", "/z"}, {"/pullet/f/slot/x", "\x00"}} {
		for _, r := range writable("f", "web1") {
			if r.covers(all) {
				t.Errorf("%+v covers %+v", r, all)
			}
		}
	}
}
