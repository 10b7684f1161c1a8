package main

import (
	"net"
	"sync"
	"testing"
	"time"
)

// What a link does with what goes through it.
const (
	linkOpen  = iota
	linkCut   // connections end, new ones are refused
	linkStall // nothing goes through until it heals; then all of it does
	linkDeaf  // what etcd answers is lost: the outcome of every request is unknown
	linkMute  // what the agent says is lost
	linkSlow  // each piece of what goes through takes 100 ms
)

// link is the way of one agent to etcd.
type link struct {
	mu      sync.Mutex
	mode    int
	changed chan struct{} // closed when the mode changes
	conns   map[net.Conn]bool
	fault   sync.Mutex // held while a fault is done to it
}

// proxy listens for an agent's connections to one etcd member, and returns where.
func (l *link) proxy(t *testing.T, member string) string {
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
			go l.carry(conn, member)
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

// carry connects an agent with a member.
func (l *link) carry(agent net.Conn, member string) {
	defer agent.Close()
	etcd, err := net.Dial("tcp", member)
	if err != nil {
		return
	}
	defer etcd.Close()
	l.mu.Lock()
	cut := l.mode == linkCut
	l.conns[agent], l.conns[etcd] = true, true
	l.mu.Unlock()
	defer l.forget(agent, etcd)
	if cut {
		return
	}
	ended := make(chan struct{}, 2)
	go func() { l.pump(etcd, agent, linkMute); ended <- struct{}{} }()
	go func() { l.pump(agent, etcd, linkDeaf); ended <- struct{}{} }()
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
