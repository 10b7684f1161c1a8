package systemd

import "github.com/pullet/pullet/apply/claim"

// Claims returns whether the unit runs, starts with the host, and can be started at all.
func (a *Ensure) Claims() []claim.Claim {
	unit, run, enabled, masked := a.unit, a.run, a.Enabled, a.Masked
	if unit == "" { // it waits for other steps and was not bound
		copied := *a
		if copied.unit, _ = unitName(a.Name); copied.unit == "" {
			return nil
		}
		for _, word := range a.State {
			_ = copied.want(word) // Bind refuses a bad one
		}
		unit, run, enabled, masked = copied.unit, copied.run, copied.Enabled, copied.Masked
	}
	of := claim.Of("unit", unit)
	var out []claim.Claim
	starts := run != "" && run != "stopped"
	switch {
	case starts:
		out = append(out, of.Is("state", "started"))
	case run != "":
		out = append(out, of.Is("state", "stopped"))
	}
	if enabled != nil {
		out = append(out, of.Is("start with the host", word(*enabled, "enabled", "disabled")))
	}
	switch {
	case masked != nil:
		out = append(out, of.Is("mask", word(*masked, "masked", "unmasked")))
	case starts || enabled != nil && *enabled: // neither goes with a mask
		out = append(out, of.Is("mask", "unmasked"))
	}
	return out
}

// word returns one of two words.
func word(yes bool, one, other string) string {
	if yes {
		return one
	}
	return other
}
