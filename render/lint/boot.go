package lint

import (
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// bootCommand finds a command that makes the host boot, where a shell begins one.
var bootCommand = lazyregexp.New(
	`(?m)(?:^|[;&|(]|\bsudo\b|\bexec\b|\bthen\b)\s*((?:/usr)?(?:/s?bin/)?(?:reboot|(?:systemctl|loginctl)(?:\s+-\S+)*\s+(?:reboot|kexec)|` +
		`shutdown(?:\s+-\S+)*\s+(?:-r|--reboot)\b|(?:tel)?init\s+6))(?:\s|$|[;&|)])`,
)

// boots warns of commands that make the host boot: the run ends behind them, but does not wait for the host's turn.
func boots(c *render.Catalog) render.ErrorList {
	var out render.ErrorList
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			for _, name := range []string{"cmd", "script"} {
				if s.Broken() {
					continue
				}
				if m := bootCommand.FindStringSubmatch(s.Params.Text(name)); m != nil {
					at := s.Params.Position(name, s.Pos)
					e := s.ErrorAt(at, "%s: %s makes the host boot, and does not wait for the host's turn", name, m[1])
					e.Severity = render.Warning
					e.Hint = "the action system.reboot does; with onlyif it boots only where a boot is needed"
					out = append(out, e)
				}
			}
		}
	}
	return out
}
