package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pullet/pullet/internal/safetext"
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

// Minimum is the format of the fleet's record that everybody must read. Every later format keeps these fields, for
// older programs to tell what is needed.
type Minimum struct {
	Format  int       `json:"format"`
	Release string    `json:"release"` // version of the pullet that set it: one that reads the format
	By      string    `json:"by"`
	At      time.Time `json:"at"`
}

func (m *Minimum) check(Key) error {
	var c checks
	c.unless(m.Format >= firstFormat && m.Format <= maxFormat, "there is no format %d", m.Format)
	c.word("release", m.Release) // it is shown beside what to do
	line(&m.By)
	c.times(m.At)
	return c.err
}

// reads is the format that a node says it reads. It does not count on a program that may be put back.
func (m Minimum) reads(unproven bool) int {
	if unproven {
		return m.Format
	}
	return Format
}

// TooOldError says that this pullet may not use the fleet's record, of which it would misread a part.
type TooOldError struct{ Minimum Minimum }

func (e *TooOldError) Error() string {
	return fmt.Sprintf("the fleet needs a newer pullet: its record has format %d, and this one reads up to format %d; "+
		"install pullet %s or newer here", e.Minimum.Format, Format, cmp.Or(e.Minimum.Release, "(release unknown)"))
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
	if len(kvs) > 0 {
		revision = kvs[0].ModRevision
		if read, unread := Read[Minimum](s, kvs[0]); unread == nil {
			m = read
		}
	}
	if m.Format > Format {
		s.all.is(firstFormat)
		return m, revision, &TooOldError{m}
	}
	s.all.is(m.Format)
	return m, revision, nil
}

// Reader is a host with a program that reads the record.
type Reader struct {
	Node    string `json:"node"`
	Program string `json:"program"` // version of pullet; KeeperProgram; "": its record cannot be read
	Format  int    `json:"format"`  // that it reads
}

// KeeperProgram stands for the pullet etcd that carries the fleet's datastore on a host: it is restarted on its own.
const KeeperProgram = "pullet-etcd"

// Reader is what a node says of its pullet.
func (n Node) Reader() Reader { return Reader{n.Name, n.Agent, max(firstFormat, n.Format)} }

// BehindError says that programs read less than the format to which the minimum is to be raised.
type BehindError struct {
	Format  int
	Readers []Reader
}

func (e *BehindError) Error() string {
	var names []string
	for _, r := range e.Readers {
		program := "pullet " + cmp.Or(r.Program, "unknown")
		if r.Program == KeeperProgram {
			program = KeeperProgram
		}
		names = append(names, fmt.Sprintf("%s (%s)", r.Node, program))
	}
	return fmt.Sprintf("the minimum stays: not everybody reads format %d: %s; upgrade pullet there and wait for two "+
		"pulls, restart pullet-etcd, or decommission the host: pullet decommission NODE", e.Format, safetext.Some(names, 5))
}

// readers are who reads a fleet's record, at a revision.
type readers struct {
	nodes map[string]Node
	other []Reader // hosts that are at work without a node's record, and those that carry the datastore
	at    int64
}

// read reads who there is, and of the nodes those that registered since it read last.
func (r *readers) read(ctx context.Context, s *Nodes) error {
	if r.nodes == nil {
		r.nodes = map[string]Node{}
	}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.Key(""), clientv3.WithPrefix(), clientv3.WithMinModRev(r.at+1)),
		clientv3.OpGet(s.store.key("alive", ""), clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Events.leaderKey()),
		clientv3.OpGet(s.store.key("datastore", "reach", ""), clientv3.WithPrefix()),
		clientv3.OpGet(s.store.Identities.authorityKey(), clientv3.WithCountOnly()),
	).Commit()
	if err != nil {
		return err
	}
	r.at, r.other = got.Header.Revision, nil
	present := map[string]bool{}
	for i, response := range got.Responses {
		for _, kv := range response.GetResponseRange().Kvs {
			r.add(s.store, i, kv, present)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if n, known := r.nodes[name]; !known || n.Decommissioned { // its agent does not know it yet
			n.Name = name
			r.other = append(r.other, n.Reader())
		}
	}
	if got.Responses[4].GetResponseRange().Count == 0 { // the etcd is not pullet's
		return nil
	}
	return r.silent(ctx, s)
}

// silent adds the members of the fleet's datastore that do not say what they read.
func (r *readers) silent(ctx context.Context, s *Nodes) error {
	listed, err := s.store.Client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range listed.Members {
		says := func(o Reader) bool { return o.Node == m.Name && o.Program == KeeperProgram }
		if m.Name != "" && !slices.ContainsFunc(r.other, says) {
			r.other = append(r.other, Reader{m.Name, KeeperProgram, firstFormat})
		}
	}
	return nil
}

// add files one record of what was asked for in this place. Others may have written what cannot be read: of a node that
// is there nothing is known then.
func (r *readers) add(s *Store, asked int, kv *mvccpb.KeyValue, present map[string]bool) {
	k, err := s.Key(kv)
	if err != nil {
		return
	}
	switch asked {
	case 0:
		n, _ := Read[Node](s, kv)
		n.Name = k.Node
		r.nodes[k.Node] = n
	case 1:
		present[k.Node] = true
	case 2:
		leader, _ := Read[NodeName](s, kv)
		present[string(leader)] = leader != ""
	case 3:
		says, _ := Read[Reach](s, kv)
		r.other = append(r.other, Reader{k.Node, KeeperProgram, max(firstFormat, says.Format)})
	}
}

// list is sorted by name.
func (r *readers) list() (out []Reader) {
	for _, n := range r.nodes {
		if !n.Decommissioned {
			out = append(out, n.Reader())
		}
	}
	return slices.SortedFunc(slices.Values(append(out, r.other...)), func(a, b Reader) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Program, b.Program))
	})
}

// minimum reads the fleet's minimum, with its revision.
func (s *Nodes) minimum(ctx context.Context) (Minimum, int64, error) {
	got, err := s.store.Client.Get(ctx, s.minimumKey())
	if err != nil {
		return Minimum{}, 0, err
	}
	return s.store.admits(got.Kvs)
}

// Readers are the fleet's minimum and who reads its record.
func (s *Nodes) Readers(ctx context.Context) (Minimum, []Reader, error) {
	m, _, err := s.minimum(ctx)
	r := &readers{}
	if err == nil {
		err = r.read(ctx, s)
	}
	return m, r.list(), err
}

// RaiseMinimum makes what this pullet reads the fleet's minimum. From then on nobody joins who reads less. A
// *BehindError names who does: nothing is changed then. It returns the minimum that holds.
func (s *Nodes) RaiseMinimum(ctx context.Context, by, release string) (Minimum, error) {
	for r := (&readers{}); ; {
		m, seen, err := s.minimum(ctx)
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
		next := Minimum{Format, release, by, time.Now().UTC()}
		done, err := s.setMinimum(ctx, next, clientv3.Compare(clientv3.ModRevision(s.minimumKey()), "=", seen),
			clientv3.Compare(clientv3.ModRevision(s.Key("")), "<", r.at+1).WithPrefix())
		if err != nil || done {
			return next, err
		}
	}
}

// LowerMinimum makes what this pullet reads the fleet's minimum where that is higher, whatever was written with it:
// what this pullet cannot read of that is left out. It is for a minimum that was set by mistake, and for a fleet that
// has to go back. It returns the minimum that holds.
func (s *Nodes) LowerMinimum(ctx context.Context, by, release string) (Minimum, error) {
	for {
		m, seen, err := s.minimum(ctx)
		if _, lower := errors.AsType[*TooOldError](err); !lower {
			return m, err
		}
		next := Minimum{Format, release, by, time.Now().UTC()}
		done, err := s.setMinimum(ctx, next, clientv3.Compare(clientv3.ModRevision(s.minimumKey()), "=", seen))
		if err != nil || done {
			return next, err
		}
	}
}

// setMinimum writes the minimum where conditions hold.
func (s *Nodes) setMinimum(ctx context.Context, m Minimum, where ...clientv3.Cmp) (bool, error) {
	s.store.all.is(m.Format) // who writes it knows that everybody reads it, or accepts that somebody does not
	done, err := s.store.Client.Txn(ctx).If(where...).Then(Put(s.minimumKey(), m)).Commit()
	if err != nil || !done.Succeeded {
		s.store.all.is(firstFormat) // until it is read again
		return false, err
	}
	return true, nil
}
