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
	"github.com/pullet/pullet/state"
)

// Config is how this host keeps the fleet's datastore.
type Config struct {
	Dir       string `yaml:"dir"` // of all that it keeps, for root only; default /var/lib/pullet-datastore
	Addresses `yaml:",inline"`

	// where it will be reached when it becomes a member; default: its address, with the usual ports
	Candidate Addresses `yaml:"candidate"`

	Backup Backups `yaml:"backup"` // of the fleet's record

	// Quota is how large etcd's file may be: etcd takes no writes when it has that size. Default 2GiB, at most 8GiB.
	Quota render.Size `yaml:"quota"`
}

// Addresses are where a datastore is reached, as HOST:PORT. It listens at these ports of all addresses.
type Addresses struct {
	Client string `yaml:"client"` // by hosts
	Door   string `yaml:"door"`   // by hosts with an invitation; nothing: they join over ssh alone
	Peer   string `yaml:"peer"`   // by other members, where there are some; default: the host of client, port 2380
}

// The usual ports: those of etcd, and the one before them.
const (
	ClientPort = "2379"
	PeerPort   = "2380"
	DoorPort   = "2378"
)

// At are the usual addresses of a host.
func At(host string) Addresses {
	return Addresses{
		Client: net.JoinHostPort(
			host,
			ClientPort,
		), Door: net.JoinHostPort(host, DoorPort), Peer: net.JoinHostPort(host, PeerPort),
	}
}

// The bounds of the quota: what etcd takes without one, what a fleet needs in any case, and what etcd's authors advise.
const (
	defaultQuota = 2 << 30
	leastQuota   = 16 << 20
	mostQuota    = 8 << 30
)

// quota is how large etcd's file may be, in bytes.
func (c Config) quota() int64 { return int64(cmp.Or(c.Quota, defaultQuota)) }

// Set reports that this host keeps a datastore.
func (c Config) Set() bool { return c.Client != "" }

// Check says what is wrong with a configuration.
func (c Config) Check() error {
	if err := c.Backup.check(); err != nil {
		return fmt.Errorf("datastore.backup.%w", err)
	}
	if q := c.quota(); q < leastQuota || q > mostQuota {
		return fmt.Errorf("datastore.quota: %s is not between 16MiB and 8GiB", c.Quota)
	}
	return errors.Join(c.check("datastore"), c.Candidate.check("datastore.candidate"))
}

func (a Addresses) check(key string) error {
	if a.Client == "" && (a.Door != "" || a.Peer != "") {
		return fmt.Errorf("%[1]s.client is not set and other addresses are: it says where hosts reach the datastore", key)
	}
	for what, at := range map[string]string{"client": a.Client, "door": a.Door, "peer": a.Peer} {
		if at == "" {
			continue
		}
		if host, port, err := net.SplitHostPort(at); err != nil || host == "" || port == "" {
			return fmt.Errorf("%s.%s: %q is not HOST:PORT, such as etcd1.example.org:2379", key, what, at)
		}
	}
	return nil
}

// peer is where other members reach this one.
func (a Addresses) peer() string {
	host, _, _ := net.SplitHostPort(a.Client) // Check did before
	return cmp.Or(a.Peer, net.JoinHostPort(host, PeerPort))
}

// peerURL is peer as etcd has it.
func (a Addresses) peerURL() string { return "https://" + a.peer() }

// peerURLOf is that of a host that may become a member.
func peerURLOf(c state.Carrier) string { return "https://" + c.Peer }

// Endpoint is where hosts reach the datastore.
func (c Config) Endpoint() string { return "https://" + c.Client }

// hosts are the names and addresses at which clients find the server.
func (c Config) hosts() []string {
	out := []string{"localhost", "127.0.0.1", "::1"}
	for _, at := range []string{c.Client, c.Door, c.Peer} {
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

// has reports a file that is there.
func (c Config) has(name string) bool {
	_, err := os.Stat(c.file(name))
	return err == nil
}

// The files of a datastore.
const (
	authorityFile = "authority.pem" // the authority's key, and all authorities that count
	nextFile      = "next.pem"      // the next authority, which signs when all members believe it
	bundleFile    = "ca.pem"        // what the server believes
	serverFile    = "server.pem"    // credentials of the server
	keeperFile    = "keeper.pem"    // credentials of the keeper
	crlFile       = "crl.pem"       // certificates that count no more
	firstFile     = "first.json"    // who got a certificate before the datastore served
	memberDir     = "member"        // etcd's own
	clusterFile   = "cluster"       // the members when this one began to listen to others
	joiningFile   = "joining"       // this host becomes a member, and has no record yet
	lifeFile      = "life.json"     // the members when this one looked last
	recoveryFile  = "recovery.json" // this host went on alone, and its record does not say so yet
	socketName    = "door.sock"     // the door for root of this host
)

// found says that the record is not where it was: an empty one would shut everybody out. A datastore that was made just
// now has none yet.
func (c Config) found() error {
	for _, begins := range []string{firstFile, joiningFile} {
		if c.has(begins) {
			return nil
		}
	}
	if _, err := os.Stat(c.file(memberDir)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fmt.Errorf("the fleet's record is gone: there is no %s; restore a backup (docs/datastore.md)",
		c.file(memberDir))
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
