package datastore

import (
	"os"
	"path/filepath"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/pullet/pullet/internal/tier"
)

// damage writes over a part of a file.
func (c *cluster) damage(file string, from, to int) {
	c.Helper()
	text, err := os.ReadFile(file)
	c.must(err)
	for i := from; i < min(to, len(text)); i++ {
		text[i] ^= 0xff
	}
	c.must(os.WriteFile(file, text, 0o600))
}

// TestDamagedRecord: a member that cannot start any more, whatever its files have, is replaced like one that is away.
// When the others have removed it, its record is put aside, and the host comes again with an empty disk.
func TestDamagedRecord(t *testing.T) {
	t.Parallel()
	tier.Long(t, "members come, go and come again")
	for what, damage := range map[string]func(c *cluster, at memberFiles){
		"its log": func(c *cluster, at memberFiles) {
			all, err := filepath.Glob(at.log() + "/*.wal")
			c.must(err)
			c.damage(all[0], 2000, 2100)
		},
		"the pages of its file": func(c *cluster, at memberFiles) { c.damage(at.record(), 8192, 1<<30) },
		"an empty file":         func(c *cluster, at memberFiles) { c.must(os.Truncate(at.record(), 0)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := threeMembers(t)
			c.until("db3 knows the others", func() bool { return c.hosts["db3"].has(lifeFile) })
			c.kill("db3")
			damage(c, memberFiles(c.hosts["db3"].file(memberDir)))
			c.start("db3")
			c.logs(c.leader(), `members: remove" node=db3`)
			c.logs("db3", "this host carries the datastore no more: another one took its place")
			c.becomes("db1 db2 db3")
		})
	}
}

// TestKilledAtBirth: a datastore starts whose very first start was killed, when etcd had made its log and written no
// entry.
func TestKilledAtBirth(t *testing.T) {
	t.Parallel()
	f := made(t)
	ids, err := proto.Marshal(&pb.Metadata{NodeID: new(uint64(1)), ClusterID: new(uint64(2))})
	f.must(err)
	at := memberFiles(f.file(memberDir))
	f.must(os.MkdirAll(at.snapshots(), 0o700))
	log, err := wal.Create(zap.NewNop(), at.log(), ids)
	f.must(err)
	f.must(log.Close())
	f.serve()
}
