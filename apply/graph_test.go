package apply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pullet/pullet/apply"
)

// TestWhyInOrder: each edge of the order with its reason, and the steps as they run one by one.
func TestWhyInOrder(t *testing.T) {
	const genius, justdoit = "runOptions: {ordering: genius}\n", "runOptions: {ordering: justdoit}\n"
	results := func(step string) string { return when("steps['" + step + "'].Changed") }
	use := func(name, from string) string { return "{name: " + name + ", action: t.put, use: [" + from + "]}" }
	fed := func(name, from string) string {
		return "{name: " + name + ", action: t.put, parameters: {name: '{{ (step \"" + from + "\").StdOut }}'}}"
	}
	for name, c := range map[string]struct {
		jobs  jobs
		steps string
		want  []string
	}{
		"the file": {one(puts("a"), puts("b"), puts("c")), "a/a a/b a/c", []string{"a/a a/b order of the file", "a/b a/c order of the file"}},
		"files are apart": {
			jobs{{"one", list(puts("a"))}, {"two", list(puts("b"))}}, "one/a two/b", nil,
		},
		"nothing":   {jobs{{"a", justdoit + list(puts("a"), puts("b"))}}, "a/a a/b", nil},
		"one apart": {jobs{{"a", list(puts("a"), puts("b", "runOptions: {ordering: justdoit}"), puts("c"))}}, "a/a a/b a/c", []string{"a/a a/c order of the file"}},
		"requisites": {
			jobs{{"a", justdoit + list(puts("a"), puts("b", "require: a"), puts("c", "onfail_any: [a]"), puts("d", "listen: a"), puts("e", "onchanges_any: [d]"))}},
			"a/a a/b a/c a/d a/e", []string{"a/a a/b require", "a/a a/c onfail", "a/d a/e onchanges"},
		},
		"prereq":   {jobs{{"a", justdoit + list(puts("a"), puts("b", "prereq: a"))}}, "a/b a/a", []string{"a/b a/a prereq"}},
		"a result": {jobs{{"a", justdoit + list(puts("a"), puts("b", results("a")))}}, "a/a a/b", []string{"a/a a/b reads its result"}},
		"a parameter of another that waits": {
			jobs{{"a", justdoit + list(cmds("a"), fed("b", "a"), use("c", "b"))}}, "a/a a/b a/c",
			[]string{"a/a a/b reads its result", "a/a a/c reads its result"},
		},
		"a parameter of another that waits for this": {
			jobs{{"a", justdoit + list(thing("t.cmd", "a", "use: [b]"), fed("b", "a"))}}, "a/a a/b", []string{"a/a a/b reads its result"},
		},
		"what it needs": {
			jobs{{"a", genius + list(needs("user", "x", "home"), needs("home", "", "x"))}}, "a/home a/user", []string{"a/home a/user implied: x"},
		},
		"what it needs, against a requisite": {
			jobs{{"a", genius + list(needs("user", "x", "home"), thing("t.need", "home", "require: [user]"))}}, "a/user a/home",
			[]string{"a/user a/home require"},
		},
		"what it needs, against a requisite of another": {
			jobs{{"a", genius + list(needs("u", "x", "h"), puts("m", "require: u"), strings.Replace(needs("h", "", "x"), "name: h", "require: m, name: h", 1))}},
			"a/u a/m a/h", []string{"a/u a/m require", "a/m a/h require"},
		},
		"what only it provides":      {jobs{{"a", genius + list(needs("a", "x", "x"))}}, "a/a", nil},
		"what a validation provides": {jobs{{"a", genius + list(needs("a", "x", ""))}, {"check", genius + list(needs("v", "", "x"))}}, "a/a check/v", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.more = []apply.Spec{{
				Name: "t.need", KeepsHost: true, Needs: apply.Named("", "needs"), Provides: apply.Named("", "gives"),
				New: func() apply.Action { return &needful{put: put{lab: l}} },
			}}
			steps, edges := l.program(c.jobs).Graph()
			var got []string
			for _, e := range edges {
				got = append(got, fmt.Sprint(e.Before, " ", e.After, " ", strings.Replace(e.Why, ":  ", ": ", 1)))
			}
			if strings.Join(steps, " ") != c.steps || !slices.Equal(got, c.want) {
				t.Errorf("got  %s %q\nwant %s %q", steps, got, c.steps, c.want)
			}
		})
	}
}

// needful is a value that needs things, and provides some.
type needful struct {
	put   `yaml:",inline"`
	Needs string `yaml:"needs"`
	Gives string `yaml:"gives"`
}

// needs is a step that needs a thing and provides another.
func needs(name, what, gives string) string {
	return fmt.Sprintf("{name: %s, action: t.need, parameters: {name: %s, needs: '%s', gives: '%s'}}", name, name, what, gives)
}

// TestPatternsMean: which steps a requisite with a pattern means, by what it comes after.
func TestPatternsMean(t *testing.T) {
	base := jobs{
		{"a", "runOptions: {ordering: justdoit}\n" + list(puts("web1"), puts("web2"), puts("db1"))},
		{"b", "runOptions: {ordering: justdoit}\n" + list(puts("web3"), "{name: file, action: u.put, parameters: {name: /etc/web9}}")},
	}
	for ref, want := range map[string]string{
		"'web*'":         "c/web4", // of its own job
		"'web?'":         "c/web4",
		"'a/web*'":       "a/web1 a/web2",
		"'[dx]b1'":       "a/db1",
		"{t: 'web*'}":    "a/web1 a/web2 b/web3 c/web4",
		"{step: 'web*'}": "c/web4",
		"{u: '/etc/*'}":  "b/file",
		"{u.put: '*'}":   "b/file",
		"'db*'":          "a/db1",
	} {
		js := append(slices.Clone(base), jobs{{"c", "runOptions: {ordering: justdoit}\n" + list(puts("web4"), puts("web", "require: ["+ref+"]"))}}...)
		_, edges := newLab(t).program(js).Graph()
		var got []string
		for _, e := range edges {
			if e.After != "c/web" || e.Why != "require" {
				t.Errorf("%s: %+v", ref, e)
			}
			got = append(got, e.Before)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s means %q, want %q", ref, got, want)
		}
	}
}

// TestAsManyAsTheyMean: patterns that mean too many steps are refused before they fill the memory, up to the bound they
// are not.
func TestAsManyAsTheyMean(t *testing.T) {
	bind := func(n int) error {
		text := fmt.Sprintf("runOptions: {ordering: justdoit}\nsteps:\n- {name: x, forEach: '1..%d', action: t.put, parameters: {name: x}}\n", n)
		text += fmt.Sprintf("- {name: y, forEach: '1..%d', action: t.put, parameters: {name: y}, listen: ['x*']}\n", n)
		_, err := newLab(t).bind(jobs{{"a", text}})
		return err
	}
	const want = "jobs/a.yaml:4:80: the requisites of this host mean too many steps: more than 1000000 in all, or patterns that are held against more than 10000000 names; require one step that comes after the others"
	if err := bind(1001); err == nil || !strings.HasPrefix(err.Error(), want+"\n") {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if testing.Short() {
		return
	}
	if err := bind(1000); err != nil {
		t.Errorf("as many as the bound: %v", err)
	}
}
