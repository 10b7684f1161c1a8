package pkg

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pullet/pullet/apply"
)

// pkgPlan is what is to be done for packages that are to be installed.
type pkgPlan struct {
	says                   []string // in words
	install                []pkgWant
	downgrade              bool
	hold, unhold, markThis []string
	there                  int    // how many of the packages are installed already
	state                  string // the installed version, of a single package
	newer                  int    // how many are in says because the repositories have a newer version
}

// change is the plan as a check returns it. New: none of the packages was there, so who no longer wants them may remove
// them.
func (p pkgPlan) change() apply.Change {
	outside := len(p.says) > 0 && len(p.says) == p.newer
	return apply.Change{Summary: strings.Join(p.says, ", "), State: p.state, Outside: outside}
}

// pkgPlanner compares packages with what is wanted of them.
type pkgPlanner struct {
	rules          pkgRules
	set            pkgSet
	allowDowngrade bool
	hold           *bool             // nil leaves it
	comes          map[string]string // the versions that would be installed, as far as they are known
}

// plan compares all of them.
func (c pkgPlanner) plan(wants []pkgWant) (pkgPlan, error) {
	var p pkgPlan
	if c.hold != nil && *c.hold && c.rules.noHold != "" {
		return p, fmt.Errorf("hold: %s", c.rules.noHold)
	}
	for _, w := range wants {
		have := c.set.find(w.name)
		if have.installed {
			p.there++
		}
		if len(wants) == 1 {
			p.state = have.version
		}
		if err := c.one(&p, w, have); err != nil {
			return p, err
		}
	}
	return p, nil
}

// one adds what is to be done for one package.
func (c pkgPlanner) one(p *pkgPlan, w pkgWant, have pkgState) error {
	if !have.installed && (c.hold == nil || !*c.hold) {
		fits := func(version string) bool { return w.version == "" || version != "" && c.fits(version, w.version) }
		if _, ok := c.set.providing(w.name, fits); ok {
			return nil
		}
	}
	switch {
	case !have.installed:
		p.add(w, "install "+strings.TrimSpace(w.name+" "+cmp.Or(w.version, c.comes[w.name])))
	case have.broken != "":
		p.add(w, fmt.Sprintf("finish installing %s (%s)", w.name, have.broken))
	case !c.fits(have.version, w.version):
		lower := c.lower(have.version, w.version)
		if lower && !c.allowDowngrade {
			return fmt.Errorf(
				"%s is %s, and %s is lower: add allowDowngrade: true if that is meant",
				w.name,
				have.version,
				w.version,
			)
		}
		p.downgrade = p.downgrade || lower
		p.add(w, fmt.Sprintf("%s %s -> %s", w.name, have.version, w.version))
	}
	return c.marks(p, w, have)
}

func (p *pkgPlan) add(w pkgWant, says string) {
	p.install, p.says = append(p.install, w), append(p.says, says)
}

// marks adds what is to be remembered of the package.
func (c pkgPlanner) marks(p *pkgPlan, w pkgWant, have pkgState) error {
	moves := len(p.install) > 0 && p.install[len(p.install)-1].name == w.name && have.installed
	if have.held && moves && c.hold == nil {
		return fmt.Errorf(
			"%s is held at %s: add hold: true to the step, which then may change it, or hold: false",
			w.name,
			have.version,
		)
	}
	if have.auto {
		p.markThis = append(p.markThis, w.name)
		if !moves {
			p.says = append(p.says, "mark "+w.name+" as asked for")
		}
	}
	if c.hold == nil {
		return nil
	}
	if have.held && (moves || !*c.hold) {
		p.unhold = append(p.unhold, w.name)
	}
	switch {
	case *c.hold && (!have.held || moves):
		p.hold = append(p.hold, w.name)
		if !have.held {
			p.says = append(p.says, "hold "+w.name)
		}
	case !*c.hold && have.held:
		p.says = append(p.says, "unhold "+w.name)
	}
	return nil
}

// fits reports that an installed version is the wanted one.
func (c pkgPlanner) fits(have, want string) bool {
	begin, prefix := strings.CutSuffix(want, "*")
	if want == "" || !prefix {
		return want == "" || c.rules.same(have, want)
	}
	_, plain, found := strings.Cut(have, ":")
	return strings.HasPrefix(have, begin) || found && strings.HasPrefix(plain, begin)
}

// lower reports that a wanted version, which the installed one is not, is lower than it.
func (c pkgPlanner) lower(have, want string) bool {
	return c.rules.compare(have, strings.TrimRight(strings.TrimSuffix(want, "*"), ".-+~")) > 0
}
