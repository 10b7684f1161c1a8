package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Extension is the executable of an action that a repository brings itself, as an operator published it. Its content is
// beside it, in chunks.
type Extension struct {
	Digest  string    `json:"digest"`            // SHA-256 of the content, 64 hexadecimal digits
	Size    int       `json:"size"`              // of the content, in bytes
	Name    string    `json:"name"`              // of the file that was published, for people
	By      string    `json:"by"`                // who published it
	At      time.Time `json:"at"`                // by the clock of who did
	Missing []int     `json:"missing,omitempty"` // the chunks that are not there, from 1 on; none: it is complete
}

// MaxExtension is how large a published executable may be, in bytes.
const MaxExtension = 8 << 20

func (e *Extension) check(k Key) error {
	var c checks
	c.unless(e.Digest == k.Word, "it is about another digest than its key")
	c.unless(e.Size > 0 && e.Size <= MaxExtension, "its size %d is not between 1 and %d", e.Size, MaxExtension)
	c.times(e.At)
	line(&e.Name, &e.By)
	e.Missing = nil // List finds out
	return c.err
}

// chunks is in how many the content is.
func (e *Extension) chunks() int { return (e.Size + chunkSize - 1) / chunkSize }

// chunk is how large one is that is whole, from 0 on.
func (e *Extension) chunk(i int) int { return min(chunkSize, e.Size-i*chunkSize) }

// publishWith is what helps against content that is not complete.
const publishWith = "publish it with: pullet extension publish FILE"

func (s *Extensions) key(digest string) string { return s.store.key("extension", digest) }

func (s *Extensions) chunkKey(digest string, i int) string {
	return s.store.key("extension", digest, fmt.Sprintf("%03d", i))
}

// Publish puts an executable on record, in the place of one with the same content. It returns the record that it made.
func (s *Extensions) Publish(ctx context.Context, name, by string, content []byte) (Extension, error) {
	sum := sha256.Sum256(content)
	e := Extension{hex.EncodeToString(sum[:]), len(content), name, by, time.Now().UTC(), nil}
	switch {
	case len(content) == 0:
		return e, fmt.Errorf("%s is empty", name)
	case len(content) > MaxExtension:
		return e, fmt.Errorf("%s is larger than the %d MiB that the fleet's record takes: put it on a web server, "+
			"and write url: instead of datastore: into the manifest", name, MaxExtension>>20)
	}
	for i := range e.chunks() {
		part := content[i*chunkSize:][:e.chunk(i)]
		if _, err := s.store.Client.Put(ctx, s.chunkKey(e.Digest, i), string(part)); err != nil {
			return e, err
		}
	}
	_, err := s.store.Client.Do(ctx, Put(s.key(e.Digest), e)) // last: what is on record is complete
	return e, err
}

// Content is an executable, held against its digest.
func (s *Extensions) Content(ctx context.Context, digest string) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("the fleet's record "+format+": "+publishWith, args...)
	}
	got, err := s.store.Client.Txn(ctx).Then(
		clientv3.OpGet(s.key(digest)),
		clientv3.OpGet(s.key(digest)+"/", clientv3.WithPrefix(), clientv3.WithLimit(MaxExtension/chunkSize)),
	).Commit()
	if err != nil {
		return nil, err
	}
	record, chunks := got.Responses[0].GetResponseRange().Kvs, got.Responses[1].GetResponseRange().Kvs
	if len(record) == 0 {
		return fail("has no extension sha256:%s", digest)
	}
	e, err := Read[Extension](s.store, record[0])
	if err != nil {
		return nil, err
	}
	found := s.found(chunks)
	if e.Missing = e.without(found); len(e.Missing) > 0 {
		return fail("lacks chunk %d of %d of extension sha256:%s", e.Missing[0], e.chunks(), digest)
	}
	var content []byte
	for i := range e.chunks() {
		if n := len(found[i].Value); n != e.chunk(i) {
			return fail("has %d bytes of %d in chunk %d of %d of extension sha256:%s",
				n, e.chunk(i), i+1, e.chunks(), digest)
		}
		content = append(content, found[i].Value...)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return fail("has something else as extension sha256:%s: a chunk of it was changed", digest)
	}
	return content, nil
}

// found are chunks by their numbers, from 0 on.
func (s *Extensions) found(chunks []*mvccpb.KeyValue) map[int]*mvccpb.KeyValue {
	out := map[int]*mvccpb.KeyValue{}
	for _, kv := range chunks {
		if k, err := s.store.Key(kv); err == nil {
			out[k.Place] = kv
		}
	}
	return out
}

// without are the numbers, from 1 on, of the chunks that are not there.
func (e *Extension) without(found map[int]*mvccpb.KeyValue) (missing []int) {
	for i := range e.chunks() {
		if found[i] == nil {
			missing = append(missing, i+1)
		}
	}
	return missing
}

// List are the executables on record, by their digests. Of chunks without a record, which a publication leaves that was
// cut off, nothing but the digest is known: their size is 0.
func (s *Extensions) List(ctx context.Context) ([]Extension, error) {
	got, err := s.store.Client.Get(ctx, s.store.key("extension")+"/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	out, chunks := []Extension{}, map[string][]*mvccpb.KeyValue{}
	for _, kv := range got.Kvs {
		k, err := s.store.Key(kv)
		if err != nil {
			continue
		}
		if k.kind.shape == "extension/DIGEST/CHUNK" {
			chunks[k.Word] = append(chunks[k.Word], kv)
		}
		if n := len(out); n == 0 || out[n-1].Digest != k.Word { // a record comes before its chunks
			e, err := s.record(ctx, k.Word)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	for i, e := range out {
		out[i].Missing = e.without(s.found(chunks[e.Digest]))
	}
	return out, nil
}

// record is what is on record of an executable; of nothing that can be read, its digest alone.
func (s *Extensions) record(ctx context.Context, digest string) (Extension, error) {
	e, _, err := get[Extension](ctx, s.store, s.key(digest))
	if e.Digest == "" {
		e.Digest = digest
	}
	return e, unlessBad(err)
}

// Remove takes an executable off the record, with its chunks. It reports false where there was none.
func (s *Extensions) Remove(ctx context.Context, digest string) (bool, error) {
	if !hexOf(digest, 64) {
		return false, fmt.Errorf("%s is no digest of 64 hexadecimal digits: pullet extension list", quoted(digest))
	}
	done, err := s.store.Client.Txn(ctx).
		Then(clientv3.OpDelete(s.key(digest)), clientv3.OpDelete(s.key(digest)+"/", clientv3.WithPrefix())).
		Commit()
	if err != nil {
		return false, err
	}
	removed := int64(0)
	for _, r := range done.Responses {
		removed += r.GetResponseDeleteRange().Deleted
	}
	return removed > 0, nil
}
