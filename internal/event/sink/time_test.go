package sink

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pullet/pullet/internal/etcdmodel"
	"github.com/pullet/pullet/state"
)

// inVirtualTime runs a test in a bubble, over the model of etcd. Its receivers are reached by pipes, which unlike the
// network let the clock advance.
func inVirtualTime(t *testing.T, do func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := etcdmodel.New(rand.New(rand.NewPCG(1, 1)))
		defer c.Close()
		began := time.Now()
		store := state.Over(c.Connect("web1").Client(), "f", func() time.Duration { return time.Since(began) })
		w := &world{t: t, store: store, log: &bytes.Buffer{}, wire: &wire{ends: map[string]*pipes{}}}
		w.lead()
		do(t, w)
	})
}

// wire connects clients and receivers by pipes.
type wire struct{ ends map[string]*pipes } // by the address of the receiver

func (w *wire) client() (*http.Client, error) {
	return &http.Client{Transport: &http.Transport{DialContext: w.dial}}, nil
}

func (w *wire) dial(ctx context.Context, _, address string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case w.ends[address].incoming <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pipes is the listener of a receiver. Connections wait in it until they are accepted.
type pipes struct {
	incoming chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (w *wire) listen(address string) *pipes {
	p := &pipes{incoming: make(chan net.Conn, 10), closed: make(chan struct{})}
	w.ends[address] = p
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.incoming:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// receiver starts a receiver on the wire and returns it with a sink that sends to it.
func (w *world) receiver(name string, answers func(ids []string, w http.ResponseWriter, r *http.Request) int) (*Sink, *receiver) {
	out := &receiver{more: make(chan struct{})}
	out.Server = &httptest.Server{
		Listener: w.wire.listen(name + ":80"), Config: &http.Server{Handler: out.handler(answers)},
	}
	out.Start()
	out.URL = "http://" + name
	w.t.Cleanup(out.Close)
	return to(name, out), out
}

// TestFailsForAWhile: what a receiver does not take now is tried again, in order, not sooner than it asks for; another
// sink does not wait for it. The record says what is wrong, and the log says it once.
func TestFailsForAWhile(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		var tries []time.Time
		one, slow := w.receiver("slow", func(_ []string, w http.ResponseWriter, _ *http.Request) int {
			if tries = append(tries, time.Now()); len(tries) <= 3 {
				w.Header().Set("Retry-After", "20")
				return []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusInternalServerError}[len(tries)-1]
			}
			return http.StatusOK
		})
		two, well := w.receiver("well", nil)
		w.once(one, two)
		w.happens("a-1", "a-2")
		end := w.follow(one, two)
		time.Sleep(45 * time.Second)
		if !well.has([]string{"a-1", "a-2"}) || slow.has([]string{"a-1", "a-2"}) {
			t.Error("the other one was waited for")
		}
		if r := w.record("slow"); r.Failures != 3 || r.Waiting != 2 || r.Since.IsZero() || r.Error != "the receiver answered 500 Internal Server Error" {
			t.Errorf("%+v", r)
		}
		time.Sleep(30 * time.Second)
		slow.awaits(t, "a-1", "a-2")
		end()
		if r := w.record("slow"); r.Sent != 2 || r.Failures != 0 || !r.Since.IsZero() || r.Waiting != 0 || r.Dropped != 0 {
			t.Errorf("%+v", r)
		}
		for i := range 3 {
			if waited := tries[i+1].Sub(tries[i]); waited < 20*time.Second || waited > 21*time.Second {
				t.Errorf("it was tried again after %s", waited)
			}
		}
		if n := strings.Count(w.logged(), "500 Internal"); n != 2 { // 500, 429, 500: each time it is another reason
			t.Errorf("%d times:\n%s", n, w.logged())
		}
		if strings.Count(w.logged(), "events can be sent again") != 1 {
			t.Error(w.logged())
		}
	})
}

// TestNoAnswer: a receiver that takes connections and never answers costs its own time, and is tried again.
func TestNoAnswer(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		two, well := w.receiver("well", nil)
		one := to("silent", well)
		one.URL = "http://silent"
		w.wire.listen("silent:80") // nobody accepts
		w.once(two)
		w.once(one, two)
		w.happens("a-1")
		began := time.Now()
		w.once(one, two)
		well.awaits(t, "a-1")
		if r := w.record("silent"); r.Error != "no answer within 4s" || r.Failures != 1 || r.Waiting != 1 {
			t.Errorf("%+v", r)
		}
		if took := time.Since(began); took < onceTime || took > onceTime+time.Second {
			t.Errorf("it took %s", took)
		}
		w.happens("a-2")
		began = time.Now()
		end := w.follow(one, two)
		time.Sleep(2 * time.Second)
		well.awaits(t, "a-1", "a-2")
		for w.record("silent").Failures < 2 {
			time.Sleep(100 * time.Millisecond)
		}
		if r := w.record("silent"); r.Error != "no answer within 10s" || r.Waiting != 2 {
			t.Errorf("%+v", r)
		}
		if took := time.Since(began); took < sendTime || took > sendTime+2*leastWait {
			t.Errorf("it took %s", took)
		}
		end()
	})
}

// TestMissingSecret: a host without the file cannot send, and says so once.
func TestMissingSecret(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, w *world) {
		s, r := w.receiver("chat", nil)
		s.TokenFile, s.Secret = filepath.Join(t.TempDir(), "chat.token"), os.ReadFile
		w.once(s)
		w.happens("a-1")
		end := w.follow(s)
		time.Sleep(5 * time.Second) // tries after 0, 1 and 3 seconds
		if got := w.record("chat"); got.Failures != 3 {
			t.Errorf("%+v", got)
		}
		if n := strings.Count(w.logged(), "events cannot be sent: tokenFile: open "); n != 1 {
			t.Errorf("%d times:\n%s", n, w.logged())
		}
		if err := os.WriteFile(s.TokenFile, []byte("t"), 0o600); err != nil {
			t.Fatal(err)
		}
		r.awaits(t, "a-1")
		end()
	})
}
