package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action"
	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/facts"
	"github.com/pullet/pullet/state"
)

// Outside is what an agent reaches outside of its state directory: the fleet's record, the repositories, and the host
// that it runs on. New gives an agent the real one. The simulation of fleets gives it another, and runs the same agent.
type Outside struct {
	// Record opens the fleet's record for a pull. Plans read the real one.
	Record       func(context.Context, state.Config) (*state.Store, error)
	Repositories Repositories
	Actions      []apply.Spec
	Host         Machine
	Chance       func(most time.Duration) time.Duration // a time from 0 up to most
}

// Repositories are the state repositories as *puller.Puller has them; its methods say what each of these does.
type Repositories interface {
	Pull(ctx context.Context) ([]puller.Head, error)
	Relate(ctx context.Context, from, to puller.Head) (puller.Relation, error)
	Follow(repo string) string
	Follows(ctx context.Context, own, h puller.Head) (puller.Head, bool, error)
	Resolve(ctx context.Context, repo, rev string) (puller.Head, error)
	Describe(ctx context.Context, h puller.Head) (subject, author string, err error)
	Accept(ctx context.Context, repo, commit, by string) error
	Snapshot(ctx context.Context, heads []puller.Head) (*puller.Snapshot, error)
	Close() error
}

// Machine is the host that an agent runs on.
type Machine struct {
	ID      func() string                    // of the machine; "" is unknown
	Boot    string                           // of this boot
	Up      func() time.Duration             // since the boot
	Inode   func(dir string) (uint64, error) // of a directory: a copy of it has another one
	Facts   func() render.Facts
	Orphans func(notes string) error // see apply.Orphans
	Still   bool                     // nobody changes its files: they are not watched
}

// outside is the real one.
func outside(c Config, p *puller.Puller) Outside {
	return Outside{
		Record: state.Open, Repositories: p, Actions: action.All(), Chance: rand.N[time.Duration],
		Host: Machine{
			ID: func() string { return machineID(c.Root) }, Boot: apply.Boot(), Up: apply.Up, Inode: inode,
			Orphans: apply.Orphans, Facts: func() render.Facts { return facts.Gather(c.Root) },
		},
	}
}

// machineID is what the host is called by itself. For people only where it lacks one.
func machineID(root string) string {
	id, _ := os.ReadFile(filepath.Join(root, "etc/machine-id"))
	return strings.TrimSpace(string(id))
}

// inode is the number of a directory.
func inode(dir string) (uint64, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, fmt.Errorf("state directory: %w", err)
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil // Linux
}
