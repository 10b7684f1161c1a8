package etcdmodel

import (
	"slices"
	"sort"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// version is what a key was from a revision on.
type version struct {
	revision int64
	kv       *mvccpb.KeyValue // nil: deleted. It is handed out, and never changed
	bare     *mvccpb.KeyValue // the same without value and lease, once somebody asked for keys only
}

// item is a key with its history.
type item struct {
	key      string
	versions []version
}

// at is the key's version at a revision, nil if there was none.
func (i *item) at(revision int64) *version {
	n := len(i.versions)
	if n > 0 && i.versions[n-1].revision > revision {
		n = sort.Search(n, func(n int) bool { return i.versions[n].revision > revision })
	}
	if n == 0 || i.versions[n-1].kv == nil {
		return nil
	}
	return &i.versions[n-1]
}

// keysOnly is etcd's answer when only keys are asked for. It has no lease.
func (v *version) keysOnly() *mvccpb.KeyValue {
	if v.bare == nil {
		v.bare = &mvccpb.KeyValue{
			Key: v.kv.Key, CreateRevision: v.kv.CreateRevision, ModRevision: v.kv.ModRevision, Version: v.kv.Version,
		}
	}
	return v.bare
}

// Write is an entry of the log that Cluster.Writes returns.
type Write struct {
	Revision int64
	Key      string
	Value    string
	Lease    int64
	Created  bool // the key was not there before
	Deleted  bool
	Restored bool      // no write: the store went back to this revision, and what was written after it is undone
	By       string    // the connection; "" for a lease that expired
	Time     time.Time // of the virtual clock
}

// store is etcd's data. Its owner locks it.
type store struct {
	items     []*item // by key
	revision  int64
	compacted int64           // the oldest revision that can be read
	events    []*mvccpb.Event // since then
	changes   int             // events of the transaction under way: they are at revision+1
	leases    map[int64]*lease
	log       []Write
	by        string // who asks
	restores  uint64
}

func newStore() store { return store{revision: 1, compacted: -1, leases: map[int64]*lease{}} }

// current is the revision that a read sees, also inside a transaction that has written.
func (s *store) current() int64 {
	if s.changes > 0 {
		return s.revision + 1
	}
	return s.revision
}

// position is where a key is among the items, or belongs.
func (s *store) position(key string) (int, bool) {
	return slices.BinarySearchFunc(s.items, key, func(i *item, key string) int { return strings.Compare(i.key, key) })
}

// find are the items of a range as etcd spells it: no end is one key, the end "\x00" everything from the key on.
func (s *store) find(key, end string) []*item {
	from, found := s.position(key)
	switch {
	case end == "" && found:
		return s.items[from : from+1]
	case end == "":
		return nil
	case end == "\x00":
		return s.items[from:]
	}
	to, _ := s.position(end)
	return s.items[from:max(from, to)]
}

// inRange says whether a key is in a range.
func inRange(k, key, end string) bool {
	switch end {
	case "":
		return k == key
	case "\x00":
		return k >= key
	}
	return k >= key && k < end
}

// readable says whether a revision can be read; 0 is the present.
func (s *store) readable(revision int64) error {
	switch {
	case revision > s.current():
		return rpctypes.ErrGRPCFutureRev
	case revision > 0 && revision < s.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

func (s *store) read(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := s.readable(r.Revision); err != nil {
		return nil, err
	}
	revision := r.Revision
	if revision <= 0 {
		revision = s.current()
	}
	out := &pb.RangeResponse{Header: s.header()}
	for _, i := range s.find(string(r.Key), string(r.RangeEnd)) {
		v := i.at(revision)
		if v == nil {
			continue
		}
		out.Count++ // also what the filter leaves out
		switch {
		case r.CountOnly || v.kv.ModRevision < r.MinModRevision:
		case r.KeysOnly:
			out.Kvs = append(out.Kvs, v.keysOnly())
		default:
			out.Kvs = append(out.Kvs, v.kv)
		}
	}
	if r.SortOrder == pb.RangeRequest_DESCEND {
		slices.Reverse(out.Kvs)
	}
	if r.Limit > 0 && int64(len(out.Kvs)) > r.Limit {
		out.Kvs, out.More = out.Kvs[:r.Limit:r.Limit], true
	}
	return out, nil
}

func (s *store) put(r *pb.PutRequest) *pb.PutResponse {
	key, revision := string(r.Key), s.revision+1
	n, found := s.position(key)
	if !found {
		s.items = slices.Insert(s.items, n, &item{key: key})
	}
	i := s.items[n]
	out := &pb.PutResponse{}
	kv := &mvccpb.KeyValue{
		Key: r.Key, Value: r.Value, Lease: r.Lease, CreateRevision: revision, ModRevision: revision, Version: 1,
	}
	old := i.at(revision)
	if old != nil {
		kv.CreateRevision, kv.Version = old.kv.CreateRevision, old.kv.Version+1
		s.detach(old.kv)
		if r.PrevKv {
			out.PrevKv = old.kv
		}
	}
	if r.Lease != 0 {
		s.leases[r.Lease].keys[key] = true
	}
	i.versions = append(i.versions, version{revision: revision, kv: kv})
	s.changed(&mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv}, old == nil)
	out.Header = s.header()
	return out
}

func (s *store) deleteRange(r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	out := &pb.DeleteRangeResponse{}
	revision := s.revision + 1
	for _, i := range s.find(string(r.Key), string(r.RangeEnd)) {
		old := i.at(revision)
		if old == nil {
			continue
		}
		out.Deleted++
		if r.PrevKv {
			out.PrevKvs = append(out.PrevKvs, old.kv)
		}
		s.detach(old.kv)
		i.versions = append(i.versions, version{revision: revision})
		gone := &mvccpb.KeyValue{Key: old.kv.Key, ModRevision: revision}
		s.changed(&mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: gone}, false)
	}
	out.Header = s.header()
	return out
}

func (s *store) changed(e *mvccpb.Event, created bool) {
	s.changes++
	s.events = append(s.events, e)
	s.log = append(s.log, Write{
		Revision: e.Kv.ModRevision, Key: string(e.Kv.Key), Value: string(e.Kv.Value), Lease: e.Kv.Lease,
		Created: created, Deleted: e.Type == mvccpb.Event_DELETE, By: s.by, Time: time.Now(),
	})
}

// commit ends a transaction and returns what it changed.
func (s *store) commit() []*mvccpb.Event {
	out := s.events[len(s.events)-s.changes:]
	s.revision, s.changes = s.current(), 0
	return out
}

func (s *store) header() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, MemberId: 1, RaftTerm: 2 + s.restores, Revision: s.current()}
}

// since are the events from a revision on.
func (s *store) since(revision int64) []*mvccpb.Event {
	n := sort.Search(len(s.events), func(n int) bool { return s.events[n].Kv.ModRevision >= revision })
	return s.events[n:]
}

// compact forgets what was before a revision.
func (s *store) compact(revision int64) error {
	switch {
	case revision <= s.compacted:
		return rpctypes.ErrGRPCCompacted
	case revision > s.revision:
		return rpctypes.ErrGRPCFutureRev
	}
	s.compacted = revision
	s.events = slices.Clone(s.since(revision))
	for _, i := range s.items {
		n := sort.Search(len(i.versions), func(n int) bool { return i.versions[n].revision > revision })
		if n > 0 && i.versions[n-1].kv != nil {
			n--
		}
		i.versions = slices.Clone(i.versions[n:])
	}
	s.items = slices.DeleteFunc(s.items, func(i *item) bool { return len(i.versions) == 0 })
	return nil
}

// rewind makes the store what it was when its revision was the given one, leases too: as a snapshot does that somebody
// restores.
func (s *store) rewind(revision int64) {
	s.revision, s.restores = revision, s.restores+1
	s.events = s.events[:len(s.events)-len(s.since(revision+1))]
	for _, l := range s.leases {
		clear(l.keys)
		l.rewind(s)
	}
	for _, i := range s.items {
		n := sort.Search(len(i.versions), func(n int) bool { return i.versions[n].revision > revision })
		i.versions = i.versions[:n:n]
		if v := i.at(revision); v != nil && v.kv.Lease != 0 {
			s.leases[v.kv.Lease].keys[i.key] = true
		}
	}
	s.items = slices.DeleteFunc(s.items, func(i *item) bool { return len(i.versions) == 0 })
	s.log = append(s.log, Write{Revision: revision, Restored: true, Time: time.Now()})
}
