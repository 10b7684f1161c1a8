package file_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/actiontest"
)

// TestCheckAsksNobody: comparing a file or an archive that comes from an address never uses the network.
func TestCheckAsksNobody(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	packed := actiontest.Gzipped(actiontest.Tarball(actiontest.Packed{"f", "app", "x"}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Write([]byte(packed))
	}))
	defer server.Close()
	from := ", source: " + server.URL + "/x?token=secret, digest: '" + actiontest.SumOf(packed) + "'}"
	for _, step := range []string{"file.managed {name: /f", "archive.extracted {name: /opt"} {
		act, params, _ := strings.Cut(step+from, " ")
		s := actiontest.New(t)
		p := s.MustBind(act, params)
		s.Plan(p)
		if n := asked.Swap(0); n != 0 {
			t.Errorf("%s: the plan asked %d times", act, n)
		}
		if r := s.Run(p); r.Outcome != apply.Changed || asked.Swap(0) != 1 || strings.Contains(r.Diff, "secret") {
			t.Errorf("%s: %s %s %s", act, r.Outcome, r.Reason, r.Diff)
		}
		s.Plan(p)
		s.Run(p)
		if n := asked.Swap(0); n != 0 {
			t.Errorf("%s: what is there was asked for %d times", act, n)
		}
	}
}

// TestBadServers: what ends early, is announced too large, or never comes leaves nothing behind, and says so without
// the address's secrets.
func TestBadServers(t *testing.T) {
	t.Parallel()
	handlers := map[string]http.HandlerFunc{
		"early": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.Write([]byte("begun"))
		},
		"large": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99999999999")
		},
	}
	for name, want := range map[string]string{"early": "unexpected EOF", "large": "it has 99999999999 bytes, more than the limit of"} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(handlers[name])
			defer server.Close()
			s := actiontest.New(t, "f d/f 644 old")
			address := strings.Replace(server.URL, "://", "://user:secret@", 1)
			r := s.Run(s.MustBind("file.managed", "{name: /d/f, source: '"+address+"/x?token=secret', digest: '"+actiontest.NoSum+"'}"))
			if r.Outcome != apply.Failed || !strings.Contains(r.Reason, want) || strings.Contains(r.Reason, "secret") {
				t.Errorf("%s %q, want %q", r.Outcome, r.Reason, want)
			}
			justOne(s, "d", "old")
		})
	}
}

// TestDownloadIsCancelled: a download ends with its context, and leaves nothing.
func TestDownloadIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	begun, over := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 1<<16))
		w.(http.Flusher).Flush()
		close(begun)
		<-over
	}))
	defer server.Close()
	defer close(over)
	go func() {
		<-begun
		cancel()
	}()
	s := actiontest.New(t, "f d/f 644 old")
	if r := s.RunAll(ctx, s.MustBind("file.managed", "{name: /d/f, source: "+server.URL+"/x, digest: '"+actiontest.NoSum+"'}")); r.Stopped == "" {
		t.Errorf("%+v", r)
	}
	justOne(s, "d", "old")
}
