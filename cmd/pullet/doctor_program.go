package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pullet/pullet/agent"
	"github.com/pullet/pullet/program"
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
		return []finding{{"program", warn, refused.Why, "push a commit with another one, or: pullet pull --retry"}}
	}
	_, err = os.Stat(filepath.Join(root, "run/systemd/system")) // sd_booted(3)
	if err == nil && len(wantedUnits(root, fallbackPath)) == 0 {
		why := "nothing puts the old pullet back when a new one makes no pull: " + fallbackPath + " is not enabled"
		return []finding{{"program", warn, why, "systemctl enable --now " + fallbackPath}}
	}
	if err := installed.Lacks(); err != nil {
		why := "nothing puts the old pullet back when a new one makes no pull: " + err.Error()
		return []finding{{"program", warn, why, "docs/node.md, When pullet is replaced"}}
	}
	what := fmt.Sprintf("%s, pullet %s, makes the pulls", proven.Path, proven.Version)
	return []finding{{Check: "program", State: fine, What: what}}
}
