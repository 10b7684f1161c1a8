package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/safetext"
)

// Format is the newest format of the fleet's record that this pullet reads. A release has the next number where it
// writes something that the release before it cannot read, and writes it only in fleets with that minimum:
//
//	1  the first
//	2  the minimum itself
const Format = 2

// minimumOf is the minimum with which records of a kind begin to be written, by their shapes. Others always are.
var minimumOf = map[string]int{"minimum": 2}

// firstFormat is what every pullet reads.
const firstFormat = 1

// maxFormat bounds what a record may ask for.
const maxFormat = 10_000

// Minimum is the format of the fleet's record that everybody must read. It is never lowered. Every later format keeps
// these fields, for older programs to tell what is needed.
type Minimum struct {
	Format  int       `json:"format"`
	Release string    `json:"release"` // version of the pullet that raised it: one that reads the format
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

func (m *Minimum) check(Key) error {
	var c checks
	c.unless(m.Format >= firstFormat && m.Format <= maxFormat, "there is no format %d", m.Format)
	line(&m.Release, &m.By)
	c.times(m.At)
	return c.err
}

// TooOldError says that this pullet may not use the fleet's record, of which it would misread a part.
type TooOldError struct{ Minimum Minimum }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("the fleet needs a newer pullet: its record has format %d, and this one reads up to format %d; "+
		"install pullet %s or newer here", e.Minimum.Format, Format, e.Minimum.Release)
}

// readByAll is the format that everybody is known to read; 0 is the first.
type readByAll struct{ format atomic.Int64 }

func (r *readByAll) is(format int) { r.format.Store(int64(format)) }

// refuses says why a record of a kind is not written; "" is written.
func (r *readByAll) refuses(k *kind) string {
	need := minimumOf[k.shape]
	if int64(need) <= max(firstFormat, r.format.Load()) {
		return ""
	}
	return fmt.Sprintf("it needs a fleet in which everybody reads format %d: pullet fleet minimum", need)
}

func (s *Nodes) minimumKey() string { return s.store.key("minimum") }

// admits takes the fleet's minimum as it was read, and returns it with its revision. A *TooOldError tells that this
// pullet reads less. One that cannot be read admits everybody, and only what every pullet reads is written then.
func (s *Store) admits(kvs []*mvccpb.KeyValue) (m Minimum, revision int64, err error) {
	m = Minimum{Format: firstFormat}
	s.all.is(firstFormat)
	if len(kvs) == 0 {
		return m, 0, nil
	}
	read, err := Read[Minimum](s, kvs[0])
	if err != nil {
		return m, kvs[0].ModRevision, nil
	}
	if read.Format > Format {
		return read, kvs[0].ModRevision, &TooOldError{read}
	}
	s.all.is(read.Format)
	return read, kvs[0].ModRevision, nil
}

// Reader is a node with the pullet that it runs.
type Reader struct {
	Node   string `json:"node"`
	Pullet string `json:"pullet"` // version; "": its record cannot be read
	Format int    `json:"format"` // that it reads
}

// Reader is what a node says of its pullet.
func (n Node) Reader() Reader { return Reader{n.Name, n.Agent, max(firstFormat, n.Format)} }

// BehindError says that nodes read less than the format to which the minimum is to be raised.
type BehindError struct {
	Format int
	Nodes  []Reader
}

func (e *BehindError) Error() string {
	var names []string
	for _, n := range e.Nodes {
		names = append(names, fmt.Sprintf("%s (pullet %s)", n.Node, cmp.Or(n.Pullet, "unknown")))
	}
	return fmt.Sprintf("the minimum stays: not every node reads format %d: %s; upgrade pullet there and wait for the "+
		"next pull, or give them up: pullet decommission NODE", e.Format, safetext.Some(names, 5))
}

// readers are the nodes of a fleet as they registered, at a revision.
type readers struct {
	nodes map[string]Reader
	at    int64
}

// read adds the nodes that registered since.
func (r *readers) read(ctx context.Context, s *Nodes) error {
	opts := []clientv3.OpOption{clientv3.WithPrefix()}
	if r.at > 0 {
		opts = append(opts, clientv3.WithMinModRev(r.at+1))
	}
	got, err := s.store.Client.Get(ctx, s.Key(""), opts...)
	if err != nil {
		return err
	}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue // it is no node's
		}
		n, _ := Read[Node](s.store, kv) // of one that cannot be read nothing is known
		n.Name = k.Node
		if r.nodes[k.Node] = n.Reader(); n.Decommissioned {
			delete(r.nodes, k.Node)
		}
	}
	r.at = got.Header.Revision
	return nil
}

// list is sorted by name.
func (r *readers) list() (out []Reader) {
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		out = append(out, r.nodes[name])
	}
	return out
}

// Readers are the fleet's minimum and its nodes, with what they read.
func (s *Nodes) Readers(ctx context.Context) (Minimum, []Reader, error) {
	got, err := s.store.Client.Get(ctx, s.minimumKey())
	if err != nil {
		return Minimum{}, nil, err
	}
	r := &readers{nodes: map[string]Reader{}}
	m, _, err := s.store.admits(got.Kvs)
	if err == nil {
		err = r.read(ctx, s)
	}
	return m, r.list(), err
}

// RaiseMinimum makes what this pullet reads the fleet's minimum. From then on nobody joins who reads less. A
// *BehindError names the registered nodes that do: nothing is changed then. It returns the minimum that holds.
func (s *Nodes) RaiseMinimum(ctx context.Context, by, release string) (Minimum, error) {
	r := &readers{nodes: map[string]Reader{}}
	for {
		got, err := s.store.Client.Get(ctx, s.minimumKey())
		if err != nil {
			return Minimum{}, err
		}
		m, seen, err := s.store.admits(got.Kvs)
		if err != nil || m.Format == Format {
			return m, err
		}
		if err := r.read(ctx, s); err != nil {
			return m, err
		}
		reads := func(n Reader) bool { return n.Format >= Format }
		if behind := slices.DeleteFunc(r.list(), reads); len(behind) > 0 {
			return m, &BehindError{Format, behind}
		}
		s.store.all.is(Format)
		next := Minimum{Format, release, by, time.Now().UTC()}
		done, err := s.store.Client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(s.minimumKey()), "=", seen),
				clientv3.Compare(clientv3.ModRevision(s.Key("")), "<", r.at+1).WithPrefix()).
			Then(Put(s.minimumKey(), next)).
			Commit()
		if err != nil || done.Succeeded {
			return next, err
		}
	}
}
