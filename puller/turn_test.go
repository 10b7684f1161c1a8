package puller

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// slow serves what a server does, but holds the first download until it is
// told to go on.
func slow(t *testing.T, w *webServer) (at string, begun <-chan struct{}, goOn func()) {
	t.Helper()
	to, err := url.Parse(w.url)
	must(t, err)
	to.Path = ""
	pass, arrived, open := httputil.NewSingleHostReverseProxy(to), make(chan struct{}), make(chan struct{})
	var first sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodPost {
			first.Do(func() { close(arrived) })
			<-open
		}
		pass.ServeHTTP(rw, req)
	}))
	goOn = sync.OnceFunc(func() { close(open) })
	t.Cleanup(func() { goOn(); srv.Close() })
	return srv.URL + "/state.git", arrived, goOn
}

// A process that comes while another one makes its first clone does not clear
// that away, and gets the commit after it.
func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	commit := u.commit("a", "1")
	at, begun, goOn := slow(t, serveHTTP(t, u))
	dir, src := t.TempDir(), Source{Name: "main", URL: at}
	heads, errs := make(chan []Head, 2), make(chan error, 2)
	run := func(p *Puller) {
		h, err := p.Pull(t.Context())
		heads <- h
		errs <- err
	}
	go run(open(t, dir, src))
	<-begun
	second := open(t, dir, src)
	if !exists(filepath.Join(dir, "main.git.new")) {
		t.Error("the clone is gone")
	}
	go run(second)
	goOn()
	for range 2 {
		h := <-heads
		must(t, <-errs)
		if h[0].Commit != commit || h[0].Problem != nil {
			t.Errorf("%+v", h)
		}
	}
	assertNoLeftovers(t, dir)
}

// What another process fetched is there without the remote, and so is what it
// accepted.
func TestSeesOthers(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	w := serveHTTP(t, u)
	dir, src := t.TempDir(), Source{Name: "main", URL: w.url}
	one, other := open(t, dir, src), open(t, dir, src)
	content(t, one, pull(t, one), "a")
	u.git("commit", "-q", "--amend", "-m", "other")
	bad := u.commit("a", "2")
	if h := pull(t, other); h.Problem == nil {
		t.Fatalf("%+v", h)
	}
	must(t, other.Accept(t.Context(), "main", bad, "root"))
	w.down.Store(true)
	h := pull(t, one)
	if got := content(t, one, h, "a"); h.Commit != bad || got != "2" {
		t.Errorf("%+v, a is %q", h, got)
	}
}

// Another process that takes long is waited for as long as the caller likes.
func TestTurnEnds(t *testing.T) {
	u := newUpstream(t)
	u.commit("a", "1")
	dir, src := t.TempDir(), Source{Name: "main", URL: u.dir}
	p := open(t, dir, src)
	other := newLock(dir)
	must(t, other.Lock())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Pull(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	late := open(t, dir, src)
	must(t, os.MkdirAll(filepath.Join(dir, "main.git.new"), 0o700)) // of one that is killed now
	must(t, other.Unlock())
	if h := pull(t, late); h.Problem != nil {
		t.Error(h.Problem)
	}
	assertNoLeftovers(t, dir)
}

// stopsAfter is a context that ends once it has been asked a number of times.
type stopsAfter struct {
	context.Context
	asks *int
}

func (c stopsAfter) Err() error {
	if *c.asks--; *c.asks < 0 {
		return context.Canceled
	}
	return nil
}

// A pull that is stopped lets go of the stores, whenever that happens.
func TestTurnStopped(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.commit("a", "1")
	for asks, stopped := 0, true; stopped; asks++ {
		dir, left := t.TempDir(), asks
		p := open(t, dir, Source{Name: "main", URL: u.dir})
		_, err := p.Pull(stopsAfter{t.Context(), &left})
		if stopped = left < 0; stopped && err == nil {
			t.Errorf("stopped after %d questions, and no error", asks)
		}
		if !p.mu.TryLock() {
			t.Fatalf("stopped after %d questions: the stores are still held, and closing them waits for ever", asks)
		}
		p.mu.Unlock()
		if mine, err := newLock(dir).TryLock(); !mine || err != nil {
			t.Errorf("stopped after %d questions: other processes are kept out: %v", asks, err)
		}
	}
}
