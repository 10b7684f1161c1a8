package pkg

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/internal/safetext"
)

// Uptodate is all packages in the newest version that the host's repositories have. Held packages stay. The plan lists
// what would be upgraded; when the package lists are older than maxAge, or than the repositories, it is not known: the
// step then refreshes them, and has changed nothing if there is nothing newer.
//
// New packages are installed where an upgrade needs them; nothing is removed unless full is set. Data is a map of names
// to versions of what was upgraded. Whether there is something to upgrade is also asked by the macro of the same name:
// macros['pkg.uptodate']().
//
// Example:
//
//	steps:
//	  - name: all upgrades but the kernel's
//	    action: pkg.uptodate
//	    parameters: {exclude: ['linux-*'], maxAge: 1d}
//	    conditions: {when: {condition: "macros['pkg.uptodate']() != true"}}
type Uptodate struct {
	// also upgrades for which other packages are removed (apt-get dist-upgrade, dnf --allowerasing)
	Full bool `yaml:"full"`
	// packages that stay as they are, names or globs; what needs them in a newer version stays, too
	Exclude     []string `yaml:"exclude"`
	Refreshing  `yaml:",inline"`
	Configuring `yaml:",inline"`
	Locking     `yaml:",inline"`
}

// Bind checks the parameters.
func (a *Uptodate) Bind(apply.Binding) error {
	for _, pattern := range a.Exclude {
		if _, err := path.Match(pattern, ""); err != nil || strings.ContainsAny(pattern, " ,=:") || pattern == "" {
			return apply.BadParam("exclude", "%q is neither a package's name nor a glob such as linux-*", pattern)
		}
	}
	return a.check()
}

func (a *Uptodate) what() pkgUpgrade { return pkgUpgrade{a.Full, a.Exclude, a.ConfFiles} }

// Check lists the upgrades, or says that the lists are too old to tell.
func (a *Uptodate) Check(ctx context.Context, h *apply.Host) (apply.Change, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Change{}, err
	}
	old, err := stale(h, p, a.MaxAge.Std())
	if err != nil || old {
		return apply.Change{Summary: refreshLists, Outside: true}, err
	}
	news, err := p.upgrades(ctx, a.what())
	if err != nil || len(news) == 0 {
		return apply.Change{}, err
	}
	return apply.Change{Summary: upgradeSummary(news), Diff: upgradeDiff(news), Outside: true}, nil
}

// maxNamed is how many packages a summary names.
const maxNamed = 5

func upgradeSummary(news []packageChange) string {
	var names []string
	for _, n := range news {
		names = append(names, n.String())
	}
	return "upgrade " + safetext.Some(names, maxNamed)
}

// String returns the package with its old and its new version.
func (c packageChange) String() string {
	switch {
	case c.old == "":
		return c.name + " " + c.new
	case c.new == "":
		return c.name + " (removed)"
	}
	return c.name + " " + c.old + " -> " + c.new
}

// upgradeDiff shows the versions as a change of a list of packages.
func upgradeDiff(news []packageChange) string {
	news = slices.Clone(news)
	slices.SortFunc(news, func(a, b packageChange) int { return strings.Compare(a.name, b.name) })
	var old, new strings.Builder
	for _, n := range news {
		if n.old != "" {
			fmt.Fprintf(&old, "%s %s\n", n.name, n.old)
		}
		if n.new != "" {
			fmt.Fprintf(&new, "%s %s\n", n.name, n.new)
		}
	}
	return place.Diff("packages", []byte(old.String()), []byte(new.String()))
}

// Apply refreshes old lists and upgrades. When a list could not be fetched it does what the others allow, and fails.
func (a *Uptodate) Apply(ctx context.Context, h *apply.Host, c apply.Change) (apply.Output, error) {
	p, err := a.packager(h)
	if err != nil {
		return apply.Output{}, err
	}
	var old error
	if c.Summary == refreshLists {
		if old = refreshOnce(ctx, h, p); ctx.Err() != nil {
			return apply.Output{}, old
		}
	}
	if err := p.repair(ctx); err != nil {
		return apply.Output{}, err
	}
	news, err := p.upgrades(ctx, a.what())
	if err != nil || len(news) == 0 {
		return apply.Output{Same: true}, allErrors(err, old)
	}
	if err := p.upgrade(ctx, a.what()); err != nil {
		if left, bad := p.upgrades(ctx, a.what()); bad != nil || len(left) > 0 {
			return apply.Output{}, allErrors(err, old)
		} // else the complaint was about packages that were broken before
	}
	versions := map[string]any{}
	for _, n := range news {
		versions[n.name] = n.new
	}
	out := apply.Output{Data: versions}
	if c.Summary == refreshLists {
		out.Did = upgradeSummary(news)
	}
	return out, old
}

// Reads is never an error: Read does not upgrade.
func (a *Uptodate) Reads() error { return nil }

// Read is true where the host's package lists, as they are, have no upgrade. It refreshes nothing.
func (a *Uptodate) Read(ctx context.Context, h *apply.Host) (string, error) {
	p, err := a.packager(h)
	if err != nil {
		return "", err
	}
	news, err := p.upgrades(ctx, a.what())
	return strconv.FormatBool(len(news) == 0), err
}
