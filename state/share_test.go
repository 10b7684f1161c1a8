package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestShare: small results stand in their key, larger ones in chunks named by their digest; both come back whole.
func TestShare(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for size, chunks := range map[int]int64{0: 0, 1: 0, inline: 0, inline + 1: 1, chunkSize: 1, chunkSize + 1: 2, maxShared: 4, maxShared + maxShared/2: 6} {
		value := bytes.Repeat([]byte{byte('a' + size%26)}, size)
		r, err := s.Results.Share(ctx, StepResult{Step: "init", Node: "m1"}, value)
		must(t, err)
		if n := count(t, s, s.key("blob", r.Blob)+"/"); r.Blob != "" && n != chunks || r.Blob == "" && chunks != 0 {
			t.Errorf("%d bytes: %d chunks, want %d", size, n, chunks)
		}
		if got, err := s.Results.read(ctx, r); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%d bytes: %d came back, %v", size, len(got), err)
		}
	}
}

// TestShareTooMuch: the error says how large it is, how large it may be, and what to do.
func TestShareTooMuch(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	_, err := s.Results.Share(ctx, StepResult{Step: "fetch image"}, make([]byte, 2*maxShared+1))
	want := "the result of fetch image is 2048 KiB: what nodes share is limited to 1024 KiB; large files belong into the repository or a file server"
	if err == nil || err.Error() != want || !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if n := count(t, s, s.key("blob")+"/"); n != 0 {
		t.Errorf("%d chunks were written", n)
	}
}

// TestSharedIsChecked: what is not complete, or not what was shared, is not handed out.
func TestSharedIsChecked(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for name, spoil := range map[string]func(first string) error{
		"a chunk is missing": func(first string) error { _, err := s.Client.Delete(ctx, first); return err },
		"a chunk is another": func(first string) error { return put(s, first) },
		"one chunk too many": func(first string) error {
			_, err := s.Client.Put(ctx, strings.TrimSuffix(first, "000")+"009", "x")
			return err
		},
	} {
		r, err := s.Results.Share(ctx, StepResult{Step: "init", Node: "m1"}, bytes.Repeat([]byte(name), chunkSize/8))
		must(t, err, spoil(s.Results.key(r.Blob, 0)))
		if got, err := s.Results.read(ctx, r); err == nil || !strings.Contains(err.Error(), "the shared result of init from m1 is not complete in etcd") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if r, err = s.Results.Share(ctx, r, bytes.Repeat([]byte(name), chunkSize/8)); err != nil {
			t.Error(err)
		}
		if _, err := s.Results.read(ctx, r); (err == nil) != (name != "one chunk too many") {
			t.Errorf("%s: shared again: %v", name, err)
		}
	}
}

// TestSweepBlobs: content goes when no kept version names it, and none that somebody is about to name.
func TestSweepBlobs(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	share := func(v *Version, text string, named bool) StepResult {
		t.Helper()
		r, err := s.Results.Share(ctx, StepResult{Node: text, Step: text, Result: "ok"}, bytes.Repeat([]byte(text), inline))
		must(t, err)
		if named {
			_, err = s.Client.Do(ctx, Put(s.Steps.Key(v.Rollout(), StepHash("x"), "result", text), r))
			must(t, err)
		}
		return r
	}
	first := propose(t, s, "first")
	old, orphan, both := share(first, "old", true), share(first, "orphan", false), share(first, "both", true)
	second := propose(t, s, "second")
	share(second, "both", true)
	kept := share(second, "kept", true)
	for i := range keptVersions - 1 {
		propose(t, s, fmt.Sprint("v", i))
	}
	last := propose(t, s, "last") // "second" is gone as well
	young := share(last, "young", false)
	there := func(r StepResult) bool { return count(t, s, s.key("blob", r.Blob)+"/") > 0 }
	if there(old) || there(orphan) || there(both) || there(kept) || !there(young) {
		t.Errorf("old %v, orphan %v, both %v, kept %v, young %v", there(old), there(orphan), there(both), there(kept), there(young))
	}
}

// TestSweepSpares: content of an old version that a kept one names too stays.
func TestSweepSpares(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	first := propose(t, s, "first")
	r, err := s.Results.Share(ctx, StepResult{Node: "m1", Result: "ok"}, bytes.Repeat([]byte("x"), inline+1))
	must(t, err)
	orphan, err := s.Results.Share(ctx, StepResult{}, bytes.Repeat([]byte("y"), inline+1))
	must(t, err)
	name := func(v *Version) {
		_, err := s.Client.Do(ctx, Put(s.Steps.Key(v.Rollout(), StepHash("x"), "result", "m1"), r))
		must(t, err)
	}
	name(first)
	for i := range keptVersions {
		v := propose(t, s, fmt.Sprint("v", i))
		if i == 5 {
			name(v)
		}
	}
	if n := count(t, s, s.key("blob", orphan.Blob)+"/"); n != 0 {
		t.Error("nobody names it, and it is kept")
	}
	if got, err := s.Results.read(ctx, r); err != nil || len(got) != inline+1 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// unreadable is etcd that does not answer a read of one key range.
type unreadable struct {
	clientv3.KV
	of string
}

func (u unreadable) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if key == u.of {
		return nil, context.DeadlineExceeded
	}
	return u.KV.Get(ctx, key, opts...)
}

// TestSweepUnread: where it cannot be read what results name, no content is removed.
func TestSweepUnread(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	r, err := s.Results.Share(ctx, StepResult{Node: "m1", Result: "ok"}, bytes.Repeat([]byte("x"), inline+1))
	must(t, err)
	oldest := propose(t, s, "oldest")
	s.Client.KV = unreadable{s.Client.KV, s.key("run") + "/"}
	if err := s.Results.sweep(ctx, *oldest); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if n := count(t, s, s.key("blob", r.Blob)+"/"); n == 0 {
		t.Error("the content is gone")
	}
}
