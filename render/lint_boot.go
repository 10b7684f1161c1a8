package render

import (
	"regexp"

	"go.yaml.in/yaml/v4"
)

// bootCommand finds a command that makes the host boot, where a shell begins one.
var bootCommand = regexp.MustCompile(`(?m)(?:^|[;&|(]|\bsudo\b|\bexec\b|\bthen\b)\s*((?:/usr)?(?:/s?bin/)?(?:reboot|(?:systemctl|loginctl)(?:\s+-\S+)*\s+(?:reboot|kexec)|` +
	`shutdown(?:\s+-\S+)*\s+(?:-r|--reboot)\b|(?:tel)?init\s+6))(?:\s|$|[;&|)])`)

// boots warns of commands that make the host boot: the run ends behind them, but does not wait for the host's turn.
func (c *Catalog) boots() ErrorList {
	var out ErrorList
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			for _, name := range []string{"cmd", "script"} {
				value := s.Params.lookup(name)
				if value == nil || s.broken || resolve(value).Kind != yaml.ScalarNode {
					continue
				}
				if m := bootCommand.FindStringSubmatch(resolve(value).Value); m != nil {
					e := s.ErrorAt(s.Params.doc.pos(value), "%s: %s makes the host boot, and does not wait for the host's turn", name, m[1])
					e.Severity, e.Hint = Warning, "the action system.reboot does; with onlyif it boots only where a boot is needed"
					out = append(out, e)
				}
			}
		}
	}
	return out
}
