package trust

import (
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	rules, err := ReadRules(File{Name: "signers", Content: []byte(
		"# comment\n\n**: alice\njobs/db/** : dba, alice@example.org\njobs/db/*.md: bob\nfi?es/[x] : carol\n",
	)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ who, path, err string }{
		{"alice", "README.md", ""},
		{"bob", "README.md", `changes "README.md", which is for alice (signers:3), and is signed by bob (key K)`},
		{"dba", "jobs/db/a.yaml", ""},
		{"dba", "jobs/db/deep/a.md", ""},
		{"alice@example.org", "jobs/db/a.yaml", ""},
		{"alice", "jobs/db/a.yaml", `is for dba, alice@example.org (signers:4)`},
		{"bob", "jobs/db/a.md", ""},
		{"dba", "jobs/db/a.md", "is for bob"},
		{"carol", "files/[x]", ""},
		{"carol", "files/x", "is for alice"},
		{"carol", "jobs/db\nevil", "is for alice"},
		{"alice", "a\xffb/c", ""},
	} {
		err := rules.Allow(Signer{Key: "K", Names: []string{c.who}}, c.path)
		switch {
		case c.err == "" && err != nil:
			t.Errorf("%s may not change %q: %v", c.who, c.path, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s, %q: %v, not %q", c.who, c.path, err, c.err)
		}
	}
	var none *Rules
	if err := none.Allow(Signer{}, "a"); err != nil {
		t.Errorf("no rules: %v", err)
	}
}

func TestRulesMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"jobs/db/**":                          `signers:1: invalid rule "jobs/db/**": write PATTERN : NAME, NAME`,
		"\n: dba":                             `signers:2: invalid rule ": dba"`,
		"/jobs : dba":                         `signers:1: pattern "/jobs": paths begin at the top of the repository, without a slash`,
		"jobs : dba,, x":                      `signers:1: rule for "jobs": a name is missing`,
		"jobs :":                              `a name is missing`,
		strings.Repeat("a : b\n", maxRules+1): "signers:1001: more than 1000 rules",
	} {
		if _, err := ReadRules(File{Name: "signers", Content: []byte(text)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, not %q", text, err, want)
		}
	}
}

func FuzzRules(f *testing.F) {
	f.Add("a/** : b, c\n*.md: d", "a/x.md")
	f.Fuzz(func(t *testing.T, text, path string) {
		rules, err := ReadRules(File{Content: []byte(text)})
		if err != nil {
			return
		}
		if err := rules.Allow(Signer{Names: []string{"nobody\x00"}}, path); err == nil && !rules.Empty() {
			for _, r := range rules.rules {
				if r.pattern.MatchString(path) {
					t.Errorf("%q: a stranger may change %q", text, path)
				}
			}
		}
	})
}
