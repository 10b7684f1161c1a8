package datastore

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/state"
)

// row is a kind of record as state/kinds.go has it.
type row struct{ shape, by string }

// rows reads the table itself: whoever adds a kind has it tested here.
func rows(t *testing.T) (out []row) {
	t.Helper()
	text, err := os.ReadFile("../../state/kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\{\s*"([\w/]+)",\s*(nodes|itsNode|operators|keeper|holder),`).FindAllStringSubmatch(string(text), -1) {
		out = append(out, row{m[1], m[2]})
	}
	if len(out) < 75 {
		t.Fatalf("only %d kinds of records", len(out))
	}
	return out
}

// key is a key of the kind for a node.
func (r row) key(node string) string {
	id, ticket := strings.Repeat("a", 40), strings.Repeat("0", 19)+"-"+node
	return "/pullet/" + fleetName + "/" + strings.NewReplacer("NODE", node, "GROUP", "web", "VERSION", id, "ROLLOUT", id,
		"SERVICE", "http", "CATEGORY", state.Validated, "STATE", state.Failed, "WORD", "word", "HASH", strings.Repeat("a", 20),
		"DIGEST", strings.Repeat("a", 64), "PLACE", "0", "SEQ", "0000000001", "CHUNK", "000", "TICKET", ticket,
	).Replace(r.shape)
}

// may is whether somebody may write the record of db1 of the kind.
func (r row) may(who string) bool {
	switch who {
	case "db1":
		return r.by == "nodes" || r.by == "itsNode" || r.by == "holder"
	case "web1", "web10", "db":
		return r.by == "nodes" || r.by == "itsNode" && !strings.Contains(r.shape, "NODE")
	case "admin":
		return r.by != "keeper" && r.by != "holder"
	}
	return false
}

// TestForbiddenWrites: each kind of record is written by whom the table of the kinds says, and by nobody else: by
// itself, by its range, and in the branch of a transaction that is not taken.
func TestForbiddenWrites(t *testing.T) {
	t.Parallel()
	f := created(t)
	s := f.store("admin")
	for name, kind := range map[string]authority.Kind{
		"web1": authority.Node, "web10": authority.Node, "db": authority.Node, "eve": authority.Viewer,
	} {
		f.join(s, name, kind)
	}
	for _, who := range []string{"db1", "web1", "web10", "db", "admin", "eve"} {
		c := f.client(who)
		for _, r := range rows(t) {
			if shutsOut(r) && r.may(who) {
				continue // the keeper would do it
			}
			for what, err := range attempts(t.Context(), c, r.key("db1")) {
				switch {
				case (err == nil) != r.may(who):
					t.Errorf("%s %s %s: %v, and the table says %v", who, what, r.key("db1"), err, r.may(who))
				case err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied):
					t.Errorf("%s %s %s: %v", who, what, r.key("db1"), err)
				}
			}
		}
	}
}

// shutsOut reports a kind of record that has the keeper shut its node out.
func shutsOut(r row) bool { return r.shape == "decommissioned/NODE" || r.shape == "revoking/NODE" }

// attempts are the errors of all ways to write a record.
func attempts(ctx context.Context, c *clientv3.Client, key string) map[string]error {
	out := map[string]error{}
	_, out["puts"] = c.Put(ctx, key, "")
	never := clientv3.Compare(clientv3.CreateRevision(key), "=", 1)
	_, out["could put"] = c.Txn(ctx).If(never).Then(clientv3.OpPut(key, "")).Commit()
	_, out["could put within"] = c.Txn(ctx).Then(clientv3.OpTxn(nil, nil, []clientv3.Op{clientv3.OpPut(key, "")})).Commit()
	_, out["deletes"] = c.Delete(ctx, key)
	_, out["deletes by range"] = c.Delete(ctx, key, clientv3.WithRange(key+"\x00"))
	return out
}
