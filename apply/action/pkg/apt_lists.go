package pkg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// aptLists is where apt keeps the package lists. The time of the directory is that of the last complete refresh: apt
// itself does not note one that found nothing new.
const aptLists = "/var/lib/apt/lists"

// refreshed is when all lists were fetched for the last time, by us or by the system's own timer.
func (a apt) refreshed() (time.Time, error) {
	dir, err := a.h.Resolve(aptLists)
	if err != nil {
		return time.Time{}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	var last time.Time
	for _, e := range entries {
		if e.Type().IsRegular() && e.Name() != "lock" { // there are lists
			last = modified(dir)
		}
	}
	stamp, err := a.h.Resolve("/var/lib/apt/periodic/update-success-stamp")
	if err != nil || last.IsZero() {
		return last, err
	}
	if t := modified(stamp); t.After(last) {
		last = t
	}
	return last, nil
}

// modified is when a file changed; the zero time where there is none.
func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// refresh fetches all lists. One that cannot be fetched is an error, although apt goes on with an old one.
func (a apt) refresh(ctx context.Context) error {
	began := time.Now()
	if err := a.update(ctx); err != nil {
		return err
	}
	dir, err := a.h.Resolve(aptLists)
	if err != nil {
		return err
	}
	return os.Chtimes(dir, began, began)
}

func (a apt) update(ctx context.Context, more ...string) error {
	_, err := a.fetch(ctx, more...)
	return err
}

// fetch is update with what apt said.
func (a apt) fetch(ctx context.Context, more ...string) (apply.Output, error) {
	out, err := a.get(ctx, "", append([]string{"update", "-o", "APT::Update::Error-Mode=any"}, more...)...)
	if err == nil && (out.ExitCode != 0 || strings.Contains(out.StdErr, "Failed to fetch")) {
		err = &packageError{aptSays(out), aptBusy(out)}
	}
	return out, err
}

// try reads the candidate together with all other sources, which asks no server, and then fetches the lists of its
// repository.
func (a apt) try(ctx context.Context, t repoTrial) error {
	out, err := a.ask(ctx, "apt-get", "indextargets", "-o", "Dir::Etc::sourceparts="+t.together)
	if err == nil && out.ExitCode != 0 {
		said, _, _ := strings.Cut(aptSays(out), " | ") // the rest is what follows from it
		err = &conflictError{strings.ReplaceAll(said, t.together, filepath.Dir(t.together))}
	}
	if err != nil || !t.fetch {
		return err
	}
	return a.tryAlone(ctx, t)
}

// aptLacks finds a component that a repository does not have, of which apt only warns.
var aptLacks = lazyregexp.New(`doesn't have the component '([^']*)'`)

// tryAlone fetches the lists of one repository. Those of the others stay, and so does the time at which all of them
// were fetched.
func (a apt) tryAlone(ctx context.Context, t repoTrial) error {
	dir, err := a.h.Resolve(aptLists)
	if err != nil {
		return err
	}
	before, partial := modified(dir), filepath.Join(dir, "partial")
	came, camePartly := entryNames(dir), entryNames(partial)
	out, err := a.fetch(
		ctx,
		"-o",
		"Dir::Etc::sourcelist="+t.file,
		"-o",
		"Dir::Etc::sourceparts=-",
		"-o",
		"APT::Get::List-Cleanup=0",
	)
	if m := aptLacks.FindStringSubmatch(out.StdErr); m != nil && err == nil {
		err = fmt.Errorf("the repository has no component %q", m[1])
	}
	if err != nil { // what apt fetched stays there until it is fetched again, also what it refused
		err = allErrors(err, removeOthers(dir, came), removeOthers(partial, camePartly))
	}
	if !before.IsZero() {
		err = errors.Join(err, os.Chtimes(dir, before, before))
	}
	return err
}

// removeOthers removes the files of a directory whose names are not among some, but for apt's lock.
func removeOthers(dir string, names map[string]bool) (err error) {
	for name := range entryNames(dir) {
		at := filepath.Join(dir, name)
		if info, missing := os.Lstat(at); missing == nil && info.Mode().IsRegular() && !names[name] && name != "lock" {
			err = allErrors(err, os.Remove(at))
		}
	}
	return err
}

// entryNames are the names in a directory; none where it cannot be read.
func entryNames(dir string) map[string]bool {
	out := map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out
}

func (a apt) candidates(ctx context.Context, names []string) (map[string]string, error) {
	out, err := a.ask(ctx, append([]string{"apt-cache", "policy"}, names...)...)
	if err != nil {
		return nil, err
	}
	if out.ExitCode != 0 {
		return nil, fmt.Errorf("apt-cache policy: %s", aptSays(out))
	}
	return aptCandidates(out.StdOut), nil
}

// aptCandidates reads what apt-cache policy prints: a package at the margin, what is known of it below.
func aptCandidates(text string) map[string]string {
	out := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			name = strings.TrimSuffix(line, ":")
			continue
		}
		if version, ok := strings.CutPrefix(line, "  Candidate: "); ok && version != "(none)" {
			out[name] = version
		}
	}
	return out
}

// aptNews reads what apt-get -s prints: "Inst bash [5.1] (5.2 Debian:12 [amd64])", "Remv bash [5.1]".
func aptNews(text string) []packageChange {
	var out []packageChange
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "Inst" && f[0] != "Remv" {
			continue
		}
		n := packageChange{name: f[1]}
		for _, word := range f[2:] {
			if inner, ok := strings.CutPrefix(word, "("); ok {
				n.new = strings.TrimSuffix(inner, ")")
				break
			}
			if strings.HasPrefix(word, "[") && n.old == "" {
				n.old = strings.Trim(word, "[]")
			}
		}
		out = append(out, n)
	}
	return out
}

// known are the names of the packages in the lists that begin like a name.
func (a apt) known(ctx context.Context, name string) ([]string, error) {
	out, err := a.ask(ctx, "apt-cache", "pkgnames", name[:min(2, len(name))])
	return strings.Fields(out.StdOut), err
}

// versions are those of a package in the lists, newest first.
func (a apt) versions(ctx context.Context, name string) ([]string, error) {
	out, err := a.ask(ctx, "apt-cache", "madison", name)
	var list []string
	for line := range strings.Lines(out.StdOut) {
		if f := strings.Split(line, "|"); len(f) > 2 && !strings.Contains(f[2], "Sources") {
			list = append(list, strings.TrimSpace(f[1]))
		}
	}
	return list, err
}

// aptBusy reports that another program has the lock.
func aptBusy(out apply.Output) bool {
	return strings.Contains(out.StdErr, "Could not get lock") ||
		strings.Contains(out.StdErr, "Unable to acquire the dpkg") ||
		strings.Contains(out.StdErr, "locked by another process")
}
