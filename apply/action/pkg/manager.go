package pkg

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// packager is the package manager of a host. Its reading methods change nothing; its writing ones wait for its lock.
type packager interface {
	// read lists what is there of these names, and what provides them.
	read(ctx context.Context, names []string) (pkgSet, error)
	// candidates are the versions that would be installed now, by name. What no list has is left out.
	candidates(ctx context.Context, names []string) (map[string]string, error)
	// upgrades are the packages that an upgrade of everything would change or add.
	upgrades(ctx context.Context, u pkgUpgrade) ([]packageChange, error)
	// dependents are the packages that would be removed with these.
	dependents(ctx context.Context, names []string) ([]string, error)
	// refreshed is when the lists were fetched for the last time; the zero time is never.
	refreshed() (time.Time, error)

	refresh(ctx context.Context) error
	// try reads a candidate of a repository's file.
	try(ctx context.Context, t repoTrial) error
	install(ctx context.Context, wants []pkgWant, o installOptions) error
	remove(ctx context.Context, names []string, purge, autoremove bool) error
	upgrade(ctx context.Context, u pkgUpgrade) error
	mark(ctx context.Context, m pkgMark, names []string) error
	// repair ends what an interrupted run left half done. What is still broken then is found by who needs it.
	repair(ctx context.Context) error

	rules() pkgRules
}

// pkgRules are what versions mean, and what a package manager cannot do.
type pkgRules struct {
	compare func(a, b string) int
	same    func(have, want string) bool // an exact version
	noHold  string                       // why nothing can be held; "": it can
}

// pkgWant is a package that is to be installed.
type pkgWant struct {
	name    string
	version string // "" is any, 1.2* is a prefix
}

// installOptions are how packages are installed.
type installOptions struct {
	downgrade  bool
	recommends *bool
	conffiles  string
}

// pkgUpgrade is what an upgrade of everything covers.
type pkgUpgrade struct {
	full      bool
	exclude   []string
	conffiles string
}

// packageChange is a package of an upgrade. A new one has no old version, a removed one no new version.
type packageChange struct{ name, old, new string }

// pkgMark is what package managers remember of a package besides its version.
type pkgMark string

const (
	markHold   pkgMark = "hold"
	markUnhold pkgMark = "unhold"
	markManual pkgMark = "manual" // it was asked for: removing what needed it does not remove it
)

// pkgState is what a host has of a package.
type pkgState struct {
	name, arch, version string
	installed           bool
	config              bool   // removed, and its configuration is still there
	broken              string // installed in part: the package manager's word for it
	held                bool
	auto                bool              // installed because something needed it
	provides            map[string]string // names, with their versions; "" is none
}

// pkgSet is what a host has, by name.
type pkgSet struct {
	native string // the architecture that a name without one means
	all    map[string][]pkgState
}

// find is the state of a package, by NAME or NAME:ARCH; the zero state where there is none. A package for all
// architectures is one for the host's own, too.
func (s pkgSet) find(name string) pkgState {
	plain, arch, exact := strings.Cut(name, ":")
	var found pkgState
	for _, p := range s.all[plain] {
		all := p.arch == "all" || p.arch == "noarch"
		switch {
		case exact && p.arch == arch, (!exact || arch == s.native) && (all || p.arch == s.native):
			return p
		case !exact && (found.name == "" || p.installed && !found.installed):
			found = p
		}
	}
	return found
}

// anyVersion fits whatever version a package is provided in.
func anyVersion(string) bool { return true }

// providing returns an installed package that stands for a name that is no package's own, such as mail-transport-agent,
// in a version that fits.
func (s pkgSet) providing(name string, fits func(version string) bool) (pkgState, bool) {
	for _, list := range s.all {
		for _, p := range list {
			if version, ok := p.provides[name]; ok && p.installed && fits(version) {
				return p, true
			}
		}
	}
	return pkgState{}, false
}

// Locking is how long the package manager is waited for.
type Locking struct {
	// how long to wait while another program holds the package manager's lock; default 5m
	LockTimeout render.Duration `yaml:"lockTimeout"`
}

func newLocking() Locking { return Locking{render.Duration(5 * time.Minute)} }

// packager is that of a host: the one whose database its root has.
func (l Locking) packager(h *apply.Host) (packager, error) {
	has := func(path string) bool {
		at, err := h.Resolve(path)
		return err == nil && hostfile.Exists(at)
	}
	runner := pkgRunner{h, l.LockTimeout.Std()}
	switch {
	case has("/var/lib/dpkg/status") && has("/usr/bin/apt-get"):
		return apt{runner}, nil
	case has("/var/lib/dpkg/status"):
		return nil, fmt.Errorf(
			"%s has packages of dpkg, and no apt-get to manage them with: install apt below it",
			h.Root,
		)
	case h.IsMachine() && !has("/usr/bin/dnf"):
		return nil, fmt.Errorf("this host has neither apt-get nor dnf: pullet manages packages with one of them")
	case has("/etc/yum.repos.d") || has("/etc/dnf"):
		return dnf{runner}, nil
	}
	return nil, fmt.Errorf(
		"%s is no system with apt (/var/lib/dpkg/status, /usr/bin/apt-get) or dnf (/etc/yum.repos.d)",
		h.Root,
	)
}

// pkgRunner runs a package manager's commands.
type pkgRunner struct {
	h    *apply.Host
	wait time.Duration // for its lock
}

// packageError is what a package manager said when it failed.
type packageError struct {
	text   string
	locked bool // another program kept its lock
}

func (e *packageError) Error() string { return e.text }

// HostFault is true where another program of the host kept the lock.
func (e *packageError) HostFault() bool { return e.locked }

// lockPoll is how often a lock is tried that its program does not wait for itself.
const lockPoll = time.Second

// run runs a command, again while another program holds the lock.
func (r pkgRunner) run(ctx context.Context, c apply.Command, busy func(apply.Output) bool) (apply.Output, error) {
	deadline := time.Now().Add(r.wait)
	for {
		out, err := r.h.Run(ctx, c)
		if err != nil || out.ExitCode == 0 || !busy(out) || time.Now().After(deadline) {
			return out, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}

// refreshOnce refreshes the lists at most once a run, and again when a repository was changed since.
func refreshOnce(ctx context.Context, h *apply.Host, p packager) error {
	changed, err := sourcesChanged(h)
	if err != nil {
		return err
	}
	return h.Once("pkg refresh "+changed.UTC().Format(time.RFC3339Nano), func() error {
		if err := p.refresh(ctx); err != nil {
			return fmt.Errorf("refresh the package lists: %w", err)
		}
		return nil
	})
}

// sourceDirs are where the files are that say which repositories there are.
func sourceDirs() []string {
	return []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d", "/etc/yum.repos.d"}
}

// sourcesChanged is when the repositories of a host changed for the last time.
func sourcesChanged(h *apply.Host) (time.Time, error) {
	var last time.Time
	for _, dir := range sourceDirs() {
		at, err := h.Resolve(dir)
		if err != nil {
			return last, err
		}
		files, err := filepath.Glob(filepath.Join(at, "*"))
		if err != nil {
			return last, err
		}
		for _, f := range append(files, at) {
			if t := modified(f); t.After(last) {
				last = t
			}
		}
	}
	return last, nil
}

// stale reports lists that are older than an age, or than the repositories. Times to come are clocks that were wrong:
// they do not count.
func stale(h *apply.Host, p packager, age time.Duration) (bool, error) {
	last, err := p.refreshed()
	if err != nil {
		return false, err
	}
	changed, err := sourcesChanged(h)
	now := time.Now()
	return now.Sub(last) > age || changed.After(last) && !changed.After(now), err
}

var (
	pkgName    = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9+._-]*(:[a-z0-9][a-z0-9-]*)?$`)
	pkgVersion = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.+~:^_-]*\*?$`)
)

// checkPkgName refuses what a package manager would read as something else than a name.
func checkPkgName(param, name string) error {
	switch {
	case strings.ContainsAny(name, "= "):
		return apply.BadParam(
			param,
			"%q is not a package's name: the version is a parameter of its own, or stands in pkgs as NAME=VERSION",
			name,
		)
	case !pkgName.MatchString(name) || strings.HasSuffix(name, "-"):
		return apply.BadParam(param, "%q is not a package's name", name)
	}
	return nil
}

func checkPkgVersion(param, version string) error {
	if version != "" && !pkgVersion.MatchString(version) {
		return apply.BadParam(param, "%q is not a version: write it as it is (1.2-3), or how it begins (1.2*)", version)
	}
	return nil
}

// allErrors joins errors for a message of one line.
func allErrors(errs ...error) error {
	var out error
	for _, err := range errs {
		switch {
		case out == nil:
			out = err
		case err != nil:
			out = fmt.Errorf("%w; %w", out, err)
		}
	}
	return out
}
