package agent

import (
	"maps"
	"testing"

	"github.com/pullet/pullet/puller"
	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/state"
)

// TestLabelsOfTheInventory: those that the inventory gave last win, also where they are none, and are told to the fleet
// only when they are others.
func TestLabelsOfTheInventory(t *testing.T) {
	t.Parallel()
	own, given := map[string]string{"role": "web"}, map[string]string{"role": "db"}
	for _, c := range []struct{ given, want map[string]string }{{nil, own}, {given, given}, {map[string]string{}, nil}} {
		p := &registration{self: &self{}, local: &local{Local: state.Local{Labels: c.given}}}
		p.config.Node.Node = render.Node{Name: "n1", Labels: own}
		if got := p.node(); got.Name != "n1" || !maps.Equal(got.Labels, c.want) {
			t.Errorf("given %v: %v", c.given, got.Labels)
		}
	}
	// There is no store here: whatever asked one would end the test.
	for name, p := range map[string]*registration{
		"etcd is away":    {self: &self{}, joined: &joined{}, local: &local{}},
		"they are so yet": {self: &self{}, local: &local{}, joined: &joined{presence: &state.Presence{Node: state.Node{Labels: given}}}},
	} {
		p.config.Paths.State = t.TempDir()
		if err := p.relabel(t.Context(), given); err != nil || p.local.Labels != nil {
			t.Errorf("%s: %v, remembers %v", name, err, p.local.Labels)
		}
	}
}

// TestNothingIsAccepted where nothing was refused.
func TestNothingIsAccepted(t *testing.T) {
	t.Parallel()
	p := &agreement{self: &self{}, by: "ada", rewind: true} // without repositories: whatever asked one would end the test
	own := []puller.Head{{Repo: "main", Commit: "c1"}, {Repo: "second", Commit: "c2"}}
	if got, err := p.accepted(t.Context(), nil, own); err != nil || len(got) != 2 || got[0] != own[0] || got[1] != own[1] {
		t.Errorf("%v %v", got, err)
	}
}
