package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/authority"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/state"
)

// datastoreFile says on the host that keeps it where the datastore is.
const datastoreFile = "conf.d/datastore.yaml"

// CreatedFleet is a fleet whose datastore was made.
type CreatedFleet struct {
	Authority   string // the file with the authority's key
	Fingerprint string // of the authority
}

// CreateFleet makes the fleet's datastore on this host, whose configuration it writes, with certificates for the host
// and for an operator. What this host had on record for itself goes on there. When it was killed, it is done again from
// the start.
func (c Config) CreateFleet(
	ctx context.Context, d datastore.Config, operator string, now time.Time,
) (made CreatedFleet, err error) {
	if !c.Datastore.Set() && len(c.Etcd.Endpoints) > 0 {
		return made, fmt.Errorf("%s: etcd.endpoints is set: the fleet of this host has an etcd already", c.file)
	}
	n, err := datastore.Create(d, c.Fleet, now)
	if err != nil {
		return made, err
	}
	// First: it tells a fleet that is being made from one with an etcd of its own.
	j := &Joining{File: c.file}
	dir, err := datastoreDir(c, d.Dir)
	if err != nil {
		return made, err
	}
	if err := j.placeDatastore(dir, d.Addresses, "pullet fleet create"); err != nil {
		return made, err
	}
	for _, i := range []authority.Invitation{
		{Name: c.Node.Name, Kind: authority.Node, By: operator}, {Name: operator, Kind: authority.Operator, By: operator},
	} {
		if err := c.joinsOwn(n, state.Invitation{Invitation: i, Labels: c.Node.Labels}); err != nil {
			return made, err
		}
	}
	if err := c.handOver(ctx, n.MemberDir()); err != nil {
		return made, err
	}
	return CreatedFleet{n.AuthorityFile(), n.Fingerprint()}, n.Finish()
}

// handOver has the datastore go on with the record that this host had for itself, and tells the host's own record that
// it is the same one.
func (c Config) handOver(ctx context.Context, to string) error {
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) { // it was handed over before a kill
		return err
	}
	c.Etcd.Endpoints = nil
	return c.store().HandOver(ctx, to, func(cluster uint64) error {
		l, err := c.ReadLocal()
		if err != nil {
			return err
		}
		l.Store.Cluster = cluster
		return l.Save(c.Paths.State)
	})
}

// joinsOwn gives somebody of this host a certificate, without a door.
func (c Config) joinsOwn(n *datastore.New, i state.Invitation) error {
	j, err := Join(c.file, c.Root, true)
	if err != nil {
		return err
	}
	a, err := n.Admit(i, j.Request)
	if err != nil {
		return err
	}
	if err := c.Invited(i, &a); err != nil {
		return err
	}
	if i.Kind == authority.Node { // this host has its repositories and their files
		a.Files = nil
		if a.Configuration, err = withoutRepositories(a.Configuration); err != nil {
			return err
		}
	}
	return j.Place(a)
}

func withoutRepositories(text string) (string, error) {
	var c map[string]any
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return "", err
	}
	delete(c, "repositories")
	out, err := yaml.Marshal(c)
	return string(out), err
}

// datastoreDir returns what the configuration has to say so that the datastore is in a directory: nothing for the
// default, which stays right when the root is moved, such as that of an image.
func datastoreDir(c Config, dir string) (string, error) {
	without, err := DefaultDatastore.Below(c.Root)
	if dir == without && c.Datastore.Dir == without {
		dir = ""
	}
	return dir, err
}

// placeDatastore writes where the datastore on this host is. Without dir it is where it is without this.
func (j *Joining) placeDatastore(dir string, at datastore.Addresses, by string) error {
	text, err := yaml.Marshal(map[string]any{"datastore": filled(map[string]any{
		"dir": dir, "client": at.Client, "door": at.Door, "peer": at.Peer,
	})})
	if err != nil {
		return err
	}
	return j.write(datastoreFile, append([]byte("# Written by "+by+".\n"), text...))
}
