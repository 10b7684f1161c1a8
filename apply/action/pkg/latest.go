package pkg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Latest is packages that are installed in the newest version that the host's repositories have. When the package lists
// are older than maxAge, or than the repositories, whether there is a newer version is not known: the step then
// refreshes them, and has changed nothing if there is none. A held package that has a newer version is an error.
//
// State is the installed version where the step has one package; Data is a map of names to versions.
//
// Example:
//
//	steps:
//	  - name: certificates
//	    action: pkg.latest
//	    parameters: {pkgs: [ca-certificates, tzdata], maxAge: 6h}
type Latest struct {
	Name        string   `yaml:"name"`       // a package, or pkgs
	Pkgs        []string `yaml:"pkgs"`       // several packages
	Recommends  *bool    `yaml:"recommends"` // install what the packages recommend, too; default: as the system is set up
	Refreshing  `yaml:",inline"`
	Configuring `yaml:",inline"`
	Locking     `yaml:",inline"`

	wants []pkgWant
}

// Refreshing is how old what is known of the repositories may be.
type Refreshing struct {
	MaxAge render.Duration `yaml:"maxAge"` // refresh package lists that are older; default 1h
}

func newRefreshing() Refreshing { return Refreshing{render.Duration(time.Hour)} }

// check refuses an age that lists which were just fetched have already.
func (a Refreshing) check() error {
	if a.MaxAge.Std() < time.Minute {
		return apply.BadParam(
			"maxAge",
			"%s is too short: lists would be old before the run ends; at least 1m",
			a.MaxAge.Std(),
		)
	}
	return nil
}

// refreshLists is what a check says of lists that are too old to tell.
const refreshLists = "refresh the package lists"

// Bind reads the names.
func (a *Latest) Bind(apply.Binding) error {
	wants, err := pkgWants(a.Name, "", a.Pkgs)
	a.wants = wants
	if err == nil && slices.ContainsFunc(wants, func(w pkgWant) bool { return w.version != "" }) {
		return apply.BadParam("pkgs", "pkg.latest takes no versions: use pkg.installed")
	}
	return errors.Join(err, a.check())
}

// Manages are the packages.
func (a *Latest) Manages() []apply.Resource { return packageResources(a.wants) }

// Check compares with the newest versions, or says that the lists are too old to tell.
func (a *Latest) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Change{}, err
	}
	old, err := stale(h, p, a.MaxAge.Std())
	if err != nil {
		return apply.Change{}, err
	}
	plan, err := a.plan(ctx, p, !old)
	if old && err == nil {
		plan.says, plan.newer = append(plan.says, refreshLists), plan.newer+1
	}
	return plan.change(), err
}

// plan compares the host with what its lists have; with lists that are too old only what is missing counts.
func (a *Latest) plan(ctx context.Context, p packager, lists bool) (pkgPlan, error) {
	names := wantNames(a.wants)
	set, err := p.read(ctx, names)
	if err != nil {
		return pkgPlan{}, err
	}
	newest := map[string]string{}
	if lists {
		if newest, err = p.candidates(ctx, names); err != nil {
			return pkgPlan{}, err
		}
	}
	rules, upgraded := p.rules(), 0
	wants := slices.Clone(a.wants)
	for i, w := range wants {
		have := set.find(w.name)
		if version := newest[w.name]; version != "" && have.installed && rules.compare(version, have.version) > 0 {
			wants[i].version = version
			if have.broken == "" {
				upgraded++
			}
		}
		if have.held && wants[i].version != "" {
			return pkgPlan{}, fmt.Errorf(
				"%s is held at %s, and there is %s: let go of it (pkg.installed with hold: false), or of this step",
				w.name,
				have.version,
				wants[i].version,
			)
		}
	}
	plan, err := pkgPlanner{rules: rules, set: set}.plan(wants)
	plan.newer = upgraded
	return plan, err
}

// Apply refreshes old lists and installs what is newer. When a list could not be fetched it does what the others allow,
// and fails.
func (a *Latest) Apply(ctx context.Context, h *apply.Host, c apply.Change) (apply.Output, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Output{}, err
	}
	var old error
	if strings.HasSuffix(c.Summary, refreshLists) {
		if old = refreshOnce(ctx, h, p); ctx.Err() != nil {
			return apply.Output{}, old
		}
	}
	plan, err := a.plan(ctx, p, true)
	if err != nil {
		return apply.Output{}, err
	}
	if len(plan.install) > 0 {
		err = allErrors(
			p.repair(ctx),
			p.install(ctx, plan.install, installOptions{recommends: a.Recommends, conffiles: a.ConfFiles}),
		)
		err = arrived(err, func() (pkgPlan, error) { return a.plan(ctx, p, true) })
	}
	if err := allErrors(err, old); err != nil {
		return apply.Output{}, err
	}
	if err := p.mark(ctx, markManual, plan.markThis); err != nil {
		return apply.Output{}, err
	}
	out, err := pkgOutput(ctx, p, wantNames(a.wants))
	if strings.HasSuffix(c.Summary, refreshLists) { // what was said before is done, too
		told := strings.Split(strings.TrimSuffix(strings.TrimSuffix(c.Summary, refreshLists), ", "), ", ")
		known := func(one string) bool { return slices.Contains(told, one) }
		out.Did = strings.Join(slices.DeleteFunc(plan.says, known), ", ")
	}
	out.Same = len(plan.install)+len(plan.markThis) == 0
	return out, err
}
