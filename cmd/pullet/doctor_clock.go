package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pullet/pullet/internal/safetext"
	"github.com/pullet/pullet/state"
)

// setClock is what helps against a clock that is wrong.
const setClock = "set it: chronyc makestep, or timedatectl set-ntp true"

// clocks compares this node's clock with what others wrote, and asks the kernel.
func clocks(ctx context.Context, store *state.Store, self string) []finding {
	o, err := store.Views.Fleet(ctx, false)
	if err != nil {
		return []finding{{"clock", bad, store.Explain(err).Error(), ""}}
	}
	if off := time.Until(o.Nodes[self].LastSeen); inFuture(o.Nodes[self].LastSeen) {
		return []finding{
			{
				"clock",
				bad,
				fmt.Sprintf("this clock went back: the node was seen %s from now", off.Round(time.Second)),
				setClock,
			},
		}
	}
	ahead, behind, others, err := offClocks(ctx, store, o, self)
	if err != nil {
		return []finding{{"clock", bad, store.Explain(err).Error(), ""}}
	}
	var found []finding
	if len(ahead) > 0 {
		do := "their clocks are ahead: set them there; compare with date -u"
		if 2*len(ahead) > others {
			do = "this clock is behind, or theirs are ahead: compare them with date -u; when it is this one, " + setClock
		}
		found = append(found, finding{"clock", bad, "nodes were seen in the future: " + safetext.Some(ahead, 5), do})
	}
	if len(behind) > 0 {
		do := "their clocks are behind: set them there; compare with date -u"
		if 2*len(behind) > others {
			do = "this clock is ahead, or theirs are behind: compare them with date -u; when it is this one, " + setClock
		}
		found = append(
			found,
			finding{"clock", bad, "nodes answer and were seen last in the past: " + safetext.Some(behind, 5), do},
		)
	}
	if found == nil {
		found = []finding{kernelClock()}
	}
	return found
}

// The bounds of what is taken for a clock that is behind: no pull is so long ago by itself where a node answers, and so
// many are looked at.
const (
	longAgo  = 12 * time.Hour
	mostSeen = 50
)

// offClocks are the nodes whose clocks are ahead of this one, and those that are far behind, and how many other nodes
// answer. That a node which answers was seen last so long ago, its lease must bear out, whose time etcd counts.
func offClocks(
	ctx context.Context,
	store *state.Store,
	o *state.Overview,
	self string,
) (ahead, behind []string, others int, err error) {
	looked := 0
	for _, name := range slices.Sorted(maps.Keys(o.Nodes)) {
		seen := o.Nodes[name].LastSeen
		if o.Alive[name] && name != self {
			others++
		}
		switch {
		case name == self:
		case inFuture(seen):
			ahead = append(ahead, fmt.Sprintf("%s (%s)", name, time.Until(seen).Round(time.Second)))
		case o.Alive[name] && time.Since(seen) > longAgo && looked < mostSeen:
			looked++
			age, err := store.Presences.LeaseAge(ctx, name)
			if err != nil {
				return nil, nil, 0, err
			}
			if off := time.Since(seen) - age; off > longAgo {
				behind = append(behind, fmt.Sprintf("%s (about %dh)", name, int(off.Round(time.Hour).Hours())))
			}
		}
	}
	return ahead, behind, others, nil
}

// expired is what to do about a certificate that does not hold at this time; "" where that is not what is wrong.
func expired(err error) string {
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		return ""
	}
	return fmt.Sprintf(
		"it is %s by this clock: where that is wrong, %s; else have the certificate renewed",
		time.Now().UTC().Format(time.RFC3339),
		setClock,
	)
}

// kernelClock asks the kernel whether somebody keeps its clock.
func kernelClock() finding {
	now := time.Now().UTC().Format(time.RFC3339)
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return finding{"clock", warn, now + "; the kernel does not say whether it is synchronised: " + err.Error(), ""}
	}
	if t.Status&unix.STA_UNSYNC != 0 {
		return finding{"clock", warn, now + "; nothing synchronises it", "run chronyd or systemd-timesyncd"}
	}
	return finding{Check: "clock", State: fine, What: now + ", synchronised"}
}
