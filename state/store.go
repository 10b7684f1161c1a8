package state

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Config says where the fleet's record is.
type Config struct {
	Endpoints    []string // none: a single embedded member in Dir
	TLS          TLS
	Username     string
	PasswordFile string
	Fleet        string // names the fleet: several can share an etcd
	Dir          string // of the embedded member
	AnyFormat    bool   // open it also where this pullet reads less than the fleet's minimum: to serve or to repair it
	Node         string // that is about to join: Open then reads what Guard and Register need. "" is none

	Timeout time.Duration // of the first answer of a store that is elsewhere; 0: 5s
}

// TLS are the files of a client certificate and of the authority that signed the servers'.
type TLS struct {
	CA   string `yaml:"ca"`   // certificate of the authority that signed the servers'
	Cert string `yaml:"cert"` // certificate of this host
	Key  string `yaml:"key"`  // private key of this host
}

// Store is the fleet's record. It is safe for concurrent use.
type Store struct {
	Presences  *Presences
	Nodes      *Nodes
	Statuses   *Statuses
	Doubts     *Doubts
	Versions   *Versions
	Rollouts   *Rollouts
	Rosters    *Rosters
	Steps      *Steps
	Results    *Results
	Extensions *Extensions
	Services   *Services
	Commands   *Commands
	Switches   *Switches
	Bells      *Bells
	Identities *Identities
	Datastores *Datastores
	Events     *Events
	EventLog   *EventLog
	Reactions  *Reactions
	Sinks      *Sinks
	Views      *Views

	Client    *clientv3.Client
	prefix    string
	endpoints []string
	access    Access
	embedded  *embedded // nil: the store is elsewhere
	clock     func() time.Duration
	why       reason // there is no connection
	monotonic monotonic
	answers   answers
	bad       badRecords
	known     known
	all       readByAll
	role      []Range // what the host that uses it may write; nil: people use it

	scratch     string               // a directory that Close removes; "" is none
	maintenance pb.MaintenanceClient // nil: nobody asks for the length of the raft log
}

// Over is a store over a client that is open, with a clock that only goes forward. Close closes the client.
func Over(client *clientv3.Client, fleet string, clock func() time.Duration) *Store {
	return (&Store{Client: client, prefix: "/pullet/" + fleet + "/", clock: clock}).divide()
}

// dialTimeout is how long the first answer of a store may take where nothing else is said.
const dialTimeout = 5 * time.Second

// patience is how long the first answer may take.
func (c Config) patience() time.Duration {
	if c.Timeout > 0 && len(c.Endpoints) > 0 {
		return c.Timeout
	}
	return dialTimeout
}

// Open reaches the store and checks that it answers: an *UnreachableError tells that it did not, and a *TooOldError
// that this pullet reads less than the fleet's minimum. With no endpoints it starts the embedded member of Dir, or
// connects to it where another process of this node runs it.
func Open(ctx context.Context, c Config) (*Store, error) {
	s := Over(nil, c.Fleet, bootClock)
	endpoints := c.Endpoints
	if len(endpoints) == 0 {
		var err error
		if s.embedded, err = openEmbedded(ctx, c.Dir); err != nil {
			return nil, s.Explain(err)
		}
		endpoints = []string{s.embedded.endpoint}
	}
	s.endpoints, s.access = endpoints, c.access()
	if c.Node != "" {
		s.role = writable(c.Fleet, c.Node)
	}
	config, err := c.client(endpoints)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	config.DialOptions = append(
		config.DialOptions,
		grpc.WithChainUnaryInterceptor(s.why.note, s.monotonic.note, s.writes, s.answers.note),
	)
	if s.embedded != nil {
		config.DialOptions = append(config.DialOptions, s.embedded.patient()...)
	}
	silent := func(err error, within time.Duration) error {
		if errors.Is(err, context.DeadlineExceeded) {
			return cmp.Or(refusedTLS(endpoints, config.TLS), s.why.of(fmt.Errorf("no answer within %s", within)))
		}
		return err
	}
	if s.Client, err = clientv3.New(config); err != nil { // it asks for a token where there is a password
		return nil, errors.Join(s.unreachable(silent(err, config.DialTimeout)), s.Close())
	}
	s.maintenance = pb.NewMaintenanceClient(s.Client.ActiveConnection())
	patience := config.DialTimeout
	if s.embedded != nil {
		patience = s.embedded.answerTime()
	}
	if s.embedded != nil && s.embedded.server == nil {
		s.embedded.follow(func(endpoint string) { s.Client.SetEndpoints(endpoint) })
	}
	err = silent(Greet(ctx, s, c.Node, patience), patience)
	_, tooOld := errors.AsType[*TooOldError](err)
	if err != nil && !(tooOld && c.AnyFormat) {
		if s.Broken() == nil && !tooOld {
			err = s.unreachable(err)
		}
		return nil, errors.Join(s.Explain(err), s.Close())
	}
	return s, nil
}

// Greet checks that a store answers in time, and that this pullet may use it. It reads what is on record of a node that
// is about to join; "" is none.
func Greet(ctx context.Context, s *Store, node string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return s.greet(ctx, node)
}

// greet asks whether this pullet may use the record; of a node that is about to join, also what is on record.
func (s *Store) greet(ctx context.Context, node string) error {
	if node == "" {
		got, err := s.Client.Get(ctx, s.Nodes.minimumKey())
		if err == nil {
			_, _, err = s.admits(got.Kvs)
		}
		return err
	}
	r, err := s.Presences.registration(ctx, node)
	s.known.keep(r)
	return err
}

func (s *Store) unreachable(err error) error {
	return &UnreachableError{s.endpoints, err, s.access, s.why.lasts()}
}

// Explain turns the error of an operation into an *UnreachableError where that is what it means, in words that do not
// change from one attempt to the next.
func (s *Store) Explain(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok &&
		errors.Join(joined.Unwrap()...).Error() == err.Error() { // what went wrong beside is said, too
		return s.explainEach(joined.Unwrap())
	}
	if broken, ok := errors.AsType[*BrokenError](err); ok {
		return &UnreachableError{Err: broken}
	}
	if _, known := errors.AsType[*UnreachableError](err); known {
		return err
	}
	if errors.Is(err, rpctypes.ErrNoSpace) || denied(err) {
		return s.unreachable(err)
	}
	if code := codeOf(err); errors.Is(err, context.DeadlineExceeded) || code == codes.Unavailable ||
		code == codes.DeadlineExceeded {
		return s.unreachable(s.why.of(err))
	}
	return err
}

// explainEach explains errors that came together. That the store is away is said once.
func (s *Store) explainEach(errs []error) error {
	var out []error
	for _, err := range errs {
		err = s.Explain(err)
		_, away := err.(*UnreachableError)
		if !away || !slices.ContainsFunc(out, func(o error) bool { return o.Error() == err.Error() }) {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// Unanswered reports an error of a store that did not answer, could not now, or does not let this host in: it says
// nothing about what was asked.
func Unanswered(err error) bool {
	code := codeOf(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.ResourceExhausted || denied(err)
}

// codeOf is the code of an answer, also of one that etcd has a name for, such as that it has no leader.
func codeOf(err error) codes.Code {
	if known, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return known.Code()
	}
	return status.Code(err)
}

// Broken is why an embedded member that this process ran cannot go on: only another process can start it again. It is
// nil otherwise.
func (s *Store) Broken() error {
	if s.embedded == nil {
		return nil
	}
	return s.embedded.crash.broken()
}

// Close lets go of the store, and stops an embedded member that this process runs.
func (s *Store) Close() error {
	var err error
	if s.embedded != nil {
		s.embedded.stopFollowing()
	}
	if s.Client != nil {
		err = s.Client.Close()
	}
	if s.embedded != nil {
		err = errors.Join(err, s.embedded.stop())
	}
	if s.scratch != "" {
		err = errors.Join(err, os.RemoveAll(s.scratch))
	}
	return err
}

// opsAtOnce is how many operations one transaction is given: etcd allows 128.
const opsAtOnce = 100

// ReadMany reads more than one transaction may. It returns the revision of the first: what comes later is as old or
// newer.
func (s *Store) ReadMany(ctx context.Context, ops []clientv3.Op) (out []*pb.ResponseOp, revision int64, err error) {
	for some := range slices.Chunk(ops, opsAtOnce) {
		got, err := s.Client.Txn(ctx).Then(some...).Commit()
		if err != nil {
			return nil, 0, err
		}
		if out = append(out, got.Responses...); revision == 0 {
			revision = got.Header.Revision
		}
	}
	return out, revision, nil
}

// together packs operations that are done in one transaction, however many they are. etcd counts the operations of a
// transaction and those of each one nested in it, not their sum (checkTxnRequest in its server/etcdserver/api/v3rpc).
// Beside other comparisons and operations there is room for some thousands; the answers are nested, too.
func together(ops []clientv3.Op) (packed []clientv3.Op) {
	const nested = 64
	if len(ops) <= nested {
		return ops
	}
	for some := range slices.Chunk(ops, nested) {
		packed = append(packed, clientv3.OpTxn(nil, some, nil))
	}
	return packed
}

// key is a key of this fleet.
func (s *Store) key(parts ...string) string { return s.prefix + strings.Join(parts, "/") }

// Put is an operation that writes a value as JSON.
func Put(key string, value any, opts ...clientv3.OpOption) clientv3.Op {
	// Encoding cannot fail: the values are this package's own plain structs.
	data, _ := json.Marshal(value)
	return clientv3.OpPut(key, string(data), opts...)
}

// get reads one record and its revision: 0 where there is none. One that cannot be read is a *BadRecordError, with its
// revision.
func get[T any, P record[T]](ctx context.Context, s *Store, key string) (v T, revision int64, err error) {
	got, err := s.Client.Get(ctx, key)
	if err != nil || len(got.Kvs) == 0 {
		return v, 0, err
	}
	v, err = Read[T, P](s, got.Kvs[0])
	return v, got.Kvs[0].ModRevision, err
}

// unlessBad is an error but for a record that cannot be read: that one counts as if it said nothing.
func unlessBad(err error) error {
	if _, bad := errors.AsType[*BadRecordError](err); bad {
		return nil
	}
	return err
}
