package render

import (
	"slices"
	"testing"
)

// TestReadsServers: which nodes an expression reads.
func TestReadsServers(t *testing.T) {
	for text, want := range map[string][]string{
		"servervars['d1'].name == 'd1'":                      {"d1"},
		`servervars[ "d1" ].name`:                            {"d1"},
		"servervars.d1.name":                                 {"d1"},
		"servervars[vars.name]":                              {""},
		"len(servervars) > 1":                                {""},
		"pullet.servers('role=db')[0]":                       {"role=db"},
		"eden.Servers(vars.target)":                          {""},
		"macros['servers_get_by_label']('role=db')[0]":       {"role=db"},
		"macro('servers_get_by_label', 'role=db') | first":   {"role=db"},
		"macros.servers_get_by_label(vars.x)":                {""},
		"services('db')[0].address == servervars['d1'].fqdn": {"d1"},
		"vars.servers[0]":                                    nil,
		"server.fqdn":                                        nil,
	} {
		if got := readsServers(text); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", text, got, want)
		}
	}
}

// TestUnseen: the first node of the inventory that is meant and did not come.
func TestUnseen(t *testing.T) {
	inventory := Inventory{
		"c1": {Name: "c1", Labels: map[string]string{"role": "cache"}},
		"d1": {Name: "d1", Labels: map[string]string{"role": "db"}},
		"d2": {Name: "d2", Labels: map[string]string{"role": "db"}},
	}
	view := View{Nodes: map[string]Node{"d1": {Name: "d1"}}}
	for target, want := range map[string]string{
		"": "c1", "role=db": "d2", "d1": "", "d2": "d2", "d3": "", "role=web": "", "a b": "",
	} {
		if got := inventory.Unseen(view, []string{target}); got != want {
			t.Errorf("%q: %q, not %q", target, got, want)
		}
	}
	if got := inventory.Unseen(view, nil); got != "" {
		t.Errorf("no target: %q", got)
	}
}
