package pkg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
)

// Removed is packages that are not installed. What depends on them is removed with them: the plan names it.
// Configuration files stay, unless purge is set. A name that the host does not know is not installed.
//
// Example:
//
//	steps:
//	  - name: no telnet server
//	    action: pkg.removed
//	    parameters: {pkgs: [telnetd, inetutils-telnetd], purge: true}
type Removed struct {
	Name string   `yaml:"name"` // a package, or pkgs
	Pkgs []string `yaml:"pkgs"` // several packages, removed in one transaction
	// remove the configuration files, too; dnf does so anyway, where they were not changed
	Purge bool `yaml:"purge"`
	// remove with them everything that was installed as a dependency and that nothing needs any more
	AutoRemove bool `yaml:"autoremove"`
	Alone      bool `yaml:"alone"` // fail when other packages need one of these
	Locking    `yaml:",inline"`

	names []string
}

// Bind reads the names.
func (a *Removed) Bind(apply.Binding) error {
	wants, err := pkgWants(a.Name, "", a.Pkgs)
	a.names = wantNames(wants)
	if err == nil && slices.ContainsFunc(wants, func(w pkgWant) bool { return w.version != "" }) {
		return apply.BadParam("pkgs", "pkg.removed takes no versions")
	}
	return err
}

// present are those of the packages that are there, and those of which only the configuration is.
func (a *Removed) present(ctx context.Context, p packager) (installed, config []string, err error) {
	set, err := p.read(ctx, a.names)
	for _, name := range a.names {
		switch have := set.find(name); {
		case have.installed:
			installed = append(installed, name)
		case have.config && a.Purge:
			config = append(config, name)
		}
	}
	return installed, config, err
}

// Check looks for the packages, and for what would go with them.
func (a *Removed) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Change{}, err
	}
	installed, config, err := a.present(ctx, p)
	if err != nil {
		return apply.Change{}, err
	}
	var says []string
	if len(installed) > 0 {
		word := "remove "
		if a.Purge {
			word = "purge "
		}
		says = append(says, word+strings.Join(installed, ", "))
		also, err := p.dependents(ctx, installed)
		if err != nil {
			return apply.Change{}, err
		}
		if len(also) > 0 && a.Alone {
			return apply.Change{}, fmt.Errorf(
				"%s is needed by %s",
				strings.Join(installed, ", "),
				strings.Join(also, ", "),
			)
		}
		if len(also) > 0 {
			says = append(says, "and what needs it: "+strings.Join(also, ", "))
		}
	}
	if len(config) > 0 {
		says = append(says, "purge the configuration of "+strings.Join(config, ", "))
	}
	return apply.Change{Summary: strings.Join(says, ", ")}, nil
}

// Apply removes them in one transaction.
func (a *Removed) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Output{}, err
	}
	installed, config, err := a.present(ctx, p)
	if err != nil {
		return apply.Output{}, err
	}
	err = errors.Join(p.repair(ctx), p.mark(ctx, markUnhold, a.held(ctx, p)))
	if err != nil {
		return apply.Output{}, err
	}
	if err = p.remove(ctx, append(installed, config...), a.Purge, a.AutoRemove); err == nil {
		return apply.Output{}, nil
	}
	if left, rest, bad := a.present(ctx, p); bad != nil || len(left)+len(rest) > 0 {
		return apply.Output{}, fmt.Errorf("remove %s: %w", strings.Join(left, ", "), err)
	}
	return apply.Output{}, nil // the complaint was about packages that were broken before
}

// held are those of the packages that apt-mark holds: the job says that they go.
func (a *Removed) held(ctx context.Context, p packager) []string {
	set, err := p.read(ctx, a.names)
	var out []string
	for _, name := range a.names {
		if err == nil && set.find(name).held && set.find(name).installed {
			out = append(out, name)
		}
	}
	return out
}
