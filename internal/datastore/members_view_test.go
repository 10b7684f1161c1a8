package datastore

import (
	"os"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/state"
)

// TestLeft: a host that was a member once, and is none, is told from one that lost the key of the authority.
func TestLeft(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir()}
	if c.Left() {
		t.Error("it never was a member")
	}
	for _, file := range []string{authorityFile, memberDir} {
		if err := os.WriteFile(c.file(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (leaving{c}).putAside(time.Now()); err != nil {
		t.Fatal(err)
	}
	if !c.Left() {
		t.Error("it was removed")
	}
	if err := os.WriteFile(c.file(memberDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Left() {
		t.Error("it has a record, and no key of the authority")
	}
}

// TestReached: what members say of each other can keep a member, and not have one replaced that the leader reaches.
func TestReached(t *testing.T) {
	t.Parallel()
	var members []*pb.Member
	for i, name := range []string{"db1", "db2", "db3"} {
		members = append(members, &pb.Member{ID: uint64(i + 1), Name: name})
	}
	for what, one := range map[string]struct {
		said map[string]state.Reach
		want bool // the leader db1 takes db3, which does not answer it, for one that is reached
	}{
		"nobody says anything":  {nil, false},
		"db2 does not reach it": {map[string]state.Reach{"db2": {Away: []string{"db3"}}}, false},
		"db2 reaches it":        {map[string]state.Reach{"db2": {}}, true},
		"it says so itself":     {map[string]state.Reach{"db3": {}}, false},
		"a stranger reaches it": {map[string]state.Reach{"web1": {}}, false},
		"it does not reach db2": {map[string]state.Reach{"db3": {Away: []string{"db2"}}, "web1": {Away: []string{"db2"}}}, false},
	} {
		answers := map[uint64]*clientv3.StatusResponse{1: {}, 2: {}}
		v := view{members: members, answers: answers, record: state.Datastore{Reach: one.said}, self: 1}
		if got := v.reached(members[2]); got != one.want {
			t.Errorf("%s: db3 is reached: %v", what, got)
		}
		if !v.reached(members[1]) {
			t.Errorf("%s: db2 answers the leader, and counts as away", what)
		}
	}
}
