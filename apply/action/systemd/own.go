package systemd

import (
	"context"
	"os"
	"slices"
	"strings"
)

// own reports the unit in which this process runs.
func (u unit) own() bool {
	id := os.Getenv("INVOCATION_ID") // which systemd gives to all processes of a unit
	return id != "" && strings.EqualFold(id, u.invocation)
}

// endsPullet reports that what is to be done with the unit would end the process that does it: it is pullet's own unit,
// one that conflicts with that, or one that takes it along.
func (s *serving) endsPullet(ctx context.Context, verb string) (bool, error) {
	if verb == "reload" || os.Getenv("INVOCATION_ID") == "" {
		return false, nil
	}
	if s.u.own() {
		return true, nil
	}
	others := s.u.stopsWith
	if verb != "stop" {
		others = slices.Concat(others, s.u.excludes)
	}
	for _, name := range others {
		if !strings.HasSuffix(name, ".service") {
			continue
		}
		other, err := readUnit(ctx, s.units, name)
		if err != nil {
			return false, s.want.failed(ctx, "look at", err)
		}
		if other.own() {
			return true, nil
		}
	}
	return false, nil
}

// leave leaves what would end this process for the end of the run. It is handed to systemd, which does it whatever
// becomes of the process.
func (s *serving) leave(verb string) {
	if s.u.own() && s.u.kind == "oneshot" { // it ends by itself, and its next start is the new one
		return
	}
	s.later = true
	h, name, own := s.h, s.u.name, s.u.own()
	h.Later(verb+" of "+name, func(ctx context.Context) error {
		ctl := systemctl{h}
		if own && stopping(ctx, ctl, name) {
			return nil
		}
		_, err := ctl.must(ctx, "--no-block", verb, "--", name)
		return err
	})
}

// stopping reports that a unit is being stopped by somebody, whose job a restart would replace. Its next start is the
// new one in any case.
func stopping(ctx context.Context, m units, name string) bool {
	u, err := readUnit(ctx, m, name)
	return err == nil && u.active == "deactivating"
}
