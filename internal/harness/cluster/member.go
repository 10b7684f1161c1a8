package cluster

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

// Program is the name of the program that Start runs for each member. A test binary provides it by calling Main under
// this name.
const Program = "etcd-member"

// Main is a member of a cluster. It does not return. Its arguments are NAME DIR CLIENT PEER CLUSTER QUOTA, where CLIENT
// and PEER are URLs. A member with an https CLIENT reads its certificate from the parent of DIR.
func Main() {
	if err := runMember(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

// runMember runs a member until it fails.
func runMember(args []string) error {
	if len(args) != 6 {
		return fmt.Errorf("usage: %s NAME DIR CLIENT PEER CLUSTER QUOTA", Program)
	}
	client, err := url.Parse(args[2])
	if err != nil {
		return err
	}
	peer, err := url.Parse(args[3])
	if err != nil {
		return err
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = args[0], args[1], args[4]
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	if client.Scheme == "https" {
		home := filepath.Dir(c.Dir)
		c.ClientTLSInfo = transport.TLSInfo{CertFile: filepath.Join(home, CertFile), KeyFile: filepath.Join(home, keyFile)}
	}
	if c.QuotaBackendBytes, err = strconv.ParseInt(args[5], 10, 64); err != nil {
		return err
	}
	c.LogLevel = "warn"
	c.UnsafeNoFsync = true // the kernel keeps the writes of a killed process
	e, err := embed.StartEtcd(c)
	if err != nil {
		return err
	}
	return <-e.Err()
}
