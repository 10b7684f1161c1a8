package datastore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"google.golang.org/protobuf/proto"
)

// kept is what the log of a member says, whether it runs or not.
type kept struct {
	cluster, member uint64    // their ids
	term, index     uint64    // of the last entry
	written         time.Time // when the log was written to last
}

// memberFiles are the files of a member, below its directory.
type memberFiles string

func (f memberFiles) log() string       { return filepath.Join(string(f), "member", "wal") }
func (f memberFiles) snapshots() string { return filepath.Join(string(f), "member", "snap") }
func (f memberFiles) record() string    { return filepath.Join(f.snapshots(), "db") }

// start is where the log is read from: the last snapshot behind which all of it is there.
func (f memberFiles) start() (*walpb.Snapshot, error) {
	valid, err := wal.ValidSnapshotEntries(toolLog(), f.log())
	if err != nil {
		return nil, err
	}
	newest, err := snap.New(toolLog(), f.snapshots()).LoadNewestAvailable(valid)
	if errors.Is(err, snap.ErrNoSnapshot) {
		return &walpb.Snapshot{}, nil
	}
	if err != nil {
		return nil, err
	}
	index, term := newest.GetMetadata().GetIndex(), newest.GetMetadata().GetTerm()
	return &walpb.Snapshot{Index: &index, Term: &term}, nil
}

// kept reads the log.
func (f memberFiles) kept() (k kept, err error) {
	defer recovered(&err)
	start, err := f.start()
	if err != nil {
		return k, err
	}
	w, err := wal.OpenForRead(toolLog(), f.log(), start)
	if err != nil {
		return k, err
	}
	defer w.Close() // it was read
	of, _, entries, err := w.ReadAll()
	if err != nil {
		return k, err
	}
	var ids pb.Metadata
	if err := proto.Unmarshal(of, &ids); err != nil {
		return k, err
	}
	k = kept{cluster: ids.GetClusterID(), member: ids.GetNodeID(), term: start.GetTerm(), index: start.GetIndex()}
	if n := len(entries); n > 0 {
		k.term, k.index = entries[n-1].GetTerm(), entries[n-1].GetIndex()
	}
	k.written, err = f.written()
	return k, err
}

// written is when a file of the log was written to last: etcd makes them before it needs them, and writes into them.
func (f memberFiles) written() (last time.Time, err error) {
	all, err := filepath.Glob(filepath.Join(f.log(), "*.wal"))
	for _, name := range all {
		if info, bad := os.Stat(name); bad != nil {
			err = errors.Join(err, bad)
		} else if info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last, err
}

// errRuns says that somebody has the files of a member open.
var errRuns = errors.New("pullet-etcd runs on this host")

// members are those that the file of a member lists, which does not run.
func (f memberFiles) members() (out []*pb.Member, err error) {
	db, err := bbolt.Open(f.record(), 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, errRuns
	}
	if err != nil {
		return nil, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		all := tx.Bucket(schema.Members.Name())
		if all == nil {
			return errors.New("it lists no members")
		}
		return all.ForEach(func(_, text []byte) error {
			var m membership.Member
			if err := json.Unmarshal(text, &m); err != nil {
				return err
			}
			out = append(out, &pb.Member{
				ID: uint64(m.ID), Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, IsLearner: m.IsLearner,
			})
			return nil
		})
	})
	slices.SortFunc(out, func(a, b *pb.Member) int { return strings.Compare(a.Name, b.Name) })
	return out, errors.Join(err, db.Close())
}

// files are those of the member of this host: where a recovery was killed they were put aside before.
func (c Config) files() (memberFiles, error) {
	at := c.file(memberDir)
	_, err := os.Stat(at)
	if !errors.Is(err, fs.ErrNotExist) {
		return memberFiles(at), err
	}
	aside, err := filepath.Glob(c.file(asidePrefix + "*"))
	if err != nil || len(aside) == 0 {
		return "", errors.Join(err, fmt.Errorf("this host has no record: there is no %s", at))
	}
	return memberFiles(slices.Max(aside)), nil
}
