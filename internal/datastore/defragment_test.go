package datastore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/patience"
	"github.com/pullet/pullet/internal/tier"
)

// TestDefragmentsInTurn: when most of the files of several members is free, each member makes its own smaller, one at a
// time, and the one that leads all the while comes last.
func TestDefragmentsInTurn(t *testing.T) {
	t.Parallel()
	tier.Long(t, "writes more than 100 MiB at three members")
	c := threeMembers(t)
	keeper := c.keeperAt("db1")
	turns := keeper.Watch(t.Context(), "/pullet/"+fleetName+"/datastore/turn")
	value := strings.Repeat("x", 1<<20)
	for n := range wasteful>>20 + 40 {
		patience.Succeeds(t, "a write of a megabyte", func() error { // a slow disk may take longer than etcd waits for it
			_, err := keeper.Put(t.Context(), fmt.Sprintf("/pullet/%s/hold/big-%d", fleetName, n), value)
			return err
		})
	}
	got, err := keeper.Delete(t.Context(), "/pullet/"+fleetName+"/hold/", clientv3.WithPrefix())
	c.must(err)
	_, err = keeper.Compact(t.Context(), got.Header.Revision, clientv3.WithCompactPhysical())
	c.must(err)
	term, leader := termOf(c, keeper), c.leader() // a slow disk may have cost the one that led before its lead

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
	if now := termOf(c, keeper); order[2] != leader && now == term {
		t.Errorf("%s leads in term %d, and the order is %v", leader, term, order)
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

// termOf returns the term of the leader. While it is the same, the same member leads.
func termOf(c *cluster, keeper *clientv3.Client) uint64 {
	c.Helper()
	s, err := keeper.Status(c.Context(), keeper.Endpoints()[0])
	c.must(err)
	return s.RaftTerm
}
