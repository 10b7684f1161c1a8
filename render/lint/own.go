package lint

import (
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// ownUnits are the units in which pullet runs; see scripts/systemd.
var ownUnits = []string{"pullet-agent", "pullet"}

// stopsOwn is a shell's command that stops one of them.
var stopsOwn = lazyregexp.New(
	`\b(?:systemctl|service)\b[^;&|\n]*?\b(?:(?:stop|restart|try-restart|reload-or-restart|condrestart)\b[^;&|\n]*?\s(pullet(?:-agent)?)(?:\.service)?(?:\s|;|&|\||$)` +
		`|\s(pullet(?:-agent)?)\s+(?:stop|restart)\b)`,
)

// ofItself says what becomes of steps that stop pullet, which runs them.
func ofItself(c *render.Catalog) render.ErrorList {
	var out render.ErrorList
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			switch {
			case s.Broken():
			case s.Action == "service.ensure":
				out = append(out, ownService(s)...)
			case s.Action == "cmd.run":
				out = append(out, ownCommand(s)...)
			}
		}
	}
	return out
}

// ownService is about a step for one of pullet's own units.
func ownService(s *render.Step) render.ErrorList {
	unit := strings.TrimSuffix(s.Params.Text("name"), ".service")
	if !slices.Contains(ownUnits, unit) {
		return nil
	}
	states := s.Params.Texts("state")
	watches := slices.ContainsFunc(s.Requisites, func(r render.Requisite) bool {
		return strings.HasPrefix(r.Kind, "watch") || r.Kind == "listen"
	})
	reload := s.Params.Text("reload") == "true" || slices.Contains(states, "reloaded")
	at := s.Params.Position("name", s.Pos)
	switch {
	case slices.Contains(states, "stopped"):
		e := s.ErrorAt(at, "%s.service is stopped when the run has ended, and does not pull again", unit)
		e.Severity, e.Hint = render.Warning, "another unit has to pull on the host, such as pullet.timer"
		return render.ErrorList{e}
	case unit == "pullet-agent" && !reload && (watches || slices.Contains(states, "restarted")):
		e := s.ErrorAt(at, "%s.service, in which this step runs, restarts once, when the run has ended", unit)
		e.Severity, e.Hint = render.Note, "the steps behind this one run first"
		return render.ErrorList{e}
	}
	return nil
}

// ownCommand is about a command that stops the pull which runs it.
func ownCommand(s *render.Step) render.ErrorList {
	m := stopsOwn.FindStringSubmatch(strings.Join(s.Params.Texts("cmd"), " "))
	if m == nil {
		return nil
	}
	e := s.ErrorAt(s.Params.Position("cmd", s.Pos),
		"the command stops %s.service, which runs it: what stands behind it in the command does not run", m[1]+m[2])
	e.Severity = render.Warning
	e.Hint = "use service.ensure with watch, or with state: restarted: it leaves the restart for the end of the run"
	return render.ErrorList{e}
}
