package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/datastore"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// carrying is this host's part in the fleet's datastore: it knows where the members are, tells a member on this host
// what the repository wants, offers to become one where the repository names the host, and becomes one.
type carrying struct {
	*self
	*joined
	host func(version string) *apply.Host
	out  *Outcome
	log  *logrus.Entry

	version *state.Version // that was compiled; nil: none
	catalog *render.Catalog
}

// compiled notes the version of this pull.
func (c *carrying) compiled(v *state.Version, cat *render.Catalog) { c.version, c.catalog = v, cat }

// tend does this host's part. A pull does not fail for it: it is tried again at the next one.
func (c *carrying) tend(ctx context.Context, runs bool) {
	if c.presence == nil || !c.config.Etcd.Renew {
		return
	}
	ctx, cancel := afterwards(ctx)
	defer cancel()
	err := c.follows()
	if err == nil {
		err = c.become(ctx, c.presence.Found.Handed, c.presence.Found.Authority)
	}
	if runs && c.version != nil {
		// Also where it cannot open what it got: with its disk it lost its key, and offers another one.
		err = errors.Join(err, c.want(ctx))
	}
	if err != nil {
		c.out.warn(fmt.Errorf("the fleet's datastore: %w", c.explained(err)))
	}
}

func (c *carrying) explained(err error) error {
	if c.store == nil {
		return err
	}
	return c.store.Explain(err)
}

// want tells the member on this host what the version that runs here wants, or offers to become a member where that
// names this host.
func (c *carrying) want(ctx context.Context) error {
	d := c.catalog.Fleet.Config.DataStore
	if !d.Wanted() {
		return nil
	}
	may := d.May(c.catalog.Inventory)
	if c.config.Datastore.Carries() {
		return datastore.Want(ctx, c.config.Datastore, wanted(c.version, d, may, c.catalog.Inventory))
	}
	if c.store == nil || !slices.Contains(may, c.config.Node.Name) {
		return nil
	}
	at, err := c.addresses(c.presence.Found.Authority)
	if err != nil {
		return err
	}
	offer, err := c.candidate().Offer(at)
	if err != nil {
		return err
	}
	return c.store.Datastores.Offer(ctx, c.config.Node.Name, offer)
}

// wanted is what a version wants of the datastore.
func wanted(v *state.Version, d render.DataStore, may []string, hosts render.Inventory) state.Wanted {
	w := state.Wanted{Seq: v.Seq, Count: d.Count, ReplaceAfter: d.Patience()}
	for _, name := range may[:min(len(may), state.MostEligible)] {
		one := state.Eligible{Node: name}
		if d.Spread != "" {
			one.Domain = hosts[name].Labels[d.Spread]
		}
		w.Hosts = append(w.Hosts, one)
	}
	return w
}

// follows has this host reach the members that there are now, also over the connection that is open: those that it was
// opened with may leave while a pull waits.
func (c *carrying) follows() error {
	if err := c.config.Etcd.remember(c.presence.Found.Authority.Endpoints); err != nil || c.store == nil {
		return err
	}
	if all := c.config.Etcd.reached(); !slices.Equal(all, c.store.Client.Endpoints()) {
		c.store.Client.SetEndpoints(all...)
	}
	return nil
}

// takeEvery is how often a pull that waits looks whether its host got what it takes to carry the datastore.
const takeEvery = 5 * time.Second

// meanwhile follows the members, and has this host become one while its pull waits, too: what the pull waits for may
// take longer than the members wait for the host. What it returns ends that.
func (c *carrying) meanwhile(ctx context.Context) (stop func()) {
	if c.presence == nil || !c.config.Etcd.Renew {
		return func() {}
	}
	if err := c.follows(); err != nil {
		c.log.WithError(err).Warn("the fleet's datastore: tried again at the end")
	}
	if c.store == nil || !c.candidate().Offers() {
		return func() {}
	}
	store, fleet := c.store, c.presence.Found.Authority
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.Tick(takeEvery); ; {
			select {
			case <-tick:
			case <-ctx.Done():
				return
			}
			h, err := store.Datastores.HandedTo(ctx, c.config.Node.Name)
			if err != nil { // the end of the pull says what is wrong with the record
				continue
			}
			if err := c.become(context.WithoutCancel(ctx), h, fleet); err != nil {
				c.log.WithError(err).Warn("the fleet's datastore: tried again in a moment")
			}
		}
	}()
	return func() { cancel(); <-done }
}

// become has this host carry the datastore, where it got what it takes, or goes on with that behind a kill.
func (c *carrying) become(ctx context.Context, h *state.Handed, fleet state.Authority) error {
	d := c.candidate()
	if h == nil || !d.Awaits(*h) {
		if d.Comes() {
			return c.start(ctx)
		}
		return nil
	}
	believed, err := os.ReadFile(c.config.Etcd.TLS.CA)
	if err != nil {
		return err
	}
	at, err := c.addresses(fleet)
	if err != nil {
		return err
	}
	j := &Joining{File: c.config.file}
	dir, err := datastoreDir(c.config, c.config.Datastore.Dir)
	if err != nil {
		return err
	}
	if err := j.placeDatastore(dir, at, "pullet"); err != nil {
		return err
	}
	if err := d.Accept(*h, believed); err != nil {
		return err
	}
	c.log.Info("this host carries the fleet's datastore from now on")
	return c.start(ctx)
}

// candidate is this host as one that may carry the datastore.
func (c *carrying) candidate() datastore.Candidate {
	return datastore.Candidate{Config: c.config.Datastore}
}

// start starts the unit of the datastore. Of a host that is a directory on another one, people start it.
func (c *carrying) start(ctx context.Context) error {
	err := errors.New("its root is a directory")
	if c.config.Root == "" || c.config.Root == "/" {
		_, err = c.host("").Run(ctx, apply.Command{
			Args: []string{"systemctl", "enable", "--now", "--no-block", "pullet-etcd.service"},
		})
	}
	if err != nil {
		return fmt.Errorf(
			"this host is to carry it, and pullet-etcd.service is not started: %w; start it, or run pullet etcd",
			err,
		)
	}
	return nil
}

// addresses are where a datastore on this host would be reached.
func (c *carrying) addresses(fleet state.Authority) (datastore.Addresses, error) {
	d := c.config.Datastore
	if d.Candidate.Client != "" {
		return d.Candidate, nil
	}
	if d.Set() {
		return d.Addresses, nil
	}
	host, err := addressTo(c.config.Etcd.reached())
	at := datastore.At(host)
	if fleet.Door == "" {
		at.Door = ""
	}
	return at, err
}

// addressTo is the address of this host that others see, of those that have these endpoints.
func addressTo(endpoints []string) (string, error) {
	var failed error
	for _, at := range endpoints {
		u, err := url.Parse(at)
		if err != nil {
			return "", err
		}
		conn, err := net.Dial("udp", u.Host) // sends nothing: it asks for the route
		if err != nil {
			failed = err
			continue
		}
		host, _, err := net.SplitHostPort(conn.LocalAddr().String())
		return host, errors.Join(err, conn.Close())
	}
	return "", fmt.Errorf("the address of this host is not known: %w; say datastore.candidate.client",
		cmp.Or(failed, errors.New("no endpoint is known")))
}
