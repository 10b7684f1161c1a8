package main

import (
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pullet/pullet/internal/harness/lab"
	"github.com/pullet/pullet/internal/tier"
)

// needLab skips a test where there can be no hosts.
func needLab(t *testing.T) {
	t.Helper()
	tier.Long(t, "boots hosts")
	lab.Require(t, moduleRoot)
}

// TestLab runs scenarios on real hosts, each in its own lab. testdata/lab/README.md says how to read and write one.
func TestLab(t *testing.T) {
	needLab(t)
	runner := lab.NewRunner(t, moduleRoot, filepath.Dir(filepath.Dir(binary(t))), "datastore_faults")
	commands := lab.Commands()
	maps.Copy(commands, map[string]func(*testscript.TestScript, bool, []string){
		"commit": commitAll, "exits": exits, "subst": substFiles, "tag": tagHead,
	})
	testscript.Run(t, testscript.Params{
		Dir:       "testdata/lab",
		Condition: lab.Condition,
		Setup: func(env *testscript.Env) error {
			setDate(env.Setenv, 0)
			return runner.Setup(env)
		},
		Cmds: commands,
	})
}

// TestLabContract runs the tests of the actions on hosts, with those that need a whole system: the contract test on one
// host, and those of packages and services, which mostly wait, on another.
func TestLabContract(t *testing.T) {
	needLab(t)
	name := lab.Name("contract")
	t.Cleanup(func() {
		if out, err := lab.Run(t, moduleRoot, name, "down"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	if out, err := lab.Run(t, moduleRoot, name, "up", "host1", "host2"); err != nil {
		t.Fatalf("up: %v\n%s", err, out)
	}
	type tests struct{ of, named string }
	for host, all := range map[string][]tests{
		"host1": {
			{"./apply/action", "^TestContract$"},
			{"./apply/action/mount", "^TestSystemdKnowsMounts$"},
		},
		"host2": {{"./apply/action/pkg", "^TestPackage.*$"}, {"./apply/action/systemd", "^TestService.*$"}},
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			for _, these := range all {
				out, err := lab.Run(t, moduleRoot, name, "gotest", host, these.of, "-test.v", "-test.run", these.named)
				if err != nil {
					t.Errorf("%s on the host: %v\n%s", these.of, err, out)
				}
				if whole := lab.CountWhole(t, out); whole == 0 {
					t.Errorf("%s: nothing ran on a whole host:\n%s", these.of, out)
				}
			}
		})
	}
}

// TestLabEndsWithItsOwner: hosts, mounts and networks end with the process that owns them, however it ends.
func TestLabEndsWithItsOwner(t *testing.T) {
	needLab(t)
	name := lab.Name("owner")
	t.Cleanup(func() {
		if out, err := lab.Run(t, moduleRoot, name, "down"); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	owner := exec.Command("sleep", "600")
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := lab.RunFor(t, moduleRoot, name, owner.Process.Pid, "up", "host1")
	address, missing := lab.Address(name)
	if err := errors.Join(err, missing, owner.Process.Kill()); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_ = owner.Wait() // killed
	bridge := "plab" + strings.Split(address, ".")[2]
	for _, path := range []string{"/run/pullet-lab/" + name, "/run/netns/" + bridge + "-host1", "/run/pullet-lab/.cgroup/pullet-lab/" + name} {
		end := time.Now().Add(20 * time.Second)
		for ; exists(path) && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		}
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil || strings.Contains(string(mounts), "/"+name+"/") {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
	if _, err := net.InterfaceByName(bridge); err == nil {
		t.Errorf("the bridge %s is left", bridge)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
