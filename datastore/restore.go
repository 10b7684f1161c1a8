package datastore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// Restore makes the fleet's record from a snapshot of etcd, where there is none. It is another cluster to etcd, so that
// every host sees that the record went back in time.
func Restore(c Config, name, from string, now time.Time) error {
	to := c.file(memberDir)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("there is a record in %s: stop pullet-etcd and move it away first", to))
	}
	if _, err := os.Stat(c.file(authorityFile)); err != nil {
		return fmt.Errorf("the fleet's authority comes first: %w", err)
	}
	member, err := c.member(name)
	if err != nil {
		return err
	}
	if err := os.Remove(c.file(clusterFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: from, OutputDataDir: to,
		Name: member.Name, PeerURLs: []string{member.AdvertisePeerUrls[0].String()},
		InitialCluster: member.InitialCluster, InitialClusterToken: "restored " + now.UTC().Format(time.RFC3339Nano),
	})
	if err != nil {
		return errors.Join(fmt.Errorf("restore %s: %w", from, err), os.RemoveAll(to))
	}
	return nil
}
