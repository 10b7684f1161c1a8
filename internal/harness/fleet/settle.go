package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// settle waits, after the faults, until all nodes run the last version and hold nothing, and returns "", or why they do
// not. As an operator it commits a fixing version after a halt: a step that was killed and must not run twice causes
// one.
func (f *fleet) settle(atMost time.Duration) string {
	f.repository.release("", "")
	end, fix := time.Now().Add(atMost), time.Now().Add(atMost/6)
	for why := ""; ; time.Sleep(200 * time.Millisecond) {
		if why = f.unsettled(); why == "" {
			return ""
		}
		if time.Now().After(end) {
			out, _ := f.operator("status")
			return fmt.Sprintf("%s after the faults the fleet has not settled: %s\n%s", atMost, why, out)
		}
		if time.Now().After(fix) && f.isHalted() {
			f.repository.release("", "")
			f.count("fixing versions")
			fix = time.Now().Add(atMost / 6)
		}
	}
}

// unsettled returns a reason why the fleet has not settled, or "".
func (f *fleet) unsettled() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := f.cluster.CheckWhole(ctx, f.client); err != nil {
		return err.Error()
	}
	got, err := f.client.Get(ctx, "/pullet/default/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err.Error()
	}
	last, there := f.repository.versions[len(f.repository.versions)-1].ID, map[string]bool{}
	for _, kv := range got.Kvs {
		key := strings.TrimPrefix(string(kv.Key), "/pullet/default/")
		for _, held := range []string{"slot/", "total/", "semaphore/"} {
			if strings.HasPrefix(key, held) {
				return key + " is held"
			}
		}
		there[key] = true
	}
	for _, n := range f.nodes {
		for _, key := range []string{"running_version/" + last + "/" + n.Name, "status/configured/success/" + n.Name,
			"status/validated/success/" + n.Name} {
			if !there[key] {
				return key + " is missing"
			}
		}
	}
	return ""
}

// isHalted reports whether a group is halted in the current rollout.
func (f *fleet) isHalted() bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	current, _, err := f.store.Versions.Current(ctx)
	if err != nil || current == nil {
		return false
	}
	got, err := f.client.Get(ctx, f.store.Rollouts.GateKey(current.Rollout(), ""), clientv3.WithPrefix())
	if err != nil {
		return false
	}
	for _, kv := range got.Kvs {
		if strings.Contains(string(kv.Value), state.Halted) {
			return true
		}
	}
	return false
}

// operator runs a command of pullet as a person does, on a host without faults.
func (f *fleet) operator(args ...string) (string, error) {
	return f.command(f.operates, append(args, "--config", f.dir+"/operator/pullet.yaml")...)
}

// command runs a command of pullet.
func (f *fleet) command(env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, f.program, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
