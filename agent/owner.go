package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/state"
)

// owner proves that this is the same state directory as before, without giving the secret away, and says which host it
// is on.
func (r *registration) owner() (state.Alive, error) {
	sum := sha256.Sum256([]byte(r.config.Fleet + "/" + r.config.Node.Name + "/" + r.local.Secret))
	me := state.Alive{
		Instance: r.instance,
		Owner:    hex.EncodeToString(sum[:16]),
		Every:    r.config.Agent.Interval.Std(),
		Lasting:  !r.loop,
	}
	var err error
	if me.Dir, err = inode(r.config.Paths.State); err != nil {
		return me, err
	}
	me.Host, _ = os.Hostname() // for people only, as is what it lacks
	id, _ := os.ReadFile(filepath.Join(r.config.Root, "etc/machine-id"))
	me.Machine = strings.TrimSpace(string(id))
	if len(r.config.Etcd.Endpoints) > 0 { // else all that share the record are on this host, and in this boot
		up := apply.Up()
		me.Boot, me.Up, me.Booted = apply.Boot(), apply.Up, time.Now().Add(-up).UTC().Truncate(time.Second)
	}
	return me, nil
}

// uprooted is why an agent ends whose state directory was removed or replaced: what it knew of its host is lost, and
// nothing that it writes is found again. nil: it is there.
func (a *Agent) uprooted() error {
	dir := a.config.Paths.State
	if at, err := inode(dir); err == nil && at == a.dir || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf(
		"the state directory %s was removed or replaced while the agent ran: what this host knew of itself is lost, and the fleet knows the "+
			"rest; the next start is that of a reinstalled host",
		dir,
	)
}

// inode is the number of a directory: a copy of it has another one.
func inode(dir string) (uint64, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, fmt.Errorf("state directory: %w", err)
	}
	at, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("state directory %s: the file system gives it no inode", dir)
	}
	return at.Ino, nil
}
