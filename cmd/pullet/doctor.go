package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/internal/journal"
	"github.com/pullet/pullet/state"
)

// finding is what one look of the doctor found.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, warn, bad
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// The states of a finding.
const (
	fine = "ok"
	warn = "warn"
	bad  = "bad"
)

func doctorCommand(a *app) *cobra.Command {
	var remove string
	c := &cobra.Command{
		Use: "doctor", GroupID: "node", Args: noArgs,
		Short: "Check what this node depends on, and say what to do",
		Long: "Doctor looks at everything that a pull depends on, and at every record of the fleet, and changes\n" +
			"nothing of the host or the fleet. With --remove it removes one record that cannot be read, by its\n" +
			"key, and looks at nothing else. Before you remove a claim, make sure that nobody changes under it.\n" +
			"\n" +
			"EXIT STATUS\n" +
			"  0  nothing is bad\n" +
			"  1  something is, or an error",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if remove != "" {
				return a.steers(
					cmd,
					func(ctx context.Context, store *state.Store) error { return doctorCmd{a}.removeBad(ctx, store, remove) },
				)
			}
			found := doctorCmd{a}.examine(cmd.Context())
			err := a.list(found, "CHECK\tSTATE\tWHAT", func(w io.Writer) {
				for _, f := range found {
					do := ""
					if f.Do != "" {
						do = "; " + f.Do
					}
					fmt.Fprintf(w, "%s\t%s\t%s%s\n", f.Check, f.State, f.What, do)
				}
			})
			for _, f := range found {
				if f.State == bad && err == nil {
					err = &exit{agent.ExitError, nil}
				}
			}
			return err
		},
	}
	c.Flags().StringVar(&remove, "remove", "", "remove the record with this key, if it cannot be read")
	return c
}

// doctorCmd is pullet doctor.
type doctorCmd struct{ *app }

// removeBad removes a record that cannot be read.
func (a doctorCmd) removeBad(ctx context.Context, store *state.Store, key string) error {
	bad, err := store.Remove(ctx, key)
	if errors.Is(err, state.ErrNotBad) {
		return fmt.Errorf("%s: %w: pullet doctor lists them", key, err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "removed %s, which could not be read: %s\n", bad.Key, bad.Why)
	return err
}

// mostBad is how many records that cannot be read the doctor lists.
const mostBad = 100

// records looks at every record of the fleet.
func records(ctx context.Context, store *state.Store) []finding {
	unread, err := store.Scan(ctx, mostBad)
	var found []finding
	for _, one := range unread {
		found = append(
			found,
			finding{
				"records",
				warn,
				fmt.Sprintf("etcd key %s cannot be read: %s; %s", one.Key, one.Why, one.Counts),
				one.Clear,
			},
		)
	}
	switch {
	case err != nil:
		found = append(found, finding{"records", bad, store.Explain(err).Error(), ""})
	case len(found) == 0:
		found = append(found, finding{Check: "records", State: fine, What: "every record of the fleet can be read"})
	}
	return found
}

// examine makes all checks, the ones first without which the others say little.
func (a doctorCmd) examine(ctx context.Context) []finding {
	config, err := a.readConfig()
	if err != nil {
		return []finding{{"configuration", bad, err.Error(), "fix it, or name another with --config"}}
	}
	file, _ := configFile(a.app) // it was read
	found := []finding{{Check: "configuration", State: fine, What: file}}
	if err := config.CheckMachine(); err != nil {
		found[0] = finding{"configuration", bad, err.Error(), "until this is fixed every pull fails"}
	}
	found = append(found, permissions(config.Paths.State), disk(config.Paths.State), memory(config))
	found = append(found, isolation(ctx))
	found = append(found, starts(a.rootDir)...)
	found = append(found, ownProgramFound(a.rootDir, config)...)
	for _, err := range config.OpenSecrets() {
		found = append(found, finding{"credentials", warn, err.Error(), ""})
	}
	if _, err := config.ExtensionSigners(); err != nil && config.Extensions.AllowedSigners != "" {
		found = append(found, finding{"extensions", bad, err.Error(), "until this is fixed no signed one runs here"})
	}
	found = append(found, certificates(config, time.Now())...)
	found = append(found, a.monitoring(config)...)
	found = append(found, backups(config, time.Now())...)
	found = append(found, a.repositories(ctx, config)...)
	if config.NoStore() {
		return append(found, finding{"etcd", fine, "embedded; the first pull makes it", ""}, kernelClock(), a.bus(ctx))
	}
	store, err := config.OpenStore(ctx)
	if err != nil {
		do := "until this is fixed every pull fails"
		if away := new(state.UnreachableError); errors.As(err, &away) {
			do = "until it answers no new version is taken, but drift is corrected"
		}
		if clock := expired(err); clock != "" {
			do = clock + "; " + do
		}
		found = append(found, finding{"etcd", bad, err.Error(), do}, kernelClock())
		return append(found, a.bus(ctx))
	}
	found = append(found, etcd(ctx, store)...)
	found = append(found, records(ctx, store)...)
	found = append(found, clocks(ctx, store, config.Node.Name)...)
	if config.Etcd.Renew {
		found = append(found, members(ctx, store)...)
	}
	if err := store.Close(); err != nil {
		found = append(found, finding{"etcd", warn, "closing it: " + err.Error(), ""})
	}
	return append(found, a.bus(ctx))
}

// isolation checks what the process that reads git objects is kept from.
func isolation(ctx context.Context) finding {
	lacks, err := gitremote.Isolation(ctx)
	switch {
	case err != nil:
		return finding{"git", bad, err.Error(), "nothing can be fetched until it runs"}
	case len(lacks) > 0:
		return finding{"git", warn, strings.Join(lacks, "; "), "its limits hold all the same"}
	}
	return finding{Check: "git", State: fine, What: "objects are read by a process without rights and network"}
}

// permissions checks that the state directory is this user's alone and can be written.
func permissions(dir string) finding {
	f := finding{Check: "permissions", State: bad, Do: "run pullet as root"}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return finding{"permissions", warn, dir + " is not there yet", "the first pull makes it"}
	}
	if err != nil {
		f.What = err.Error()
		return f
	}
	owner := info.Sys().(*syscall.Stat_t).Uid // Linux
	switch {
	case int(owner) != os.Geteuid():
		f.What, f.Do = fmt.Sprintf(
			"%s belongs to user %d, and this is user %d",
			dir,
			owner,
			os.Geteuid(),
		), "run pullet as the user who pulls"
		return f
	case info.Mode().Perm()&0o077 != 0:
		return finding{
			"permissions",
			bad,
			fmt.Sprintf("%s can be read by others (mode %04o); it may hold secrets", dir, info.Mode().Perm()),
			"chmod 700 " + dir,
		}
	}
	probe, err := os.CreateTemp(dir, ".doctor-")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return finding{"permissions", bad, err.Error(), "make room, or mount it writable"}
	}
	return finding{Check: "permissions", State: fine, What: dir + " is writable, and nobody else's"}
}

// The room that a pull should find.
const (
	littleRoom = agent.LittleRoom
	noRoom     = 64 << 20
)

// disk checks the room where pullet keeps its things, or where the first pull will make the directory for them.
func disk(dir string) finding {
	var room unix.Statfs_t
	err := unix.Statfs(dir, &room)
	for errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
		err = unix.Statfs(dir, &room)
	}
	if err != nil {
		return finding{"disk", warn, dir + ": " + err.Error(), ""}
	}
	free := room.Bavail * uint64(room.Bsize)
	what := fmt.Sprintf("%d MiB are free at %s", free>>20, dir)
	switch {
	case free < noRoom || room.Files > 0 && room.Ffree < 100:
		return finding{"disk", bad, what + fmt.Sprintf(", and %d files", room.Ffree), "make room"}
	case free < littleRoom:
		return finding{"disk", warn, what, "make room"}
	}
	return finding{Check: "disk", State: fine, What: what}
}

// memory checks that what the node knows of itself can be read.
func memory(config agent.Config) finding {
	_, local := config.ReadLocal()
	_, unreadable := journal.Open(config.Paths.State)
	if err := cmp.Or(local, unreadable); err != nil {
		return finding{"memory", bad, err.Error(), "until then no pull can be made"}
	}
	return finding{Check: "memory", State: fine, What: "the node's record and journal can be read"}
}

// repositories asks each repository.
func (a doctorCmd) repositories(ctx context.Context, config agent.Config) []finding {
	node, err := agent.New(config, build().Version, a.logger())
	if err != nil {
		return []finding{{"repositories", bad, err.Error(), "fix the configuration"}}
	}
	defer node.Close() // nothing was written
	heads, err := node.Heads(ctx)
	if err != nil {
		return []finding{{"repositories", bad, err.Error(), expired(err)}}
	}
	var found []finding
	for _, h := range heads {
		v := state.Version{ID: h.Commit, Release: h.Tag}
		f := finding{Check: "repository " + h.Repo, State: fine, What: "at " + withCommit(&v)}
		if h.Problem != nil {
			f.State, f.What, f.Do = bad, h.Problem.Error(), expired(h.Problem)
		}
		found = append(found, f)
	}
	return found
}

// etcd checks each endpoint and the room of the store.
func etcd(ctx context.Context, store *state.Store) []finding {
	members, full, err := store.Health(ctx)
	var found []finding
	for _, m := range members {
		f := finding{
			Check: "etcd",
			State: fine,
			What: fmt.Sprintf(
				"%s answers in %s (%s, %d MiB)",
				m.URL,
				m.Took.Round(time.Millisecond),
				m.Version,
				m.Size>>20,
			),
		}
		switch {
		case m.Err != nil:
			f.State, f.What, f.Do = bad, m.URL+": "+m.Err.Error(), "etcdctl --endpoints "+m.URL+" endpoint health"
		case m.Took > time.Second:
			f.State, f.Do = warn, "a slow etcd makes nodes lose their leases: look at its disk and the network"
		case m.Quota > 0 && m.Size > m.Quota*8/10:
			f.State, f.Do = warn, "it is nearly full: "+store.WhenFull()
		}
		found = append(found, f)
	}
	if full {
		found = append(
			found,
			finding{
				"etcd",
				bad,
				"it is out of space and takes no writes",
				store.WhenFull(),
			},
		)
	}
	if err != nil {
		found = append(found, finding{"etcd", bad, "its alarms cannot be read: " + store.Explain(err).Error(), ""})
	}
	return found
}
