package state

import (
	"strings"
	"testing"
	"time"
)

// TestRecordLimits: what a record may hold at most is read, one more is refused, and so is a text that a terminal would
// obey.
func TestRecordLimits(t *testing.T) {
	commit := func(c Commit) func() error {
		c.Repo, c.Commit = "main", strings.Repeat("a", 40)
		return func() error {
			var all checks
			all.commit(c)
			return all.err
		}
	}
	args := func(args ...string) func() error {
		return func() error { return (&Command{ID: "c1", Args: args}).check(Key{Word: "c1"}) }
	}
	member := func(m Member) func() error {
		return func() error { return (&Claim{Node: "n1", Version: "v1", Rollout: "v1", Member: &m}).check(Key{}) }
	}
	many := func(n int) []string { return strings.Split(strings.Repeat("x ", n-1)+"x", " ") }
	for name, c := range map[string]struct {
		check func() error
		want  string
	}{
		"a tag":                 {commit(Commit{Tag: strings.Repeat("v", maxText)}), ""},
		"a long tag":            {commit(Commit{Tag: strings.Repeat("v", maxText+1)}), "the tag \"vvv"},
		"a tag of two lines":    {commit(Commit{Tag: "v1\nv2"}), `the tag "v1\nv2" is not one line`},
		"a commit left":         {commit(Commit{Left: "a b"}), `"a b" is no version`},
		"arguments":             {args(many(maxList)...), ""},
		"too many arguments":    {args(many(maxList + 1)...), "it has 1001 arguments, of 1000 at most"},
		"a zero byte":           {args("a\x00b"), "an argument has a zero byte"},
		"another command's":     {func() error { return (&Command{ID: "c1"}).check(Key{Word: "c2"}) }, "it is about another command than its key"},
		"stages without limits": {func() error { return (&Command{Stages: [][]string{{"n1"}}, Limits: []int{1, 1}}).check(Key{}) }, "it has 2 limits for 1 stages"},
		"a member":              {member(Member{Role: "web", Labels: map[string]string{"role": "web"}}), ""},
		"a member's role":       {member(Member{Role: "we\nb"}), `role: "we\nb" is no word`},
		"a member's label":      {member(Member{Labels: map[string]string{"a b": ""}}), `label "a b": a key is one word`},
		"a negative timeout":    {func() error { return (&Command{Timeout: -time.Second}).check(Key{}) }, "the timeout -1s is absurd"},
	} {
		got := ""
		if err := c.check(); err != nil {
			got = err.Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
