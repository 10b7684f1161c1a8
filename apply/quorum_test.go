package apply_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/pullet/pullet/apply"
)

// members are gates at which the host waits for the other members of the datastore, or not.
type members struct {
	holds
	wait error
	did  []string
}

func (m *members) Quorum(_ context.Context, s apply.GatedStep) (func(bool), error) {
	if !s.Options.KeepQuorum && !s.Boots {
		return func(bool) {}, nil
	}
	m.did = append(m.did, "asks "+s.Name)
	if m.wait != nil {
		return nil, m.wait
	}
	return func(boots bool) { m.did = append(m.did, fmt.Sprint("ends ", s.Name, " ", boots)) }, nil
}

// TestKeepQuorum: a step that may take the host's member of the datastore away waits for the others before it begins,
// and says when it ended, and that the host boots behind it. Without etcd it waits.
func TestKeepQuorum(t *testing.T) {
	t.Parallel()
	keeps := one(cmds("a"), cmds("b", "runOptions: {keepQuorum: true}"), cmds("c"))
	boot := one("{name: boot, action: t.boot}")
	away := &apply.PendingError{Reason: "waiting for the members"}
	for _, c := range []struct {
		what string
		js   jobs
		wait error
		etcd bool
		want string
		did  []string
		ran  []string
	}{
		{"all are there", keeps, nil, true, "a changed, b changed, c changed", []string{"asks b", "ends b false"}, []string{"a", "b", "c"}},
		{"one is away", keeps, away, true, "a changed, b pending, c pending", []string{"asks b"}, []string{"a"}},
		{"etcd is away", keeps, nil, false, "a changed, b pending, c pending", nil, []string{"a"}},
		{"it boots", boot, nil, true, "boot pending", []string{"asks boot", "ends boot true"}, []string{"boot"}},
		{"it would boot", boot, away, true, "boot pending", []string{"asks boot"}, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.more = []apply.Spec{{Name: "t.boot", New: func() apply.Action { return &boots{lab: l} }}}
			m := &members{holds: holds{ask: func(context.Context) error { return nil }}, wait: c.wait}
			o := l.options()
			o.Turn, o.Host.Boot = true, "a"
			if o.Gates = m; !c.etcd {
				o.Gates = nil
			}
			r, err := l.program(c.js).Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			l.want(r, c.want)
			if !slices.Equal(m.did, c.did) {
				t.Errorf("it did %q, not %q", m.did, c.did)
			}
			l.wantRan(c.ran...)
		})
	}
}
