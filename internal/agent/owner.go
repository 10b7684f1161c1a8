package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pullet/pullet/state"
)

// owner proves that this is the same state directory as before, without giving the secret away, and says which host it
// is on.
func (r *registration) owner() (state.Alive, error) {
	me := state.Alive{
		Instance: r.instance,
		Owner:    ownerOf(r.config, r.local.Secret),
		Every:    r.config.Agent.Interval.Std(),
		Lasting:  !r.loop,
	}
	var err error
	if me.Dir, err = r.outside.Host.Inode(r.config.Paths.State); err != nil {
		return me, err
	}
	me.Host, _ = os.Hostname() // for people only, as is what it lacks
	me.Machine = r.outside.Host.ID()
	if len(r.config.Etcd.Endpoints) > 0 { // else all that share the record are on this host, and in this boot
		up := r.outside.Host.Up()
		me.Boot, me.Up, me.Booted = r.outside.Host.Boot, r.outside.Host.Up, time.Now().Add(-up).UTC().Truncate(time.Second)
	}
	return me, nil
}

// ownerOf is the digest of a state directory's secret, by which the fleet knows whose a name is.
func ownerOf(c Config, secret string) string {
	sum := sha256.Sum256([]byte(c.Fleet + "/" + c.Node.Name + "/" + secret))
	return hex.EncodeToString(sum[:16])
}

// Nameless is why a host cannot pull under its name, whatever its program: another host has it, or a copy of this one.
func Nameless(ctx context.Context, c Config, local state.Local, store *state.Store) error {
	if local.Secret == "" {
		return nil
	}
	return store.Presences.Taken(ctx, c.Node.Name, ownerOf(c, local.Secret))
}

// uprooted is why an agent ends whose state directory was removed or replaced: what it knew of its host is lost, and
// nothing that it writes is found again. nil: it is there.
func (a *Agent) uprooted() error {
	dir := a.config.Paths.State
	if at, err := a.outside.Host.Inode(dir); err == nil && at == a.dir || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf(
		"the state directory %s was removed or replaced while the agent ran: what this host knew of itself is lost, and "+
			"the fleet knows the "+
			"rest; the next start is that of a reinstalled host",
		dir,
	)
}
