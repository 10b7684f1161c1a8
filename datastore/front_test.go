package datastore

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/sirupsen/logrus"
)

// TestFrontCuts: what clients and the member say is carried as it is, a cut ends the connections that are open, and the
// next one is carried again.
func TestFrontCuts(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "member")
	member, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Close() })
	go func() {
		for {
			c, err := member.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	f, err := openFront("127.0.0.1:0", socket, logrus.NewEntry(logrus.New()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	connect := func() net.Conn {
		c, err := net.Dial("tcp", f.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		got := make([]byte, 5)
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "hello" {
			t.Fatalf("%q %v", got, err)
		}
		return c
	}
	first, second := connect(), connect()
	f.cut()
	for _, c := range []net.Conn{first, second} {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("the connection is open: %d bytes, %v", n, err)
		}
	}
	connect()
}
