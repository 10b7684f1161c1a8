package pkg

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
)

// apt is the package manager of Debian and its relatives.
type apt struct{ pkgRunner }

func (a apt) rules() pkgRules {
	return pkgRules{compare: compareDebian, same: func(have, want string) bool { return have == want }}
}

func (a apt) read(context.Context, []string) (pkgSet, error) { return readDpkg(a.h) }

// env is the environment in which nothing asks and nothing restarts services behind our back.
func (a apt) env() map[string]string {
	env := map[string]string{
		"DEBIAN_FRONTEND": "noninteractive", "DEBCONF_NONINTERACTIVE_SEEN": "true", "APT_LISTCHANGES_FRONTEND": "none",
		"APT_LISTBUGS_FRONTEND": "none", "NEEDRESTART_MODE": "l", "NEEDRESTART_SUSPEND": "1", "LANG": "C.UTF-8",
		"LC_ALL": "C.UTF-8",
	}
	if !a.h.IsMachine() {
		env["SYSTEMD_OFFLINE"] = "1"
	}
	return env
}

// command runs a program of the host's own system, and waits for its lock.
func (a apt) command(ctx context.Context, args ...string) (apply.Output, error) {
	return a.run(ctx, apply.Command{Args: args, Env: a.env(), Chroot: true}, aptBusy)
}

// ask runs apt-get or apt-cache to read: without a lock, and without caches that it would write.
func (a apt) ask(ctx context.Context, args ...string) (apply.Output, error) {
	with := []string{
		args[0],
		"-q",
		"-o",
		"Debug::NoLocking=1",
		"-o",
		"Dir::Cache::pkgcache=",
		"-o",
		"Dir::Cache::srcpkgcache=",
		"-o",
		"APT::Cmd::Pattern-Only=true",
	}
	return a.h.Run(ctx, apply.Command{Args: append(with, args[1:]...), Env: a.env(), Chroot: true})
}

// get runs apt-get to change something. Pattern-Only: a name that no package has is not read as a regular expression,
// which could install half of the archive. Use-Pty: what dpkg says on which output stays apart. pkgcache: apt tells
// whether its cache is right by size and second of dpkg's database, and would not see what dpkg did a moment ago.
func (a apt) get(ctx context.Context, conffiles string, args ...string) (apply.Output, error) {
	with := []string{
		"apt-get", "-y", "-q", "-o", "APT::Cmd::Pattern-Only=true", "-o", "Dpkg::Use-Pty=0", "-o", "Dir::Cache::pkgcache=",
		"-o", "DPkg::Lock::Timeout=" + strconv.Itoa(int(a.wait.Seconds())),
	}
	env := a.env()
	if conffiles != "" {
		for _, force := range confForce(conffiles) {
			with = append(with, "-o", "Dpkg::Options::="+force)
		}
		env[map[string]string{"keep": "UCF_FORCE_CONFFOLD", "replace": "UCF_FORCE_CONFFNEW"}[conffiles]] = "1"
	}
	if !a.h.IsMachine() {
		with = append(with, "-o", "DPkg::Pre-Invoke::="+denyServices, "-o", "DPkg::Post-Invoke::="+allowServices)
	}
	return a.run(ctx, apply.Command{Args: append(with, args...), Env: env, Chroot: true}, aptBusy)
}

// confForce are dpkg's words for what happens to configuration files that were changed by hand.
func confForce(conffiles string) []string {
	if conffiles == "replace" {
		return []string{"--force-confnew"}
	}
	return []string{"--force-confdef", "--force-confold"}
}

// Below a root other than / services belong to no running system: a policy that denies to start them stands there as
// long as apt holds its lock. One that is not ours is left alone; ours, left by a run that was killed, is taken over.
const (
	denyServices = `f=/usr/sbin/policy-rc.d; if [ ! -e $f ] || grep -q 'by pullet' $f; then ` +
		`printf '#!/bin/sh\n# by pullet, while packages are installed below a root\nexit 101\n' >$f && chmod 755 $f; fi`
	allowServices = `f=/usr/sbin/policy-rc.d; if grep -qs 'by pullet' $f; then rm $f; fi`
)

func (a apt) install(ctx context.Context, wants []pkgWant, o installOptions) error {
	args := []string{"install"}
	if o.downgrade {
		args = append(args, "--allow-downgrades")
	}
	if o.recommends != nil {
		args = append(args, "-o", fmt.Sprintf("APT::Install-Recommends=%t", *o.recommends))
	}
	for _, w := range wants {
		arg := w.name
		if w.version != "" {
			arg += "=" + w.version
		}
		args = append(args, arg)
	}
	out, err := a.get(ctx, o.conffiles, args...)
	if err != nil || out.ExitCode == 0 {
		return err
	}
	return a.explain(ctx, out)
}

func (a apt) remove(ctx context.Context, names []string, purge, autoremove bool) error {
	args := []string{"remove", "-o", fmt.Sprintf("APT::Get::AutomaticRemove=%t", autoremove)}
	if purge {
		args = append(args, "--purge")
	}
	out, err := a.get(ctx, "keep", append(args, names...)...)
	if err != nil || out.ExitCode == 0 {
		return err
	}
	return a.explain(ctx, out)
}

// dependents asks what a removal would remove.
func (a apt) dependents(ctx context.Context, names []string) ([]string, error) {
	out, err := a.ask(
		ctx,
		append([]string{"apt-get", "-s", "-o", "APT::Get::AutomaticRemove=false", "remove"}, names...)...)
	if err != nil {
		return nil, err
	}
	if out.ExitCode != 0 {
		return nil, a.explain(ctx, out)
	}
	set, err := readDpkg(a.h)
	if err != nil {
		return nil, err
	}
	id := func(name string) string { // a name with an architecture may mean the same package as one without
		p := set.find(name)
		return p.name + ":" + p.arch
	}
	asked := map[string]bool{}
	for _, name := range names {
		asked[id(name)] = true
	}
	var also []string
	for _, n := range aptNews(out.StdOut) {
		if n.new == "" && !asked[id(n.name)] {
			also = append(also, n.name)
		}
	}
	return also, nil
}

// upgradeArgs are those of an upgrade. An excluded package keeps its version by asking for just this one; what needs a
// newer one stays, too.
func (a apt) upgradeArgs(u pkgUpgrade) (args, asked []string, err error) {
	args = []string{"upgrade", "--with-new-pkgs"}
	if u.full {
		args = []string{"dist-upgrade"}
	}
	if len(u.exclude) == 0 {
		return args, nil, nil
	}
	set, err := readDpkg(a.h)
	for name, list := range set.all {
		for _, p := range list {
			if !p.installed || p.broken != "" || !excluded(u.exclude, name) {
				continue
			}
			full := name + ":" + p.arch
			if p.arch == "all" {
				full = name
			}
			args = append(args, full+"="+p.version)
			if p.auto {
				asked = append(asked, full)
			}
		}
	}
	return args, asked, err
}

// excluded reports that a name matches one of the patterns, which were checked.
func excluded(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

func (a apt) upgrades(ctx context.Context, u pkgUpgrade) ([]packageChange, error) {
	args, _, err := a.upgradeArgs(u)
	if err != nil {
		return nil, err
	}
	out, err := a.ask(ctx, append([]string{"apt-get", "-s"}, args...)...)
	if err != nil {
		return nil, err
	}
	if out.ExitCode != 0 {
		return nil, a.explain(ctx, out)
	}
	return aptNews(out.StdOut), nil
}

// upgrade makes the upgrade. apt takes packages that it was asked to keep for packages that are wanted: the mark is put
// back.
func (a apt) upgrade(ctx context.Context, u pkgUpgrade) error {
	args, asked, err := a.upgradeArgs(u)
	if err != nil {
		return err
	}
	out, err := a.get(ctx, u.conffiles, args...)
	if err == nil && out.ExitCode != 0 {
		err = a.explain(ctx, out)
	}
	return errors.Join(err, a.mark(ctx, "auto", asked))
}

func (a apt) mark(ctx context.Context, m pkgMark, names []string) error {
	if len(names) == 0 {
		return nil
	}
	out, err := a.command(ctx, append([]string{"apt-mark", string(m)}, names...)...)
	if err == nil && out.ExitCode != 0 {
		err = fmt.Errorf("apt-mark %s %s: %s", m, strings.Join(names, " "), aptSays(out))
	}
	return err
}

// repair finishes what dpkg left in part: what only waits to be configured, then what must be unpacked again, then what
// misses what it depends on, unless something would have to be removed for that.
func (a apt) repair(ctx context.Context) error {
	set, journal, err := a.unfinished()
	if err != nil || !journal && len(set) == 0 {
		return err
	}
	line := "dpkg --configure -a " + strings.Join(confForce("keep"), " ")
	if !a.h.IsMachine() {
		line = denyServices + "; " + line + "; rc=$?; " + allowServices + "; exit $rc"
	}
	if _, err := a.command(ctx, apply.Shell(line)...); err != nil {
		return err
	}
	if set, _, err = a.unfinished(); err != nil {
		return err
	}
	fix := false
	for _, p := range set {
		if fix = fix || p.broken == "unpacked"; !strings.HasPrefix(p.broken, "half-installed") {
			continue
		}
		if err := a.again(ctx, p); err != nil {
			return err
		}
	}
	if fix {
		_, err = a.get(ctx, "keep", "install", "--fix-broken", "--no-remove")
	}
	return err
}

// again installs a package anew that was unpacked in part: apt takes it for installed otherwise.
func (a apt) again(ctx context.Context, p pkgState) error {
	name := p.name
	if p.arch != "all" {
		name += ":" + p.arch
	}
	out, err := a.get(ctx, "keep", "install", "--reinstall", "--no-remove", name+"="+p.version)
	if err == nil && out.ExitCode != 0 { // the lists have only other versions by now
		_, err = a.get(ctx, "keep", "install", "--no-remove", name)
	}
	if err != nil || !p.auto {
		return err
	}
	return a.mark(ctx, "auto", []string{name})
}

// unfinished are the packages that dpkg left in part, and whether it has a journal of changes that it did not end.
func (a apt) unfinished() ([]pkgState, bool, error) {
	set, err := readDpkg(a.h)
	if err != nil {
		return nil, false, err
	}
	dir, err := a.h.Resolve("/var/lib/dpkg")
	if err != nil {
		return nil, false, err
	}
	journal, err := dpkgJournal(dir)
	return set.unfinished(), len(journal) > 0, err
}
