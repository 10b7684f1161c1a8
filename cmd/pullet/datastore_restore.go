package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/internal/trust"
)

// restoring are the flags of etcd --restore.
type restoring struct {
	from       string
	identities []string
}

// restore makes the record of the datastore from a backup.
func (a datastoreCmd) restore(c agent.Config, o restoring) error {
	believed, err := os.ReadFile(c.Etcd.TLS.CA)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("etcd.tls.ca: %w", err)
	}
	r := datastore.Restoring{Config: c.Datastore, Fleet: c.Fleet, Node: c.Node.Name, From: o.from, Believed: believed}
	r.Keys = func() ([]trust.Identity, error) {
		keys, _, err := (&secretsCmd{app: a.app, identities: o.identities}).ownKeys()
		return keys, err
	}
	done, err := r.Restore(time.Now())
	if err != nil {
		return err
	}
	at := done.Made.Local().Format(time.DateTime)
	fmt.Fprintf(a.out, "the record of the fleet %s is that of %s again\n", c.Fleet, at)
	if done.Authority {
		fmt.Fprintf(a.out, "its authority came with it: %s\n", done.Fingerprint)
	}
	fmt.Fprintln(a.out, "serve it: systemctl start pullet-etcd; then accept it: pullet rollout resume --store")
	return nil
}
