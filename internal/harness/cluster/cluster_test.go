package cluster

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pullet/pullet/internal/harness/process"
	"github.com/pullet/pullet/internal/tier"
)

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){Program: Main}) }

// TestRestore: a cluster whose members were killed has its old data after it is restored from a copy. Without a member
// it is not whole.
func TestRestore(t *testing.T) {
	tier.Long(t, "elections of etcd")
	t.Parallel()
	dir, backup := t.TempDir(), t.TempDir()
	c := Start(t, Options{Dir: dir, Size: 3, TLS: true})
	client, ctx := c.Connect(), t.Context()
	put := func(value string) {
		t.Helper()
		if _, err := client.Put(ctx, "/key", value); err != nil {
			t.Fatal(err)
		}
	}
	c.AwaitWrite(client)
	put("old")
	if err := c.CheckWhole(ctx, client); err != nil {
		t.Error(err)
	}
	leader := c.Members()[c.Leader(client)]
	other := c.Members()[(c.Leader(client)+1)%3]
	if c.Member(leader.Name) != leader || c.Member("none") != (*process.Process)(nil) {
		t.Error("members are not found by name")
	}
	other.Kill(false)
	if err := c.CheckWhole(ctx, client); err == nil {
		t.Error("the cluster is whole without a member")
	}
	c.Restart(other)
	c.KillAll()
	if err := c.CopyData(dir, backup); err != nil {
		t.Fatal(err)
	}
	c.StartAll()
	c.AwaitWrite(client)
	put("new")
	c.KillAll()
	if err := c.CopyData(backup, dir); err != nil {
		t.Fatal(err)
	}
	c.StartAll()
	c.AwaitWrite(client)
	got, err := client.Get(ctx, "/key")
	if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "old" {
		t.Errorf("%v %v", got, err)
	}
	if err := c.CheckSame(ctx, client); err != nil {
		t.Error(err)
	}
}
