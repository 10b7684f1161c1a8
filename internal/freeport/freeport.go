// Package freeport finds addresses for servers that tests start later, or again and again: only tests import it.
//
// A port that the kernel chose may be another program's as soon as it is given back: the kernel gives it to whoever
// connects next. So these are ports that the kernel gives to nobody.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
)

// lowest is the first port that may be taken: those below it are of known services.
const lowest = 10_000

// taken are what this process took, until it ends. A socket of UDP says so to other processes of tests: TCP is free.
var taken struct {
	sync.Mutex
	sockets []net.PacketConn
}

// Address is one of this host at which nobody listens. It stays so until the process ends, but for whom it is given to.
func Address() (string, error) {
	taken.Lock()
	defer taken.Unlock()
	first, last := kernels()
	for range 1000 {
		port := lowest + rand.IntN(1<<16-lowest)
		if port >= first && port <= last {
			continue
		}
		at := net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
		mark, err := net.ListenPacket("udp", at)
		if err != nil { // another test has it
			continue
		}
		if free(port) {
			taken.sockets = append(taken.sockets, mark)
			return at, nil
		}
		if err := mark.Close(); err != nil {
			return "", err
		}
	}
	return "", errors.New("there is no free port outside of those that the kernel gives away")
}

// free reports that nobody listens at a port, at any address.
func free(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprint(":", port))
	return err == nil && l.Close() == nil
}

// kernels are the first and the last port that the kernel gives to whoever connects. Where it leaves hardly any, all
// are taken from.
func kernels() (first, last int) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return 0, 0
	}
	if _, err := fmt.Sscan(string(text), &first, &last); err != nil || first-lowest < 1000 && 1<<16-last < 1000 {
		return 0, 0
	}
	return first, last
}

// AddressFor returns an address for a test, which it ends if there is none.
func AddressFor(t testing.TB) string {
	t.Helper()
	at, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	return at
}
