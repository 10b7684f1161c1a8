package state

import (
	"bytes"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestExtensions: an executable that was published comes back as it was, whatever its size, until it is removed.
func TestExtensions(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	var digests []string
	for _, size := range []int{1, chunkSize, chunkSize + 1, MaxExtension} {
		content := bytes.Repeat([]byte{byte(size), 0}, size)[:size]
		e, err := s.Extensions.Publish(ctx, "banner\x1b[2J", "ada@laptop", content)
		must(t, err)
		_, err = s.Extensions.Publish(ctx, "banner\x1b[2J", "ada@laptop", content) // again: it is the same
		must(t, err)
		got, err := s.Extensions.Content(ctx, e.Digest)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
		digests = append(digests, e.Digest)
	}
	list, err := s.Extensions.List(ctx)
	must(t, err)
	if len(list) != 4 {
		t.Fatalf("%+v", list)
	}
	for _, e := range list {
		if e.Size == 0 || len(e.Missing) > 0 || e.By != "ada@laptop" || strings.Contains(e.Name, "\x1b") || time.Since(e.At) > time.Minute {
			t.Errorf("%+v", e)
		}
	}
	for _, digest := range digests {
		for i, want := range []bool{true, false} {
			if removed, err := s.Extensions.Remove(ctx, digest); err != nil || removed != want {
				t.Errorf("%d: %v %v", i, removed, err)
			}
		}
	}
	got, err := s.Client.Get(ctx, s.prefix+"extension", clientv3.WithPrefix())
	if err != nil || got.Count != 0 {
		t.Errorf("%d keys are left, %v", got.Count, err)
	}
}

// TestExtensionNotPublished: nothing and what is too large are refused, and leave nothing behind.
func TestExtensionNotPublished(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	for want, content := range map[string][]byte{
		"banner is empty":                 nil,
		"banner is larger than the 8 MiB": make([]byte, MaxExtension+1),
	} {
		if _, err := s.Extensions.Publish(ctx, "banner", "ada", content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if list, err := s.Extensions.List(ctx); err != nil || len(list) > 0 {
		t.Errorf("%+v %v", list, err)
	}
}

// TestDamagedExtension: what is not complete, or not what was published, is nothing, and the error names what is wrong
// and what helps.
func TestDamagedExtension(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir())
	etcd, err := raw(s)
	must(t, err)
	defer etcd.Close()
	content := make([]byte, 2*chunkSize+7)
	put := func(key, value string) {
		t.Helper()
		_, err := etcd.Put(ctx, key, value)
		must(t, err)
	}
	remove := func(key string) {
		t.Helper()
		_, err := etcd.Delete(ctx, key)
		must(t, err)
	}
	const again = ": publish it with: pullet extension publish FILE"
	for name, c := range map[string]struct {
		damage  func(digest string)
		want    string
		missing int // that List names
		unknown bool
	}{
		"no record":        {func(d string) { remove(s.Extensions.key(d)) }, "the fleet's record has no extension sha256:DIGEST" + again, 0, true},
		"a chunk is gone":  {func(d string) { remove(s.Extensions.chunkKey(d, 1)) }, "the fleet's record lacks chunk 2 of 3 of extension sha256:DIGEST" + again, 2, false},
		"the last is gone": {func(d string) { remove(s.Extensions.chunkKey(d, 2)) }, "the fleet's record lacks chunk 3 of 3 of extension sha256:DIGEST" + again, 3, false},
		"one is short":     {func(d string) { put(s.Extensions.chunkKey(d, 1), "x") }, "the fleet's record has 1 bytes of 262144 in chunk 2 of 3 of extension sha256:DIGEST" + again, 0, false},
		"one is changed":   {func(d string) { put(s.Extensions.chunkKey(d, 2), "changed") }, "the fleet's record has something else as extension sha256:DIGEST: a chunk of it was changed" + again, 0, false},
		"one too many":     {func(d string) { put(s.Extensions.chunkKey(d, 3), "more") }, "", 0, false},
		"no JSON":          {func(d string) { put(s.Extensions.key(d), "{") }, "etcd key extension/DIGEST cannot be read: unexpected end of JSON input; hosts without a copy cannot fetch it; pullet extension publish FILE, or pullet doctor --remove extension/DIGEST", 0, true},
		"another digest":   {func(d string) { put(s.Extensions.key(d), `{"digest": "x", "size": 1}`) }, "etcd key extension/DIGEST cannot be read: it is about another digest than its key", 0, true},
		"an absurd size":   {func(d string) { put(s.Extensions.key(d), `{"digest": "`+d+`", "size": 99999999}`) }, "etcd key extension/DIGEST cannot be read: its size 99999999 is not between 1 and 8388608", 0, true},
	} {
		e, err := s.Extensions.Publish(ctx, "banner", "ada", content)
		must(t, err)
		c.damage(e.Digest)
		got, err := s.Extensions.Content(ctx, e.Digest)
		if want := strings.ReplaceAll(c.want, "DIGEST", e.Digest); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || got != nil) {
			t.Errorf("%s: %d bytes, %v\nwant %s", name, len(got), err, want)
		}
		list, err := s.Extensions.List(ctx)
		must(t, err)
		if len(list) != 1 || list[0].Digest != e.Digest || (list[0].Size == 0) != c.unknown || c.missing > 0 && (len(list[0].Missing) != 1 || list[0].Missing[0] != c.missing) {
			t.Errorf("%s: %+v", name, list)
		}
		_, err = s.Extensions.Remove(ctx, e.Digest)
		must(t, err)
	}
}
