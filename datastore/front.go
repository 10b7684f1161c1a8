package datastore

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// front takes the connections of clients, and hands their bytes to the member as they are. etcd asks for a certificate
// when a connection begins and asks no more while it is open, and what a watch sees it does not check again. So when
// somebody is revoked, all connections are cut: who connects again is asked again. The member goes on.
type front struct {
	net.Listener
	to   string // the member's socket
	mu   sync.Mutex
	open map[net.Conn]bool
}

// openFront listens where clients connect, until it is closed.
func openFront(at, to string, log *logrus.Entry) (*front, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("datastore.client: %w", err)
	}
	f := &front{Listener: l, to: to, open: map[net.Conn]bool{}}
	go f.serve(log)
	return f, nil
}

// acceptPause is how long the front waits when it cannot take a connection, such as for lack of descriptors.
const acceptPause = 100 * time.Millisecond

func (f *front) serve(log *logrus.Entry) {
	for {
		client, err := f.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			log.WithError(err).Warn("a client could not connect")
			time.Sleep(acceptPause)
		default:
			go f.carry(client)
		}
	}
}

// carry carries what a client and the member say until one of them ends.
func (f *front) carry(client net.Conn) {
	f.keep(client)
	defer f.end(client)
	member, err := net.Dial("unix", f.to)
	if err != nil { // it stops
		return
	}
	defer member.Close() // the client reads what was said, or comes again
	go func() {
		_, _ = io.Copy(member, client) // however it ends, the connection does
		_ = member.Close()
	}()
	_, _ = io.Copy(client, member)
}

func (f *front) keep(client net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[client] = true
}

func (f *front) end(client net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, client)
	_ = client.Close() // it ended
}

// cut cuts all connections.
func (f *front) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for client := range f.open {
		_ = client.Close() // carry ends
	}
}
