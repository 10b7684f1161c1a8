package main

import (
	"fmt"

	"github.com/pullet/pullet/internal/agent"
	"github.com/pullet/pullet/internal/program"
)

// ownProgramFound is what is known of pullet's own program on this host.
func ownProgramFound(root string, c agent.Config) []finding {
	installed := program.Kept(c.Paths.State)
	proven, err := installed.Proven()
	var refused *program.Refused
	if err == nil {
		refused, err = installed.Refused()
	}
	switch {
	case err != nil:
		return []finding{{"program", bad, err.Error(), ""}}
	case proven == nil: // nothing is watched below a root, and before the first pull
		return nil
	case refused != nil:
		do := "install another one, or push a commit that does; to try that one again: pullet pull --retry"
		return []finding{{"program", warn, refused.Why, do}}
	}
	if booted(root) && len(wantedUnits(root, fallbackPath)) == 0 {
		why := "nothing puts the old pullet back when a new one makes no pull: " + fallbackPath + " is not enabled"
		return []finding{{"program", warn, why, "systemctl enable --now " + fallbackPath}}
	}
	if err := installed.Lacks(); err != nil {
		why := "nothing puts the old pullet back when a new one makes no pull: " + err.Error()
		return []finding{{"program", warn, why, "docs/node.md, When pullet is replaced"}}
	}
	what := fmt.Sprintf("%s, pullet %s, makes the pulls", proven.Path, proven.Version)
	if waits, err := installed.Waiting(proven); err != nil {
		return []finding{{"program", bad, err.Error(), ""}}
	} else if waits {
		what = fmt.Sprintf("pullet %s makes the pulls; another program is at %s since, and has not made one", proven.Version,
			proven.Path)
		return []finding{{"program", warn, what, "it takes over after the next pull, or the old one is put back"}}
	}
	return []finding{{Check: "program", State: fine, What: what}}
}
