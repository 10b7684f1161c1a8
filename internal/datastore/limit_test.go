package datastore

import (
	"net"
	"testing"
	"time"
)

// TestLimit: whoever comes when all places are taken is sent away, and a place that is left can be taken again.
func TestLimit(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	few := limit(l, 2)
	defer few.Close()
	in := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := few.Accept()
			if err != nil {
				return
			}
			in <- c
		}
	}()
	enters := func() bool {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		_, err = c.Read(make([]byte, 1))
		timeout, ok := err.(net.Error)
		return ok && timeout.Timeout() // it stands there
	}
	if got := [...]bool{enters(), enters(), enters()}; got != [...]bool{true, true, false} {
		t.Error("of three there are in: ", got)
	}
	first := <-in
	_ = first.Close()
	_ = first.Close()
	if !enters() || enters() {
		t.Error("one place was free")
	}
}
