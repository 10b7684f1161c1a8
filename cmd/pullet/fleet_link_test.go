package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// What a link does with what goes through it.
const (
	linkOpen  = iota
	linkCut   // connections end, new ones are refused
	linkStall // nothing goes through until it heals; then all of it does
	linkDeaf  // what its host is told is lost: the outcome of every request is unknown
	linkMute  // what its host says is lost
	linkSlow  // each piece of what goes through takes 100 ms
)

// link is the way of one host to the others.
type link struct {
	mu      sync.Mutex
	mode    int
	changed chan struct{} // closed when the mode changes
	conns   map[net.Conn]bool
	fault   sync.Mutex // held while a fault is done to it
}

func newLink() *link { return &link{changed: make(chan struct{}), conns: map[net.Conn]bool{}} }

// proxy listens for the host's connections to one address, and returns where.
func (l *link) proxy(t *testing.T, to string) string {
	t.Helper()
	return l.listen(t, func(from net.Conn) { l.carry(from, to, linkMute, linkDeaf) })
}

// entry listens for the connections of others to an address of the host, and returns where.
func (l *link) entry(t *testing.T, to string) string {
	t.Helper()
	return l.listen(t, func(from net.Conn) { l.carry(from, to, linkDeaf, linkMute) })
}

// network is where addresses of hosts are on this machine.
type network struct {
	own     map[string]string // by the address: where its server listens
	entries map[string]string // and where others reach it
	links   map[string]*link  // of the host that has the address
}

// gate listens as an HTTP proxy for all connections of the host into a network, and returns where. A connection of the
// host to itself goes over no link.
func (l *link) gate(t *testing.T, n *network) string {
	t.Helper()
	return l.listen(t, func(from net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(from)) // who asks says nothing more until it is answered
		if err != nil {
			from.Close()
			return
		}
		to, there := n.entries[request.Host]
		if request.Method != http.MethodConnect || !there {
			t.Errorf("a host asks for %s %s, which is not in its network", request.Method, request.Host)
			from.Close()
			return
		}
		if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			from.Close()
			return
		}
		if n.links[request.Host] == l {
			newLink().carry(from, n.own[request.Host], linkMute, linkDeaf)
			return
		}
		l.carry(from, to, linkMute, linkDeaf)
	})
}

func (l *link) listen(t *testing.T, take func(net.Conn)) string {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); l.set(linkCut) })
	go func() {
		for {
			conn, err := in.Accept()
			if err != nil {
				return
			}
			go take(conn)
		}
	}()
	return in.Addr().String()
}

// set changes the mode. Connections that lost something do not survive it.
func (l *link) set(mode int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mode == linkCut || l.mode == linkDeaf || l.mode == linkMute {
		for c := range l.conns {
			c.Close()
		}
	}
	l.mode = mode
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) now() (int, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, l.changed
}

// carry connects who connected with an address. What the one says and what the other answers is lost in one of the
// modes each.
func (l *link) carry(from net.Conn, address string, said, answered int) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	l.mu.Lock()
	cut := l.mode == linkCut
	l.conns[from], l.conns[to] = true, true
	l.mu.Unlock()
	defer l.forget(from, to)
	if cut {
		return
	}
	ended := make(chan struct{}, 2)
	go func() { l.pump(to, from, said); ended <- struct{}{} }()
	go func() { l.pump(from, to, answered); ended <- struct{}{} }()
	<-ended
}

func (l *link) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// pump carries one direction, which is lost in one of the modes.
func (l *link) pump(to, from net.Conn, lost int) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		mode, changed := l.now()
		for mode == linkStall {
			<-changed
			mode, changed = l.now()
		}
		if mode == lost {
			continue
		}
		if mode == linkSlow {
			time.Sleep(100 * time.Millisecond)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
