package render

import (
	"slices"
	"strings"
	"testing"
)

// TestAllowRun: each form of agent.allowRun, and whom it allows.
func TestAllowRun(t *testing.T) {
	for text, c := range map[string]struct {
		allows   string // of "" and these, who is nobody's name
		verifies bool
		says     string
	}{
		"true":               {"nobody alice bob operators", false, "everybody who may write the fleet's record"},
		"yes":                {"nobody alice bob operators", false, "everybody who may write the fleet's record"},
		"false":              {"", false, "nobody"},
		"":                   {"", false, "nobody"},
		"[]":                 {"", false, "nobody"},
		"[operators]":        {"alice bob operators", true, "every operator of the fleet"},
		"[alice]":            {"alice", true, "the operator alice"},
		"[alice, bob]":       {"alice bob", true, "the operators alice, bob"},
		"\n- bob\n- 'true'":  {"bob", true, "the operators bob, true"},
		"[alice, operators]": {"alice bob operators", true, "every operator of the fleet"},
	} {
		var got struct {
			AllowRun AllowRun `yaml:"allowRun"`
		}
		if err := DecodeFile("pullet.yaml", []byte("allowRun: "+text+"\n"), &got); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		a, allowed := got.AllowRun, []string(nil)
		for _, name := range []string{"nobody", "alice", "bob", "operators"} {
			if a.Allows(strings.TrimPrefix(name, "nobody")) {
				allowed = append(allowed, name)
			}
		}
		if !slices.Equal(allowed, strings.Fields(c.allows)) || a.Verifies() != c.verifies || a.String() != c.says {
			t.Errorf("%q allows %q, verifies: %v, says %s", text, allowed, a.Verifies(), a)
		}
	}
}

// TestAllowRunMistakes: what is neither, by its place.
func TestAllowRunMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"alice":        `pullet.yaml:1:11: allowRun: expected true, false or a list such as [operators] or [alice, bob], found "alice"`,
		"{alice: yes}": "found a map",
		"[true]":       `pullet.yaml:1:12: allowRun: expected operators, or the name of one as in its certificate, found "true"`,
		"[a b]":        `found "a b"`,
		"[[alice]]":    "found a list",
		"[~]":          "found nothing",
		"['']":         `found ""`,
	} {
		var got struct {
			AllowRun AllowRun `yaml:"allowRun"`
		}
		if err := DecodeFile("pullet.yaml", []byte("allowRun: "+text+"\n"), &got); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestAllowRunDropIn: a later file replaces what an earlier one said, in whichever form, and one that says nothing
// leaves it.
func TestAllowRunDropIn(t *testing.T) {
	var got struct {
		AllowRun AllowRun `yaml:"allowRun"`
	}
	for text, want := range map[string]string{"[alice] [bob]": "the operator bob", "true [bob]": "the operator bob",
		"[bob] false": "nobody", "[bob] ~": "the operator bob", "[bob] true": "everybody who may write the fleet's record"} {
		for one := range strings.FieldsSeq(text) {
			if err := DecodeFile("pullet.yaml", []byte("allowRun: "+one+"\n"), &got); err != nil {
				t.Error(err)
			}
		}
		if got.AllowRun.String() != want {
			t.Errorf("%s: %s", text, got.AllowRun)
		}
	}
}
