package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func everybody(string, Member) (bool, string) { return true, "" }

// TestRosterFor: of a large roster a node reads its part, of a small one all; both say the same of it.
func TestRosterFor(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for _, n := range []int{0, 1, cutAbove, cutAbove + 1, 3000} {
		inventory := map[string]Member{}
		for i := range n {
			inventory[fmt.Sprint("web", i)] = Member{Role: "web"}
		}
		key := s.Rosters.Key(fmt.Sprint("v", n), "web")
		whole, err := s.Rosters.Freeze(ctx, key, inventory, Belongs(everybody).Always())
		must(t, err)
		if len(whole.Nodes()) != n {
			t.Errorf("%d of %d nodes", len(whole.Nodes()), n)
		}
		for _, node := range []string{"web0", "web199", "web200", "web2999", "web", "other"} {
			part, err := s.Rosters.For(ctx, key, node, nil, Belongs(everybody).Always())
			must(t, err)
			if part.Size != n || part.Has(node) != whole.Has(node) || !slices.Equal(part.Roles, whole.Roles) {
				t.Errorf("%s of %d: %d nodes, %v, has it: %v", node, n, part.Size, part.Roles, part.Has(node))
			}
			if n > cutAbove && len(part.Nodes()) > n/8 {
				t.Errorf("%d of %d names are read", len(part.Nodes()), n)
			}
		}
	}
}

// TestRosterIsMadeOnce: of many that come at once one reads all nodes; one that dies over it holds nobody up for long.
func TestRosterIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	inventory := map[string]Member{"web1": {Role: "web"}}
	key := s.Rosters.Key("v1", "web")
	made := make([]int, 20)
	atOnce(t, len(made), func(i int) error {
		_, err := s.Rosters.For(ctx, key, "web1", inventory, Belongs(func(node string, m Member) (bool, string) { made[i]++; return everybody(node, m) }).Always())
		return err
	})
	total := 0
	for _, n := range made {
		total += n
	}
	if total != 1 {
		t.Errorf("it was made %d times", total)
	}
	left, err := s.Client.Get(ctx, strings.TrimSuffix(s.Rosters.partKey(key, "x"), "x"), clientv3.WithPrefix())
	must(t, err)
	if len(left.Kvs) != 0 {
		t.Errorf("left: %s", left.Kvs)
	}
	key = s.Rosters.Key("v2", "web")
	if mine, _, _, err := s.Rosters.begin(ctx, key, false); !mine || err != nil { // and dies
		t.Fatalf("%v %v", mine, err)
	}
	if r, err := s.Rosters.For(ctx, key, "web1", inventory, Belongs(everybody).Always()); err != nil || !r.Has("web1") {
		t.Errorf("%v %v", r, err)
	}
}
