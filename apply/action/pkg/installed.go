package pkg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
)

// Installed is packages that are installed, in any version or in this one. All of a step are installed in one
// transaction. A name that packages provide, such as mail-transport-agent, is satisfied by any of them; a version is
// compared with the one in which they provide it. Only packages can be held.
//
// Nothing is asked of a terminal. Configuration files that were changed by hand stay as they are, unless conffiles says
// replace. A lock that another program holds is waited for. What an interrupted dpkg left half done is finished first.
// A package that cannot be configured fails the steps that want it, and no other.
//
// A held package is changed only by a step that says hold, and held again. A lower version than the installed one is an
// error before anything is done, unless allowDowngrade is set.
//
// State is the installed version where the step has one package; Data is a map of names to versions.
//
// With a root other than / apt-get of that root is run in it, where services are not started, and dnf of this machine
// for it.
//
// Example:
//
//	steps:
//	  - name: install vnstat package
//	    action: pkg.installed
//	    parameters: [{name: vnstat}, {refresh: true}]
//	  - name: web server
//	    action: pkg.installed
//	    parameters:
//	      pkgs: [nginx=1.22*, libnginx-mod-stream, curl]
//	      refresh: true
//	      recommends: false
//	      hold: true
type Installed struct {
	Name    string   `yaml:"name"`    // a package, or pkgs; NAME:ARCH is one of another architecture
	Version string   `yaml:"version"` // exactly this version, or how it begins: 1.2*
	Pkgs    []string `yaml:"pkgs"`    // several packages, each NAME or NAME=VERSION
	// refresh the package lists before something is installed, at most once a run; a host without any lists gets them
	// always
	Refresh bool `yaml:"refresh"`
	// true: nothing else changes its version (apt-mark hold); false: not held; default: as it is
	Hold           *bool `yaml:"hold"`
	AllowDowngrade bool  `yaml:"allowDowngrade"` // install a lower version than the installed one
	// install what the packages recommend, too; default: as the system is set up
	Recommends  *bool `yaml:"recommends"`
	Configuring `yaml:",inline"`
	Locking     `yaml:",inline"`

	wants []pkgWant
}

// Configuring says what happens to configuration files that were changed by hand.
type Configuring struct {
	// what happens to configuration files that were changed by hand and that the package brings anew; default keep
	ConfFiles string `yaml:"conffiles" words:"keep replace"`
}

func newConfiguring() Configuring { return Configuring{"keep"} }

// Bind reads the names and versions.
func (a *Installed) Bind(apply.Binding) error {
	wants, err := pkgWants(a.Name, a.Version, a.Pkgs)
	a.wants = wants
	return err
}

// pkgWants are the packages of a name with its version, or of a list.
func pkgWants(name, version string, pkgs []string) ([]pkgWant, error) {
	switch {
	case name == "" && len(pkgs) == 0:
		return nil, apply.BadParam("name", "which packages? write name: NAME, or pkgs: [NAME, ...]")
	case name != "" && len(pkgs) > 0:
		return nil, apply.BadParam("pkgs", "name and pkgs exclude each other: keep one")
	case name == "" && version != "":
		return nil, apply.BadParam("version", "belongs to name: in pkgs write NAME=VERSION")
	case name != "":
		return []pkgWant{{name, version}}, errors.Join(checkPkgName("name", name), checkPkgVersion("version", version))
	}
	var out []pkgWant
	for _, one := range pkgs {
		n, v, pinned := strings.Cut(one, "=")
		if err := errors.Join(checkPkgName("pkgs", n), checkPkgVersion("pkgs", v)); err != nil {
			return nil, err
		}
		if pinned && v == "" {
			return nil, apply.BadParam("pkgs", "%q has no version behind the equals sign", one)
		}
		if slices.ContainsFunc(out, func(w pkgWant) bool { return w.name == n }) {
			return nil, apply.BadParam("pkgs", "%s stands here twice", n)
		}
		out = append(out, pkgWant{n, v})
	}
	return out, nil
}

func wantNames(wants []pkgWant) []string {
	out := make([]string, len(wants))
	for i, w := range wants {
		out[i] = w.name
	}
	return out
}

// plan compares the host with what is wanted.
func (a *Installed) plan(ctx context.Context, p packager) (pkgPlan, pkgSet, error) {
	set, err := p.read(ctx, wantNames(a.wants))
	if err != nil {
		return pkgPlan{}, set, err
	}
	plan, err := a.planner(p, set).plan(a.wants)
	return plan, set, err
}

func (a *Installed) planner(p packager, set pkgSet) pkgPlanner {
	return pkgPlanner{rules: p.rules(), set: set, allowDowngrade: a.AllowDowngrade, hold: a.Hold}
}

// Check compares versions and marks with the package database, and says which version would come by the lists that are
// there.
func (a *Installed) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Change{}, err
	}
	plan, set, err := a.plan(ctx, p)
	if err != nil || len(plan.install) == 0 {
		return plan.change(), err
	}
	planner := a.planner(p, set)
	planner.comes = a.comes(ctx, p, plan)
	plan, err = planner.plan(a.wants)
	return plan.change(), err
}

// comes are the versions of what a plan installs in any. That one is not known is no mistake: an earlier step may bring
// its repository.
func (a *Installed) comes(ctx context.Context, p packager, plan pkgPlan) map[string]string {
	names := wantNames(slices.DeleteFunc(slices.Clone(plan.install), func(w pkgWant) bool { return w.version != "" }))
	if len(names) == 0 {
		return nil
	}
	versions, err := p.candidates(ctx, names)
	if err != nil {
		return nil
	}
	for name, version := range versions {
		if a.Refresh {
			versions[name] = version + " or newer"
		}
	}
	return versions
}

// Apply installs what is missing in one transaction, and sets the marks.
func (a *Installed) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Output{}, err
	}
	plan, set, err := a.plan(ctx, p)
	if err != nil {
		return apply.Output{}, err
	}
	warning, err := a.install(ctx, h, p, plan, set)
	if err != nil && *cmp.Or(a.Hold, new(bool)) { // what was held before does not stay loose
		return apply.Output{}, errors.Join(err, p.mark(ctx, markHold, plan.unhold))
	}
	if err != nil {
		return apply.Output{}, err
	}
	if err := errors.Join(p.mark(ctx, markManual, plan.markThis), p.mark(ctx, markHold, plan.hold)); err != nil {
		return apply.Output{}, err
	}
	out, err := pkgOutput(ctx, p, wantNames(a.wants))
	out.StdErr = warning
	return out, err
}

// install makes the transaction. Lists that could not be refreshed are a warning: what is installed is what counts.
func (a *Installed) install(
	ctx context.Context, h *apply.Host, p packager, plan pkgPlan, set pkgSet,
) (warning string, err error) {
	if err := p.mark(ctx, markUnhold, plan.unhold); err != nil || len(plan.install) == 0 {
		return "", err
	}
	if err := p.repair(ctx); err != nil {
		return "", err
	}
	last, err := p.refreshed()
	if err != nil {
		return "", err
	}
	var old error
	if a.Refresh || last.IsZero() { // a new host has no lists at all
		old = refreshOnce(ctx, h, p)
	}
	after := func() (pkgPlan, error) {
		left, set, err := a.plan(ctx, p)
		if err != nil || len(left.install) == 0 {
			return left, err
		}
		return left, a.checkHold(ctx, p, set, left.install)
	}
	if err := a.checkHold(ctx, p, set, plan.install); err != nil {
		return "", allErrors(err, old)
	}
	err = arrived(p.install(ctx, plan.install, a.how(plan.downgrade)), after)
	if err != nil {
		return "", allErrors(err, old)
	}
	if old != nil {
		warning = old.Error()
	}
	return warning, nil
}

// checkHold refuses to hold a name that is not a package, but that an installed package provides: only a package can be
// held, so the step would never be done.
func (a *Installed) checkHold(ctx context.Context, p packager, set pkgSet, wants []pkgWant) error {
	if a.Hold == nil || !*a.Hold {
		return nil
	}
	provided := map[string]string{}
	for _, w := range wants {
		if by, ok := set.providing(w.name, anyVersion); ok && set.find(w.name).name == "" {
			provided[w.name] = by.name
		}
	}
	if len(provided) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(provided))
	known, err := p.candidates(ctx, names)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, ok := known[name]; !ok {
			return fmt.Errorf("hold: %s is a virtual package; hint: name %s, which provides it", name, provided[name])
		}
	}
	return nil
}

func (a *Installed) how(downgrade bool) installOptions {
	return installOptions{downgrade: downgrade, recommends: a.Recommends, conffiles: a.ConfFiles}
}

// arrived judges a transaction by what is there after it. A package manager complains of others, too, which were broken
// before; and it can be content although something is still to be done.
func arrived(err error, after func() (pkgPlan, error)) error {
	left, bad := after()
	switch {
	case bad == nil && len(left.install) == 0:
		return nil
	case err == nil && bad == nil:
		return fmt.Errorf(
			"the package manager found nothing wrong, and still there is to do: %s",
			strings.Join(left.says, ", "),
		)
	}
	return allErrors(err, bad)
}

// pkgOutput says which versions there are.
func pkgOutput(ctx context.Context, p packager, names []string) (apply.Output, error) {
	set, err := p.read(ctx, names)
	if err != nil {
		return apply.Output{}, err
	}
	versions := map[string]any{}
	var out apply.Output
	for _, name := range names {
		have := set.find(name)
		if !have.installed {
			have, _ = set.providing(name, anyVersion)
		}
		if versions[name] = have.version; len(names) == 1 {
			out.State = have.version
		}
	}
	out.Data = versions
	return out, nil
}

// Manages are the packages.
func (a *Installed) Manages() []apply.Resource { return packageResources(a.wants) }

func packageResources(wants []pkgWant) []apply.Resource {
	var out []apply.Resource
	for _, w := range wants {
		out = append(
			out,
			apply.Resource{
				ID:     "package " + w.name,
				Absent: "pkg.removed",
				Params: map[string]any{"name": w.name, "alone": true},
			},
		)
	}
	return out
}

// Join joins steps whose packages are installed in the same way.
func (a *Installed) Join() string {
	recommends := "default"
	if a.Recommends != nil {
		recommends = fmt.Sprint(*a.Recommends)
	}
	return fmt.Sprintf(
		"pkg.installed recommends %s conffiles %s downgrade %t lock %s",
		recommends,
		a.ConfFiles,
		a.AllowDowngrade,
		a.LockTimeout.Std(),
	)
}

// ApplyTogether installs what several steps miss in one transaction, after one refresh if one of them asks for it. Held
// packages are left to their own steps.
func (a *Installed) ApplyTogether(ctx context.Context, h *apply.Host, all []apply.Action) error {
	p, err := a.packager(h)
	if err != nil {
		return err
	}
	union := *a
	union.Refresh, union.Hold = false, nil
	var together pkgPlan
	for _, one := range all {
		other, ok := one.(*Installed)
		if !ok {
			continue
		}
		plan, set, err := other.plan(ctx, p)
		if err == nil {
			err = other.checkHold(ctx, p, set, plan.install)
		}
		if err != nil { // its own step will say so
			continue
		}
		for _, w := range plan.install {
			if set.find(w.name).held {
				continue
			}
			if err := together.join(w); err != nil {
				return err
			}
			union.wants, union.Refresh = together.install, union.Refresh || other.Refresh
			together.downgrade = together.downgrade || plan.downgrade
		}
	}
	if len(together.install) == 0 {
		return nil
	}
	_, err = union.install(ctx, h, p, together, pkgSet{})
	return err
}

// join adds a package of another step.
func (p *pkgPlan) join(w pkgWant) error {
	for i, have := range p.install {
		switch {
		case have.name != w.name:
		case have.version == "" || have.version == w.version || w.version == "":
			p.install[i].version = max(have.version, w.version)
			return nil
		default:
			return fmt.Errorf("%s is wanted as %s and as %s", w.name, have.version, w.version)
		}
	}
	p.install = append(p.install, w)
	return nil
}
