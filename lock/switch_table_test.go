package lock

import (
	"os"
	"strings"
	"testing"

	"github.com/pullet/pullet/state"
)

// TestSwitchTable: the table of docs/rollouts.md is what holds: for each row, whether a node may begin an upgrade, and
// whether all its changes are stopped.
func TestSwitchTable(t *testing.T) {
	f := newFleet(t)
	q := f.request("me", "web")
	scopes := []state.Scope{state.GlobalScope(), state.RoleScope("web"), state.HostScope("me")}
	words := map[string]*state.Switch{"-": nil, "disabled": {}, "enabled": {Enabled: true}, "disabled for all changes": {AllChanges: true}}
	for _, row := range switchTable(t) {
		for i, c := range scopes {
			w, known := words[row[i]]
			if !known {
				t.Fatalf("%q: there is no such word", row[i])
			}
			f.must(f.replaceSwitch(c, w))
		}
		word, err := f.Switches.Orders(f.ctx, q.Presence, "web", nil, nil)
		f.must(err)
		turn, wait := f.try(q)
		if wait == nil {
			f.must(turn.Release(f.ctx))
		} else {
			f.must(turn.Leave(f.ctx))
		}
		upgrades, drift := "no", "corrected"
		if word.Freeze != nil {
			drift = "left alone"
		} else if wait == nil {
			upgrades = "yes"
		}
		if upgrades != row[3] || drift != row[4] {
			t.Errorf("%v: upgrades %s, drift %s (%v)", row, upgrades, drift, wait)
		}
	}
}

// switchTable is the table of the page, without its head.
func switchTable(t *testing.T) (rows [][]string) {
	page, err := os.ReadFile("../docs/rollouts.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| global | role | host | upgrades | drift |\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/rollouts.md lacks the table of switches")
	}
	for line := range strings.Lines(table) {
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		if len(row) == 5 && row[0] != "---" {
			rows = append(rows, row)
		}
	}
	if len(rows) < 11 {
		t.Fatalf("only %d rows were found", len(rows))
	}
	return rows
}

// replaceSwitch sets a scope's switch as the commands do; nil removes it.
func (f *fleet) replaceSwitch(c state.Scope, w *state.Switch) error {
	all, err := f.Switches.List(f.ctx)
	if err != nil {
		return err
	}
	var was *state.Switch
	if have, there := all[c.String()]; there {
		was = &have
	}
	return f.Switches.Set(f.ctx, c, w, was, 0)
}
