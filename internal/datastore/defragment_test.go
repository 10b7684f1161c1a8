package datastore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/tier"
)

// TestDefragmentsInTurn: when most of the files of several members is free, each member makes its own smaller, one at a
// time, and the one that leads comes last.
func TestDefragmentsInTurn(t *testing.T) {
	t.Parallel()
	tier.Long(t, "writes more than 100 MiB at three members")
	c := threeMembers(t)
	leader := c.leader()
	keeper := c.keeperAt(leader)
	turns := keeper.Watch(t.Context(), "/pullet/"+fleetName+"/datastore/turn")
	value := strings.Repeat("x", 1<<20)
	for n := range wasteful>>20 + 40 {
		_, err := keeper.Put(t.Context(), fmt.Sprintf("/pullet/%s/hold/big-%d", fleetName, n), value)
		c.must(err)
	}
	got, err := keeper.Delete(t.Context(), "/pullet/"+fleetName+"/hold/", clientv3.WithPrefix())
	c.must(err)
	_, err = keeper.Compact(t.Context(), got.Header.Revision, clientv3.WithCompactPhysical())
	c.must(err)

	var order []string
	holds := ""
	for end := time.After(3 * time.Minute); len(order) < 3; {
		select {
		case w := <-turns:
			c.must(w.Err())
			for _, e := range w.Events {
				if e.Type == clientv3.EventTypeDelete {
					holds = ""
					continue
				}
				node, what, _ := strings.Cut(string(e.Kv.Value), " ")
				if holds != "" || what != "defragments" {
					t.Errorf("%s has the turn, and %s gets it to %s", holds, node, what)
				}
				holds, order = node, append(order, node)
			}
		case <-end:
			t.Fatalf("only %v defragment", order)
		}
	}
	if order[2] != leader {
		t.Errorf("%s leads, and the order is %v", leader, order)
	}
	if slices.Sort(order); !slices.Equal(order, []string{"db1", "db2", "db3"}) {
		t.Error("they defragment more than once: ", order)
	}
	for name := range c.hosts {
		c.until(name+" has a small file", func() bool {
			s, err := keeper.Status(t.Context(), c.hosts[name].Endpoint())
			return err == nil && s.DbSize < wasteful/4
		})
	}
}
