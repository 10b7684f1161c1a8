package freeport

import (
	"net"
	"strconv"
	"testing"
)

// TestAddress: each address is another one, free, and at a port that the kernel gives to nobody.
func TestAddress(t *testing.T) {
	first, last := kernels()
	seen := map[string]bool{}
	for range 50 {
		at, err := Address()
		if err != nil {
			t.Fatal(err)
		}
		_, text, err := net.SplitHostPort(at)
		if err != nil {
			t.Fatal(err)
		}
		if port, err := strconv.Atoi(text); err != nil || port < lowest || port >= first && port <= last || seen[at] {
			t.Errorf("%s: %v; the kernel has %d to %d", at, err, first, last)
		}
		seen[at] = true
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTaken: what another process took, or listens at, is not free.
func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if free(l.Addr().(*net.TCPAddr).Port) {
		t.Error("somebody listens there")
	}
	at, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.ListenPacket("udp", at); err == nil {
		t.Error("another process would take it")
	}
}
