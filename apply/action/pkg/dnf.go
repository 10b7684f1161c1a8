package pkg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// dnf is the package manager of Fedora and its relatives. For a root other than / that of this machine is told to work
// below it.
type dnf struct{ pkgRunner }

func (d dnf) rules() pkgRules {
	return pkgRules{
		compare: compareRPM,
		same:    sameRPM,
		noHold:  "dnf holds nothing by itself: pin a version in the step, or set excludepkgs in dnf.conf",
	}
}

// command is dnf with arguments, noninteractive.
func (d dnf) command(args ...string) apply.Command {
	with := []string{"dnf", "-y", "-q", "--color=never", "--setopt=exit_on_lock=True"}
	if !d.h.IsMachine() {
		with = append(with, "--installroot="+d.h.Root)
	}
	return apply.Command{Args: append(with, args...), Env: map[string]string{"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}}
}

// do changes something, and fails as dnf does.
func (d dnf) do(ctx context.Context, args ...string) error {
	out, err := d.run(ctx, d.command(args...), dnfBusy)
	if err == nil && out.ExitCode != 0 {
		err = &packageError{dnfSays(out), dnfBusy(out)}
	}
	return err
}

// ask queries what dnf has in its cache, without fetching anything.
func (d dnf) ask(ctx context.Context, args ...string) ([]packageChange, error) {
	out, err := d.run(
		ctx,
		d.command(append([]string{"-C", "repoquery", "--qf", `%{name}\t%{evr}\t%{arch}\n`}, args...)...),
		dnfBusy,
	)
	if err == nil && out.ExitCode != 0 {
		err = fmt.Errorf("dnf repoquery: %s", dnfSays(out))
	}
	return dnfNews(out.StdOut), err
}

// dnfNews reads the lines of a query.
func dnfNews(text string) []packageChange {
	var out []packageChange
	for line := range strings.Lines(text) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			out = append(out, packageChange{name: f[0], new: noEpoch(f[1])})
		}
	}
	return out
}

func (d dnf) read(ctx context.Context, names []string) (pkgSet, error) {
	args := []string{"rpm"}
	if !d.h.IsMachine() {
		args = append(args, "--root", d.h.Root)
	}
	args = append(args, "-q", "--whatprovides", "--qf", rpmFormat)
	for _, name := range names {
		plain, _, _ := strings.Cut(name, ":")
		args = append(args, plain)
	}
	out, err := d.h.Run(ctx, apply.Command{Args: args, Env: map[string]string{"LC_ALL": "C.UTF-8"}})
	if err != nil {
		return pkgSet{}, err
	}
	if strings.Contains(out.StdErr, "error: ") { // what is not installed makes it fail, too
		return pkgSet{}, fmt.Errorf("rpm -q: %s", apply.LastLines(out))
	}
	return rpmSet(out.StdOut), nil
}

func (d dnf) candidates(ctx context.Context, names []string) (map[string]string, error) {
	args := []string{"--latest-limit=1"}
	for _, name := range names {
		args = append(args, rpmSpec(pkgWant{name: name}))
	}
	news, err := d.ask(ctx, args...)
	out := map[string]string{}
	for _, n := range news {
		for _, name := range names {
			if plain, _, _ := strings.Cut(name, ":"); plain == n.name {
				out[name] = n.new
			}
		}
	}
	return out, err
}

func (d dnf) upgrades(ctx context.Context, u pkgUpgrade) ([]packageChange, error) {
	news, err := d.ask(ctx, append(dnfExcludes(u.exclude), "--upgrades", "--latest-limit=1")...)
	if err != nil || len(news) == 0 {
		return nil, err
	}
	names := make([]string, len(news))
	for i, n := range news {
		names[i] = n.name
	}
	set, err := d.read(ctx, names)
	for i := range news {
		news[i].old = set.find(news[i].name).version
	}
	return news, err
}

func dnfExcludes(patterns []string) []string {
	var out []string
	for _, p := range patterns {
		out = append(out, "--exclude="+p)
	}
	return out
}

func (d dnf) dependents(ctx context.Context, names []string) ([]string, error) {
	var specs []string
	for _, name := range names {
		specs = append(specs, rpmSpec(pkgWant{name: name}))
	}
	news, err := d.ask(
		ctx,
		append(
			[]string{"--disablerepo=*", "--installed", "--recursive", "--whatrequires"},
			strings.Join(specs, ","),
		)...)
	var also []string
	for _, n := range news {
		if !slices.Contains(names, n.name) {
			also = append(also, n.name)
		}
	}
	return also, err
}

// refreshed is when dnf fetched something for the last time, or asked and found nothing new.
func (d dnf) refreshed() (time.Time, error) {
	var last time.Time
	dir, err := d.h.Resolve("/var/cache/dnf")
	if err != nil {
		return last, err
	}
	lists, err := filepath.Glob(filepath.Join(dir, "*/repodata/*primary*"))
	for _, list := range lists {
		if t := modified(list); t.After(last) {
			last = t
		}
	}
	return last, err
}

// refresh fetches all lists. One that cannot be fetched is an error, unless its own file says that it may be skipped.
func (d dnf) refresh(ctx context.Context) error {
	return d.do(ctx, "--setopt=skip_if_unavailable=False", "makecache", "--refresh")
}

func (d dnf) try(ctx context.Context, t repoTrial) error {
	if !t.fetch {
		return nil
	}
	at, err := d.h.Path(t.file)
	if err != nil {
		return err
	}
	return d.do(ctx, "--setopt=reposdir="+filepath.Dir(at), "--setopt="+t.name+".skip_if_unavailable=False",
		"--disablerepo=*", "--enablerepo="+t.name, "makecache", "--refresh")
}

func (d dnf) install(ctx context.Context, wants []pkgWant, o installOptions) error {
	if o.conffiles == "replace" {
		return errors.New("conffiles: rpm keeps what was changed by hand, or what the package says: replace is for apt")
	}
	args, err := d.keys()
	if err != nil {
		return err
	}
	if o.recommends != nil {
		args = append(
			args,
			map[bool]string{true: "--setopt=install_weak_deps=True", false: "--setopt=install_weak_deps=False"}[*o.recommends],
		)
	}
	args = append(args, "install")
	for _, w := range wants {
		args = append(args, rpmSpec(w))
	}
	out, err := d.run(ctx, d.command(args...), dnfBusy)
	if err != nil || out.ExitCode == 0 {
		return err
	}
	return d.explain(ctx, out, wants)
}

var dnfNoMatch = lazyregexp.New(`(?m)^Error: Unable to find a match: (.*)$`)

// explain makes an error of what dnf said when it failed.
func (d dnf) explain(ctx context.Context, out apply.Output, wants []pkgWant) error {
	m := dnfNoMatch.FindStringSubmatch(out.StdErr)
	if m == nil {
		return &packageError{dnfSays(out), dnfBusy(out)}
	}
	for _, w := range wants {
		if !slices.Contains(strings.Fields(m[1]), rpmSpec(w)) {
			continue
		}
		known, err := d.ask(ctx, w.name)
		if err != nil {
			return err
		}
		if len(known) > 0 && w.version != "" {
			var versions []string
			for _, k := range known {
				versions = append(versions, k.new)
			}
			slices.SortFunc(versions, func(a, b string) int { return compareRPM(b, a) })
			return noVersion(w.name, w.version, versions)
		}
		if known, err = d.ask(ctx, w.name[:min(2, len(w.name))]+"*"); err != nil {
			return err
		}
		var names []string
		for _, k := range known {
			names = append(names, k.name)
		}
		return noPackage(w.name, names)
	}
	return &packageError{dnfSays(out), dnfBusy(out)}
}

func (d dnf) remove(ctx context.Context, names []string, _, autoremove bool) error {
	args := []string{
		map[bool]string{
			true: "--setopt=clean_requirements_on_remove=True", false: "--setopt=clean_requirements_on_remove=False",
		}[autoremove],
		"remove",
	}
	for _, name := range names {
		args = append(args, rpmSpec(pkgWant{name: name}))
	}
	return d.do(ctx, args...)
}

func (d dnf) upgrade(ctx context.Context, u pkgUpgrade) error {
	args, err := d.keys()
	if err != nil {
		return err
	}
	args = append(args, dnfExcludes(u.exclude)...)
	if u.full {
		args = append(args, "--allowerasing")
	}
	return d.do(ctx, append(args, "upgrade")...)
}

// keys are options that say where the keys of the repositories are: dnf takes their paths for those of this machine,
// also when it works below another root.
func (d dnf) keys() ([]string, error) {
	if d.h.IsMachine() {
		return nil, nil
	}
	dir, err := d.h.Resolve("/etc/yum.repos.d")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.repo"))
	var out []string
	for _, file := range files {
		text, bad := os.ReadFile(file)
		if bad != nil {
			return nil, bad
		}
		for id, key := range repoKeys(string(text)) {
			if at, bad := d.h.Resolve(key); bad == nil {
				out = append(out, "--setopt="+id+".gpgkey=file://"+at)
			}
		}
	}
	return out, err
}

// repoKeys are the paths of the keys of a file of repositories, by the repository's id.
func repoKeys(text string) map[string]string {
	out, id := map[string]string{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			id = strings.Trim(line, "[]")
		}
		if path, ok := strings.CutPrefix(strings.ReplaceAll(line, " ", ""), "gpgkey=file://"); ok && id != "" {
			out[id] = path
		}
	}
	return out
}

// mark has nothing to do: read never finds a mark, and rules says that there is no hold.
func (d dnf) mark(context.Context, pkgMark, []string) error { return nil }

// repair has nothing to do: rpm installs a package as a whole or not at all.
func (d dnf) repair(context.Context) error { return nil }

func dnfBusy(out apply.Output) bool {
	return strings.Contains(out.StdErr, "Waiting for process with pid") ||
		strings.Contains(out.StdErr, "is already running") ||
		strings.Contains(out.StdErr, "transaction lock")
}

// dnfNoKey is what dnf says, with all that it knows of the repository, when it has no key to check a package with.
var dnfNoKey = lazyregexp.New(
	`(?s)You have enabled checking of packages via GPG keys.*Problem repository: \[?([^\]\s]+)`,
)

// dnfSays is the cause in what dnf said.
func dnfSays(out apply.Output) string {
	if m := dnfNoKey.FindStringSubmatch(out.StdErr + out.StdOut); m != nil {
		return fmt.Sprintf(
			"packages of the repository %s are to be checked, and it names no key: give it a key (pkgrepo.managed)",
			m[1],
		)
	}
	var said []string
	for line := range strings.Lines(out.StdErr) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "Unable to detect release version") ||
			strings.HasPrefix(line, "(try to add") {
			continue
		}
		said = append(said, strings.TrimPrefix(line, "Error: "))
	}
	if len(said) == 0 {
		return out.Failure()
	}
	return strings.Join(said[max(0, len(said)-maxSaid):], " | ")
}
