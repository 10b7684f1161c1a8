package authority

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asks is one request at a door without a network.
func asks(d http.Handler, method, path string, body io.Reader) (status int, said string) {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequest(method, path, body))
	var r refused
	_ = json.Unmarshal(w.Body.Bytes(), &r)
	return w.Code, r.Error
}

func askedFor(t testing.TB, token string) []byte {
	t.Helper()
	text, err := json.Marshal(Asked{Token: token, Request: "a request"})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// aToken is one that has the form of a token.
func aToken(t testing.TB) string {
	t.Helper()
	_, token, err := Invite("web1", Node, "ada", noon)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestDoor(t *testing.T) {
	token := aToken(t)
	var result error
	var answer Answer
	var asked, logged int
	door := Handler(func(context.Context, Asked) (Answer, error) {
		asked++
		return answer, result
	}, func(error) { logged++ })
	good := askedFor(t, token)
	for _, c := range []struct {
		what, method, path string
		body               []byte
		err                error
		status             int
		said               string
		admits, logs       int
	}{
		{"a host", "POST", "/join", good, nil, 200, "", 1, 0},
		{"another method", "GET", "/join", nil, nil, 405, "", 0, 0},
		{"another path", "POST", "/", good, nil, 404, "", 0, 0},
		{"no JSON", "POST", "/join", []byte("x"), nil, 400, "not the JSON that is expected", 0, 0},
		{"an empty body", "POST", "/join", nil, nil, 400, "not the JSON that is expected", 0, 0},
		{"a further field", "POST", "/join", []byte(`{"token":"a","kind":"operator"}`), nil, 400, `unknown field "kind"`, 0, 0},
		{"a second value", "POST", "/join", append(bytes.Clone(good), good...), nil, 400, "something follows it", 0, 0},
		{"no token", "POST", "/join", []byte(`{}`), nil, 403, "the token is wrong", 0, 0},
		{"the longest body", "POST", "/join", append(bytes.Clone(good), bytes.Repeat([]byte(" "), maxAsked-len(good))...), nil, 200, "", 1, 0},
		{"a huge body", "POST", "/join", append(bytes.Clone(good), bytes.Repeat([]byte(" "), maxAsked)...), nil, 413, "more than 65536 bytes", 0, 0},
		{"a refusal", "POST", "/join", good, fmt.Errorf("etcd: %w", refusal("the token is wrong")), 403, "the token is wrong", 1, 0},
		{"another error", "POST", "/join", good, errors.New("etcd3 at 10.0.0.1 is away"), 500, "the authority cannot answer now", 1, 1},
	} {
		asked, logged, result = 0, 0, c.err
		status, said := asks(door, c.method, c.path, bytes.NewReader(c.body))
		if status != c.status || !strings.Contains(said, c.said) || strings.Contains(said, "etcd") || asked != c.admits || logged != c.logs {
			t.Errorf("%s: %d %q, %d asked, %d logged", c.what, status, said, asked, logged)
		}
	}
	result, answer, logged = nil, Answer{Configuration: strings.Repeat("a", maxAnswer)}, 0
	if status, said := asks(door, "POST", "/join", bytes.NewReader(good)); status != 500 || logged != 1 {
		t.Errorf("an answer that no host takes: %d %q", status, said)
	}
}

// TestDoorUnderFlood: when many were refused, the door asks about few a second, and it recovers; who was admitted and
// whose request has no form does not count.
func TestDoorUnderFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := askedFor(t, aToken(t))
		asked, wrong := 0, true
		door := Handler(func(context.Context, Asked) (Answer, error) {
			if asked++; wrong {
				return Answer{}, wrongToken()
			}
			return Answer{}, nil
		}, func(err error) { t.Error(err) })
		flood := func(n int, body []byte) (busy int) {
			for range n {
				if status, _ := asks(door, "POST", "/join", bytes.NewReader(body)); status == http.StatusTooManyRequests {
					busy++
				}
			}
			return busy
		}
		if busy := flood(1000, []byte("{}")); busy != 0 || asked != 0 {
			t.Error("requests without a token count:", busy, asked)
		}
		if busy := flood(1000, good); asked != failuresAtOnce || busy != 1000-failuresAtOnce {
			t.Errorf("%d were asked about, %d were not", asked, busy)
		}
		time.Sleep(time.Second)
		if flood(1000, good); asked != failuresAtOnce+failuresPerSecond {
			t.Errorf("%d were asked about a second later", asked)
		}
		time.Sleep(time.Second)
		if wrong = false; flood(1000, good) != 0 {
			t.Error("hosts that are admitted count")
		}
		time.Sleep(time.Hour)
		wrong, asked = true, 0
		if flood(1000, good); asked != failuresAtOnce {
			t.Errorf("%d were asked about after an hour", asked)
		}
	})
}

// TestDoorAsksForFewAtOnce: tries that are not decided yet count, too: a flood all at once asks no more.
func TestDoorAsksForFewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := askedFor(t, aToken(t))
		var mu sync.Mutex
		asked := 0
		decided := make(chan struct{})
		door := Handler(func(context.Context, Asked) (Answer, error) {
			mu.Lock()
			asked++
			mu.Unlock()
			<-decided
			return Answer{}, wrongToken()
		}, func(error) {})
		var all sync.WaitGroup
		for range 3 * failuresAtOnce {
			all.Go(func() { asks(door, "POST", "/join", bytes.NewReader(good)) })
		}
		synctest.Wait()
		if asked != failuresAtOnce {
			t.Errorf("%d were asked about at once", asked)
		}
		close(decided)
		all.Wait()
	})
}

// TestDoorSlowBody: who sends slowly is told so, and a try that takes long after its body does not end for that.
func TestDoorSlowBody(t *testing.T) {
	for half, want := range map[bool]string{true: "408 Request Timeout", false: "200 OK"} {
		synctest.Test(t, func(t *testing.T) {
			pipes := &pipes{made: make(chan net.Conn), closed: make(chan struct{})}
			server := &http.Server{Handler: &door{
				admit: func(ctx context.Context, _ Asked) (Answer, error) {
					time.Sleep(2 * bodyTime)
					return Answer{Name: "web1"}, ctx.Err()
				},
				log: func(err error) { t.Error(err) }, patience: bodyTime, failures: newBucket(1, 1),
			}}
			go func() { _ = server.Serve(pipes) }()
			defer server.Close()
			client, conn := net.Pipe()
			pipes.made <- conn
			send := askedFor(t, aToken(t))
			began, length := time.Now(), len(send)
			if half {
				send = send[:length/2]
			}
			fmt.Fprintf(client, "POST /join HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", length, send)
			answer, err := io.ReadAll(client)
			if took := time.Since(began); !strings.Contains(string(answer), want) || took < bodyTime {
				t.Errorf("half a body: %v: after %s: %s %v", half, took, answer, err)
			}
			_ = client.Close()
		})
	}
}

// pipes is a listener whose connections a test makes.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func FuzzAsked(f *testing.F) {
	f.Add(askedFor(f, aToken(f)))
	f.Add([]byte(`{"token":"a"}{}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var seen *Asked
		door := Handler(func(_ context.Context, a Asked) (Answer, error) {
			seen = &a
			return Answer{}, nil
		}, func(err error) { t.Error(err) })
		status, said := asks(door, "POST", "/join", bytes.NewReader(body))
		if (status == http.StatusOK) != (seen != nil) || status != http.StatusOK && said == "" {
			t.Errorf("%d %q", status, said)
		}
		if seen == nil {
			return
		}
		if _, err := TokenID(seen.Token); err != nil {
			t.Errorf("admit is asked about the token %q", seen.Token)
		}
	})
}
