package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// plantedKeys is a key of each kind whose value something reads; the version is that of the rollout.
func plantedKeys(version string) []string {
	hash := state.StepHash("x")
	keys := []string{
		"current_version", "node/db1", "node/web1", "alive/db1", "status/rollout/failed/db1", "status/configured/failed/web1", "status/x", "config_state/enable/global",
		"config_state/enable/host/web1", "config_state/enable/role/web", "config_state/pause", "service/db1/db", "facts/db1", "history/0000000000", "store_accepted", "skipped", "doubting/web1", "claimed/web1",
		"slot/web/0", "slot/web/x", "total/0", "semaphore/" + hash + "/0", "command_given/c1", "command_result/c1/web1", "command_pending/c1", "command_output/c1/web1", "decommissioned/db2",
		"settled/" + version + "/" + hash, "outbox/web1", "outbox/db1", "reactor/cursor", "reactor/told", "reactor/group/" + hash, "happened/0000000000", "happened/0000000007", "reaction_given/r1",
		"reaction_pending/r1", "reaction_result/r1/web1", "reaction_ended/r1/web1", "reaction_paused/" + hash,
	}
	for _, rest := range []string{"gate/web", "gate/*", "roster/web", "part/roster/web/0", "queue/web/x", "away/web", "soak/web"} {
		keys = append(keys, "rollout/"+version+"/"+rest)
	}
	for _, rest := range []string{"roster", "in/db1", "count", "name", "place/0", "started/db1", "result/db1"} {
		keys = append(keys, "run/"+version+"/"+hash+"/"+rest)
	}
	return keys
}

// hostileNode makes a node of a fleet that another process holds, and returns the fleet's record.
func hostileNode(t *testing.T) (config string, store *state.Store) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"repo/base/jobs.yaml": "jobs: {'*': [{name: site}]}\n",
		"repo/jobs/site.yaml": "steps:\n  - {name: hosts, action: file.managed, parameters: {name: /etc/all, content: \"{{ range services `db` }}{{ .address }}{{ end }}{{ servervars | len }}\\n\"}}\n",
		"pullet.yaml": fmt.Sprintf("node: {name: web1, labels: {role: web}}\nrepositories: [{name: main, url: 'file://%[1]s/repo'}]\netcd: {dir: %[1]s/etcd}\n"+
			"agent: {wait: 0s, allowRun: true}\npaths: {state: %[1]s/state, hostVars: %[1]s/vars.d}\n", dir),
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "first"}} {
		gitIn(t, filepath.Join(dir, "repo"), args...)
	}
	t.Setenv("PULLET_ROOT", filepath.Join(dir, "root"))
	if err := os.MkdirAll(filepath.Join(dir, "root/etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	store, err := state.Open(context.Background(), state.Config{Fleet: "default", Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "pullet.yaml"), store
}

func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v %s", args, err, out)
	}
}

// TestHostileFleet: whatever stands in the fleet's record, a pull is made, no command fails that only reads, none ends
// in a panic, and what cannot be read is named.
func TestHostileFleet(t *testing.T) {
	values := map[string]string{"cut off": `{"`, "an object": "{}", "null": "null"}
	if !testing.Short() {
		values["wrong types"] = `{"name":1,"node":[],"state":{},"commits":"x","addresses":7}`
		values["control characters"] = `{"name":"\u001b[2J","node":"\u001b[2J","state":"\u001b[2J","version":"\u001b[2J","address":"10.0.0.1\n- evil"}`
		values["deep"] = strings.Repeat("[", 100_000)
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) { hostileFleet(t, value) })
	}
}

func hostileFleet(t *testing.T, value string) {
	config, store := hostileNode(t)
	pullet := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := run(context.Background(), append([]string{"--config", config}, args...), &out, &errs, nil)
		if text := out.String() + errs.String(); strings.ContainsRune(text, 0x1b) {
			t.Errorf("pullet %s prints %q", args, text)
		}
		return code, out.String() + errs.String()
	}
	if code, text := pullet("pull"); code != 0 {
		t.Fatal(code, text)
	}
	current, _, err := store.Versions.Current(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: store.Client.Endpoints()}) // one that writes anything
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	for _, key := range plantedKeys(current.Rollout()) {
		if _, err := etcd.Put(context.Background(), "/pullet/default/"+key, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"status", "nodes", "locks", "services", "rollout history", "failures", "run", "events", "reactions", "plan", "pull", "pull", "doctor"} {
		code, text := pullet(strings.Fields(command)...)
		if code == 1 && command != "failures" && command != "doctor" || !strings.Contains(text, "cannot be read") && command != "rollout history" && command != "events" {
			t.Errorf("pullet %s exits %d: %s", command, code, text)
		}
	}
	for _, command := range []string{
		"rollout status", "pending", "verify x web1", "wait --timeout 1ms", "enable --host web1", "disable --role web", "rollout resume", "rollout pause", "rollout resume --store", "rollout follow", "rollout undo",
		"rollout fail", "set-status validated success web1", "decommission --force db1", "run --target * -- true", "eval 1+1", "rollout start main", "events show x", "reactions show r1", "reactions pause x", "reactions resume x", "event emit x", "event emit x --noop", "pull",
	} {
		if code, text := pullet(strings.Fields(command)...); code < 0 {
			t.Errorf("pullet %s: %s", command, text)
		}
	}
	bad, err := store.Scan(context.Background(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range bad {
		if code, text := pullet("doctor", "--remove", strings.Trim(one.Key, "'")); code != 0 || !strings.HasPrefix(text, "removed "+one.Key) {
			t.Error(one.Key, code, text)
		}
	}
	if code, text := pullet("pull"); code != 0 && code != 3 || strings.Contains(text, "cannot be read") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := pullet("doctor"); !strings.Contains(text, "every record of the fleet can be read") {
		t.Error(code, text)
	}
	if !slices.ContainsFunc(bad, func(b *state.BadRecordError) bool { return b.Key == "slot/web/x" }) {
		t.Errorf("%v", bad)
	}
}
