// Package link carries the connections of a host to others, and loses, delays or cuts them. Tests only.
package link

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// Mode is the state of a link, which decides how it carries data.
type Mode int

// The modes of a link.
const (
	Open  Mode = iota
	Cut        // connections end, and new ones are refused
	Stall      // data waits until the mode changes, and then continues
	Deaf       // data to the host is lost, so the host does not know the outcome of its requests
	Mute       // data from the host is lost
	Slow       // each piece of data takes 100 ms
)

// Link is the path between one host and the others. A new link is open.
type Link struct {
	// Busy is held while a fault is injected into the link, so that faults do not overlap.
	Busy sync.Mutex

	mu      sync.Mutex
	mode    Mode
	changed chan struct{} // closed when the mode changes
	conns   map[net.Conn]bool
}

// New returns an open link.
func New() *Link { return &Link{changed: make(chan struct{}), conns: map[net.Conn]bool{}} }

// Proxy listens for the connections of the host to an address, and returns where it listens.
func (l *Link) Proxy(t testing.TB, address string) string {
	t.Helper()
	return l.listen(t, func(from net.Conn) { l.carry(from, address, Mute, Deaf) })
}

// entry listens for the connections of others to an address of the host, and returns where it listens.
func (l *Link) entry(t testing.TB, address string) string {
	t.Helper()
	return l.listen(t, func(from net.Conn) { l.carry(from, address, Deaf, Mute) })
}

// Network maps the addresses at which hosts know each other to servers on this machine. Add all addresses before hosts
// connect.
type Network struct{ addresses map[string]destination }

// destination is a server in a network.
type destination struct {
	server string // where it listens
	entry  string // where other hosts reach it, over the link of its host
	link   *Link  // of its host
}

// NewNetwork returns an empty network.
func NewNetwork() *Network { return &Network{map[string]destination{}} }

// Add makes a server of the host with this link available at an address of the network.
func (n *Network) Add(t testing.TB, address, server string, host *Link) {
	t.Helper()
	n.addresses[address] = destination{server: server, entry: host.entry(t, server), link: host}
}

// Gate listens as an HTTP proxy for all connections of the host into a network, and returns where it listens. A
// connection of the host to itself does not use the link.
func (l *Link) Gate(t testing.TB, n *Network) string {
	t.Helper()
	return l.listen(t, func(from net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(from)) // the client waits for the answer
		if err != nil {
			from.Close()
			return
		}
		to, known := n.addresses[request.Host]
		if request.Method != http.MethodConnect || !known {
			t.Errorf("a host requests %s %s, which is not in its network", request.Method, request.Host)
			from.Close()
			return
		}
		if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			from.Close()
			return
		}
		if to.link == l {
			New().carry(from, to.server, Mute, Deaf)
			return
		}
		l.carry(from, to.entry, Mute, Deaf)
	})
}

func (l *Link) listen(t testing.TB, take func(net.Conn)) string {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); l.Set(Cut) })
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

// Set changes the mode. It closes connections that lost data.
func (l *Link) Set(mode Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mode == Cut || l.mode == Deaf || l.mode == Mute {
		for c := range l.conns {
			c.Close()
		}
	}
	l.mode = mode
	close(l.changed)
	l.changed = make(chan struct{})
}

// now returns the mode, and a channel that is closed when the mode changes.
func (l *Link) now() (Mode, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, l.changed
}

// carry connects a client with an address. Requests are lost in one mode, and responses in another.
func (l *Link) carry(from net.Conn, address string, noRequests, noResponses Mode) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	l.mu.Lock()
	cut := l.mode == Cut
	l.conns[from], l.conns[to] = true, true
	l.mu.Unlock()
	defer l.forget(from, to)
	if cut {
		return
	}
	ended := make(chan struct{}, 2)
	go func() { l.pump(to, from, noRequests); ended <- struct{}{} }()
	go func() { l.pump(from, to, noResponses); ended <- struct{}{} }()
	<-ended
}

func (l *Link) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// pump copies one direction until it ends. In the mode lost it drops the data.
func (l *Link) pump(to, from net.Conn, lost Mode) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		mode, changed := l.now()
		for mode == Stall {
			<-changed
			mode, changed = l.now()
		}
		if mode == lost {
			continue
		}
		if mode == Slow {
			time.Sleep(100 * time.Millisecond)
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
