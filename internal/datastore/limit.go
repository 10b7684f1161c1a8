package datastore

import (
	"net"
	"sync"
)

// maxVisitors is how many may stand in the door on the network at a time. Strangers could take all files that the
// process may open otherwise, which serves the datastore, too.
const maxVisitors = 200

// limited is a listener with a number of connections that may be open: further ones are closed at once.
type limited struct {
	net.Listener
	places chan struct{}
}

func limit(l net.Listener, most int) *limited { return &limited{l, make(chan struct{}, most)} }

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &visitor{Conn: c, leave: sync.OnceFunc(func() { <-l.places })}, nil
		default:
			_ = c.Close()
		}
	}
}

// visitor is a connection that has a place.
type visitor struct {
	net.Conn
	leave func()
}

func (v *visitor) Close() error {
	defer v.leave()
	return v.Conn.Close()
}
