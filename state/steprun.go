package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// StepHash is a step's, or an election's, part of a key: names may have any letters and any length.
func StepHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:10])
}

// Key is a key of a gate inside a run, in one rollout.
func (s *Steps) Key(rollout, hash string, parts ...string) string {
	return s.store.key("run", rollout, hash) + "/" + strings.Join(parts, "/")
}

// SemaphorePrefix is where the claims of a serialized step are, of all for "". Like slots they outlive versions: two
// nodes on different versions do not run the step side by side either.
func (s *Steps) SemaphorePrefix(hash string) string {
	if hash == "" {
		return s.store.key("semaphore") + "/"
	}
	return s.store.key("semaphore", hash) + "/"
}

// StepResult is what a chosen node's step returned to the others.
type StepResult struct {
	Node   string          `json:"node"`
	Step   string          `json:"step"`   // its id, for people
	Result string          `json:"result"` // ok, failed, unknown, skipped
	Reason string          `json:"reason,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"` // the result itself where it is small
	Blob   string          `json:"blob,omitempty"`  // the digest of its content where it is not
	At     time.Time       `json:"at"`

	Attempt string `json:"attempt,omitempty"` // that ended so
}

// StepStart is the start of a step on a chosen node.
type StepStart struct {
	Step    string    `json:"step"` // its id, for people
	Attempt string    `json:"attempt"`
	At      time.Time `json:"at"`

	// of its result: the step runs again when it is older; 0 is any age
	MaxAge     time.Duration `json:"maxAge,omitempty"`
	Repeatable bool          `json:"repeatable,omitempty"` // it may run again where its end is not on record
}

// ReadStart is the start of a step as it stands in etcd. Of one that cannot be read the attempt is nobody's: what came
// of it is not known.
func (s *Steps) ReadStart(kv *mvccpb.KeyValue) StepStart {
	start, err := Read[StepStart](s.store, kv)
	if err != nil {
		return StepStart{Attempt: "unreadable"}
	}
	return start
}

// ReadResult is what came of a step, as it stands in etcd. What cannot be read is unknown.
func (s *Steps) ReadResult(kv *mvccpb.KeyValue) StepResult {
	r, err := Read[StepResult](s.store, kv)
	if err != nil {
		k, _ := s.store.Key(kv)
		return StepResult{Node: k.Node, Result: "unknown", Reason: err.Error()}
	}
	return r
}

// OnceScope stands for a version in the keys of steps that run once in the fleet's life.
const OnceScope = "once"

const (
	chunkSize = 256 << 10
	inline    = 2 << 10 // a result up to here stands in its key
	// maxShared is how large a result may be that nodes share.
	maxShared = 1 << 20
)

// ErrTooLarge is about a result that cannot be shared.
var ErrTooLarge = errors.New("what nodes share is limited")

// Share prepares a result for the others: what is large goes into chunks, named by its digest.
func (s *Results) Share(ctx context.Context, r StepResult, value []byte) (StepResult, error) {
	if len(value) > 2*maxShared { // as JSON, bytes take more room, and encrypted ones more again
		return r, fmt.Errorf(
			"the result of %s is %d KiB: %w to %d KiB; large files belong into the repository or a file server",
			r.Step,
			len(value)>>10,
			ErrTooLarge,
			maxShared>>10,
		)
	}
	if len(value) <= inline {
		r.Value = value
		return r, nil
	}
	sum := sha256.Sum256(value)
	r.Blob = hex.EncodeToString(sum[:])
	for i := 0; len(value) > 0; i++ {
		n := min(len(value), chunkSize)
		key := s.key(r.Blob, i)
		// also where it is there: it is in use again
		if _, err := s.store.Client.Put(ctx, key, string(value[:n])); err != nil {
			return r, err
		}
		value = value[n:]
	}
	return r, nil
}

func (s *Results) key(digest string, i int) string {
	return s.store.key("blob", digest, fmt.Sprintf("%03d", i))
}

// Read reads the value of a result, as JSON, checked against its digest.
func (s *Results) Read(ctx context.Context, r StepResult, into any) error {
	value, err := s.read(ctx, r)
	if err != nil || len(value) == 0 {
		return err
	}
	return ReadValue(r, value, into)
}

// ReadValue reads what a result holds, as JSON within the bounds of records.
func ReadValue(r StepResult, value []byte, into any) error {
	if err := unpackJSON(value, into); err != nil {
		return fmt.Errorf(
			"the shared result of %s from %s cannot be read: %w; commit a change to the step, or run it again",
			r.Step,
			r.Node,
			err,
		)
	}
	return nil
}

func (s *Results) read(ctx context.Context, r StepResult) ([]byte, error) {
	if r.Blob == "" {
		return r.Value, nil
	}
	got, err := s.store.Client.Get(
		ctx,
		s.store.key("blob", r.Blob)+"/",
		clientv3.WithPrefix(),
		clientv3.WithLimit(2*maxShared/chunkSize),
	)
	if err != nil {
		return nil, err
	}
	var value []byte
	for _, kv := range got.Kvs {
		value = append(value, kv.Value...)
	}
	sum := sha256.Sum256(value)
	if hex.EncodeToString(sum[:]) != r.Blob {
		return nil, fmt.Errorf(
			"the shared result of %s from %s is not complete in etcd: commit a change to the step, or run it again",
			r.Step,
			r.Node,
		)
	}
	return value, nil
}

// sweep removes shared content that no result of a kept version names and that is older than the oldest of them.
func (s *Results) sweep(ctx context.Context, oldest Version) error {
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.store.key("blob")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly()),
		clientv3.OpGet(s.store.Versions.historyKey(oldest.Seq), clientv3.WithKeysOnly()),
	).Commit()
	if err != nil {
		return err
	}
	blobs, first := got.Responses[0].GetResponseRange().Kvs, got.Responses[1].GetResponseRange().Kvs
	if len(blobs) == 0 || len(first) == 0 {
		return nil
	}
	named, err := s.named(ctx)
	if err != nil {
		return err
	}
	for _, kv := range blobs {
		if k, err := s.store.Key(kv); err == nil && kv.ModRevision < first[0].CreateRevision && !named[k.Word] {
			unused := clientv3.Compare(
				clientv3.ModRevision(string(kv.Key)),
				"=",
				kv.ModRevision,
			) // nobody shares the same content just now
			if _, err := s.store.Client.Txn(ctx).If(unused).Then(clientv3.OpDelete(string(kv.Key))).Commit(); err != nil {
				return err
			}
		}
	}
	return nil
}

// named are the digests that results name.
func (s *Results) named(ctx context.Context) (map[string]bool, error) {
	got, err := s.store.Client.Get(ctx, s.store.key("run")+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, kv := range got.Kvs {
		if k, err := s.store.Key(kv); err != nil || k.kind.shape != "run/ROLLOUT/HASH/result/NODE" {
			continue
		}
		if r, err := Read[StepResult](s.store, kv); err == nil && r.Blob != "" {
			named[r.Blob] = true
		}
	}
	return named, nil
}
