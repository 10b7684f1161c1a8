package datastore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// Config is how this host keeps the fleet's datastore.
type Config struct {
	Dir    string `yaml:"dir"`    // of all that it keeps, for root only; default /var/lib/pullet-datastore
	Client string `yaml:"client"` // HOST:PORT at which hosts reach it; it listens at that port of all addresses
	Door   string `yaml:"door"`   // HOST:PORT at which hosts with an invitation join; nothing: over ssh alone

	// Quota is how large etcd's file may be: etcd takes no writes when it has that size. Default 2GiB, at most 8GiB.
	Quota render.Size `yaml:"quota"`
}

// The bounds of the quota: what etcd takes without one, what a fleet needs in any case, and what etcd's authors advise.
const (
	defaultQuota = 2 << 30
	leastQuota   = 16 << 20
	mostQuota    = 8 << 30
)

// quota is how large etcd's file may be, in bytes.
func (c Config) quota() int64 { return int64(cmp.Or(c.Quota, defaultQuota)) }

// DefaultDir is where a datastore is when nothing else is said.
const DefaultDir = "/var/lib/pullet-datastore"

// Set reports that this host keeps a datastore.
func (c Config) Set() bool { return c.Client != "" }

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if !c.Set() {
		if c.Door != "" {
			return errors.New("datastore.door is set and datastore.client is not: it says where hosts reach the datastore")
		}
		return nil
	}
	if q := c.quota(); q < leastQuota || q > mostQuota {
		return fmt.Errorf("datastore.quota: %s is not between 16MiB and 8GiB", c.Quota)
	}
	for what, at := range map[string]string{"client": c.Client, "door": c.Door} {
		if at == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(at); err != nil || host == "" || port == "" {
			return fmt.Errorf("datastore.%s: %q is not HOST:PORT, such as etcd1.example.org:2379", what, at)
		}
	}
	return nil
}

// Endpoint is where hosts reach the datastore.
func (c Config) Endpoint() string { return "https://" + c.Client }

// hosts are the names and addresses at which clients find the server.
func (c Config) hosts() []string {
	out := []string{"localhost", "127.0.0.1", "::1"}
	for _, at := range []string{c.Client, c.Door} {
		if host, _, err := net.SplitHostPort(at); err == nil && !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out
}

// everywhere has Go listen at all addresses, also those of IPv6. etcd refuses a URL without an address.
const everywhere = "0.0.0.0"

// listening is an address on this host with the port of another one, on all addresses.
func listening(at string) string {
	host, port, _ := net.SplitHostPort(at) // Check did before
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return at
	}
	return net.JoinHostPort(everywhere, port)
}

func (c Config) file(name string) string { return filepath.Join(c.Dir, name) }

// The files of a datastore.
const (
	authorityFile = "authority.pem" // the authority's key, and all authorities that count
	bundleFile    = "ca.pem"        // what the server believes
	serverFile    = "server.pem"    // credentials of the server
	keeperFile    = "keeper.pem"    // credentials of the keeper
	crlFile       = "crl.pem"       // certificates that count no more
	firstFile     = "first.json"    // who got a certificate before the datastore served
	memberDir     = "member"        // etcd's own
	socketName    = "door.sock"     // the door for root of this host
)

// found says that the record is not where it was: an empty one would shut everybody out. A datastore that was made just
// now has none yet.
func (c Config) found() error {
	if _, err := os.Stat(c.file(firstFile)); err == nil {
		return nil
	}
	if _, err := os.Stat(c.file(memberDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("the fleet's record is gone: there is no %s; restore a snapshot (docs/fleet.md)", c.file(memberDir))
}

// DoorSocket is where root of this host reaches the door.
func (c Config) DoorSocket() string { return c.file(socketName) }

// loopback is where the keeper reaches the member.
func (c Config) loopback() string {
	host, port, _ := net.SplitHostPort(c.Client) // Check did before
	if !strings.HasPrefix(host, "127.") {
		host = "localhost"
	}
	return "https://" + net.JoinHostPort(host, port)
}
