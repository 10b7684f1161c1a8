package link

import (
	"io"
	"net"
	"testing"
	"time"
)

// echo serves connections that return their data, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	go func() {
		for {
			conn, err := in.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn) // it ends with its connection
			}()
		}
	}()
	return in.Addr().String()
}

// ask sends a byte on a connection and returns the answer: the byte, "closed", or "nothing". It waits long unless
// nothing is expected.
func ask(t *testing.T, conn net.Conn, want string) string {
	t.Helper()
	if _, err := conn.Write([]byte("x")); err != nil {
		return "closed"
	}
	wait := 10 * time.Second
	if want == "nothing" {
		wait = 150 * time.Millisecond
	}
	if err := conn.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 1)
	_, err := conn.Read(got)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return "nothing"
	} else if err != nil {
		return "closed"
	}
	return string(got)
}

// TestModes: each mode does to a connection what its comment says, and after it a new connection works.
func TestModes(t *testing.T) {
	t.Parallel()
	l := New()
	at := l.Proxy(t, echo(t))
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if got := ask(t, conn, "x"); got != "x" {
			t.Fatalf("an open link carries %s", got)
		}
		return conn
	}
	for _, c := range []struct {
		mode         Mode
		during, then string
	}{
		{Open, "x", "x"}, {Slow, "nothing", "x"}, {Stall, "nothing", "x"}, {Deaf, "nothing", "closed"},
		{Mute, "nothing", "closed"}, {Cut, "closed", "closed"},
	} {
		conn := dial()
		l.Set(c.mode)
		if got := ask(t, conn, c.during); got != c.during {
			t.Errorf("mode %d: %s, want %s", c.mode, got, c.during)
		}
		l.Set(Open)
		if got := ask(t, conn, c.then); got != c.then {
			t.Errorf("after mode %d: %s, want %s", c.mode, got, c.then)
		}
		dial()
	}
}

// TestGate: a host reaches others over its link and theirs, and itself without a link.
func TestGate(t *testing.T) {
	t.Parallel()
	n, one, other := NewNetwork(), New(), New()
	n.Add(t, "one:1", echo(t), one)
	n.Add(t, "other:1", echo(t), other)
	gate := one.Gate(t, n)
	reach := func(address, want string) string {
		conn, err := net.Dial("tcp", gate)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "CONNECT "+address+" HTTP/1.1\r\nHost: "+address+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 200 OK\r\n\r\n"))); err != nil {
			t.Fatal(err)
		}
		return ask(t, conn, want)
	}
	if got := reach("other:1", "x"); got != "x" {
		t.Errorf("over two open links: %s", got)
	}
	other.Set(Deaf)
	if got := reach("other:1", "nothing"); got != "nothing" {
		t.Errorf("the link of the other host loses its requests: %s", got)
	}
	other.Set(Open)
	one.Set(Mute)
	if got := reach("other:1", "nothing"); got != "nothing" {
		t.Errorf("its own link loses its requests: %s", got)
	}
	if got := reach("one:1", "x"); got != "x" {
		t.Errorf("to itself: %s", got)
	}
}
