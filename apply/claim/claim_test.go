package claim

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFind compares the claims of two steps in both orders: what contradicts is found, and nothing else is.
func TestFind(t *testing.T) {
	ann, web, f := Of("user", "ann"), Of("unit", "web.service"), Path("/etc/f")
	match := regexp.MustCompile
	for _, c := range []struct {
		name     string
		one, two []Claim
		want     string // what the second says of the first; "": both can hold
	}{
		{"equal values", []Claim{ann.Is("shell", "/bin/sh")}, []Claim{ann.Is("shell", "/bin/sh")}, ""},
		{"two values", []Claim{ann.Is("shell", "/bin/sh")}, []Claim{ann.Is("shell", "/bin/bash")}, `shell "/bin/bash" - shell "/bin/sh"`},
		{"two things", []Claim{ann.Is("shell", "/bin/sh")}, []Claim{Of("user", "bob").Is("shell", "/bin/bash")}, ""},
		{"two kinds", []Claim{Of("group", "ann").Is("state", "absent")}, []Claim{ann.Is("state", "present")}, ""},
		{"two properties", []Claim{web.Is("state", "started")}, []Claim{web.Is("start with the host", "disabled")}, ""},
		{"two secrets", []Claim{ann.Secret("password", "a")}, []Claim{ann.Secret("password", "b")}, "password - another password"},
		{"one secret", []Claim{ann.Secret("password", "a")}, []Claim{ann.Secret("password", "a")}, ""},

		{"two versions", []Claim{Of("package", "p").Version("1.2")}, []Claim{Of("package", "p").Version("1.3")}, `version "1.3" - version "1.2"`},
		{"a version and how it begins", []Claim{Of("package", "p").Version("1.2*")}, []Claim{Of("package", "p").Version("1.2.7")}, ""},
		{"behind an epoch", []Claim{Of("package", "p").Version("1.2*")}, []Claim{Of("package", "p").Version("1:1.2.7")}, ""},
		{"two beginnings of one", []Claim{Of("package", "p").Version("1.2*")}, []Claim{Of("package", "p").Version("1.2.7*")}, ""},
		{"two beginnings", []Claim{Of("package", "p").Version("1.2*")}, []Claim{Of("package", "p").Version("1.3*")}, `version "1.3*" - version "1.2*"`},

		{"two members", []Claim{ann.Has("groups", "a")}, []Claim{ann.Has("groups", "b")}, ""},
		{"in and not in", []Claim{ann.Has("groups", "a")}, []Claim{ann.Lacks("groups", "a")}, `groups without "a" - groups with "a"`},
		{"a list and one of it", []Claim{ann.Only("groups", "b", "a")}, []Claim{ann.Has("groups", "a")}, ""},
		{"a list and another", []Claim{ann.Only("groups", "b", "a")}, []Claim{ann.Has("groups", "c")}, `groups with "c" - groups only "a", "b"`},
		{"a list without one of it", []Claim{ann.Only("groups", "a")}, []Claim{ann.Lacks("groups", "a")}, `groups without "a" - groups only "a"`},
		{"no others", []Claim{ann.Only("groups", "a")}, []Claim{ann.Lacks("groups", "b")}, ""},
		{"one list in two orders", []Claim{ann.Only("groups", "a", "b")}, []Claim{ann.Only("groups", "b", "a")}, ""},
		{"two lists", []Claim{ann.Only("groups", "a")}, []Claim{ann.Only("groups")}, `no groups - groups only "a"`},

		{"a path twice", []Claim{f.Are(Regular)}, []Claim{f.Are(File)}, ""},
		{"a link that is followed", []Claim{f.Are(Link)}, []Claim{f.Are(File)}, ""},
		{"a link and a file", []Claim{f.Are(Link)}, []Claim{f.Are(Regular)}, `state "file" - state "link"`},
		{"a directory and a file", []Claim{f.Are(Tree)}, []Claim{f.Are(Regular)}, `state "file" - state "directory"`},
		{"present and absent", []Claim{f.Are(Exists)}, []Claim{f.Are(Absent)}, `state "absent" - state "present"`},
		{"absent twice", []Claim{f.Are(Absent)}, []Claim{f.AbsentIfEmpty()}, ""},
		{"present and absent if empty", []Claim{f.Are(Tree)}, []Claim{f.AbsentIfEmpty()}, `state "absent if empty" - state "directory"`},
		{"a path that is written in two ways", []Claim{f.Are(Regular)}, []Claim{Path("/etc/x/..//f/").Are(Absent)}, `state "absent" - state "file"`},
		{"below an absent one", []Claim{Path("/etc").Are(Absent)}, []Claim{Path("/etc/a/b").Are(File)}, `state "file" - state "absent" of /etc`},
		{"absent below an absent one", []Claim{Path("/etc").Are(Absent)}, []Claim{f.Are(Absent)}, ""},
		{"below one that stays", []Claim{Path("/etc").AbsentIfEmpty()}, []Claim{f.Are(Regular)}, ""},
		{"below a file", []Claim{f.Are(Regular)}, []Claim{Path("/etc/f/g").Are(Tree)}, `state "directory" - state "file" of /etc/f`},
		{"below a link", []Claim{f.Are(Link)}, []Claim{Path("/etc/f/g").Are(Tree)}, ""},
		{"below a directory", []Claim{Path("/etc").Are(Directory)}, []Claim{f.Are(Regular)}, ""},
		{"beside an absent one", []Claim{Path("/etc/f").Are(Absent)}, []Claim{Path("/etc/ff/g").Are(Regular)}, ""},

		{"one content", []Claim{f.Whole("1")}, []Claim{f.Whole("1")}, ""},
		{"two contents", []Claim{f.Whole("1")}, []Claim{f.Whole("2")}, "whole content - another whole content"},
		{"contents that are not known yet", []Claim{f.Whole("")}, []Claim{f.Whole("")}, "whole content - another whole content"},
		{"a content and one of a new file", []Claim{f.Whole("1")}, []Claim{f.Initial("2")}, "initial content - whole content"},
		{"a content and a part", []Claim{f.Whole("1")}, []Claim{f.Part("mount")}, "mount - whole content"},
		{"a content of a new file and a part", []Claim{f.Initial("1")}, []Claim{f.Part("mount")}, ""},
		{"a content of a new file and a line", []Claim{f.Initial("1")}, []Claim{f.Line("a", nil, false)}, ""},
		{"two parts", []Claim{f.Part("mount")}, []Claim{f.Part("mount")}, ""},
		{"a content and a line", []Claim{f.Whole("1")}, []Claim{f.Line("a", nil, false)}, `line "a" - whole content`},
		{"a content and a block", []Claim{f.Whole("1")}, []Claim{f.Block("b", "e", nil, false)}, `block "b" - whole content`},

		{"two lines", []Claim{f.Line("a=1", nil, false)}, []Claim{f.Line("b=1", nil, false)}, ""},
		{"one line", []Claim{f.Line("a=1", nil, false)}, []Claim{f.Line("a=1", match("^a="), false)}, ""},
		{"two matches", []Claim{f.Line("a=1", match("^a="), false)}, []Claim{f.Line("b=1", match("^b="), false)}, ""},
		{"one match", []Claim{f.Line("a=1", match("^#"), false)}, []Claim{f.Line("a=2", match("^#"), false)}, `line "a=2" - line "a=1"`},
		{"a match that finds the other line", []Claim{f.Line("a=1", match("a"), false)}, []Claim{f.Line("ab", nil, false)}, `line "ab" - line "a=1"`},
		{"a line that is gone", []Claim{f.Line("a", nil, false)}, []Claim{f.Line("a", nil, true)}, `no line "a" - line "a"`},
		{"a match that is gone", []Claim{f.Line("a", nil, false)}, []Claim{f.Line("", match("^a"), true)}, `no line that matches "^a" - line "a"`},
		{"another line that is gone", []Claim{f.Line("a", nil, false)}, []Claim{f.Line("b", match("^b"), true)}, ""},
		{"gone twice", []Claim{f.Line("a", nil, true)}, []Claim{f.Line("a", match("a"), true)}, ""},

		{"two blocks", []Claim{f.Block("b", "e", []string{"1"}, false)}, []Claim{f.Block("c", "e", []string{"2"}, false)}, ""},
		{"one block", []Claim{f.Block("b", "e", []string{"1"}, false)}, []Claim{f.Block(" b", "e ", []string{"1"}, false)}, ""},
		{"one block with two texts", []Claim{f.Block("b", "e", []string{"1"}, false)}, []Claim{f.Block("b", "e", []string{"2"}, false)}, `block "b" - another block "b"`},
		{"a block that is gone", []Claim{f.Block("b", "e", nil, false)}, []Claim{f.Block("b", "e", nil, true)}, `no block "b" - block "b"`},
		{"a block and a line", []Claim{f.Block("b", "e", []string{"1"}, false)}, []Claim{f.Line("2", match("^2"), false)}, ""},
		{"a line that replaces one of a block", []Claim{f.Block("b", "e", []string{"a=1"}, false)}, []Claim{f.Line("a=2", match("^a="), false)}, `line "a=2" - block "b"`},
		{"a line that removes a marker", []Claim{f.Block("b", "e", []string{"a=1"}, false)}, []Claim{f.Line("e", nil, true)}, `no line "e" - block "b"`},
		{"a line and a block that is gone", []Claim{f.Block("b", "e", nil, true)}, []Claim{f.Line("e", nil, true)}, ""},

		{"a file of a home", []Claim{ann.Is("home", "/srv/ann"), Path("~ann/.k").Part("key")}, []Claim{Path("/srv/ann/.k").Whole("1")}, "whole content - key"},
		{"a file of the usual home", []Claim{ann.Is("state", "present"), Path("~ann/.k").Part("key")}, []Claim{Path("/home/ann/.k").Whole("1")}, "whole content - key"},
		{"a file of a home that is not known", []Claim{Path("~ann/.k").Part("key")}, []Claim{Path("/home/ann/.k").Whole("1")}, ""},
		{"a file of the home of root", []Claim{Path("~root/.k").Part("key")}, []Claim{Path("/root/.k").Whole("1")}, "whole content - key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := found(t, c.one, c.two)
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("got  %q\nwant %q", text, c.want)
			}
			if again := found(t, c.two, c.one); len(again) != len(got) {
				t.Errorf("in the other order: %q", again)
			}
			if twice := found(t, slices.Concat(c.one, c.two)); len(twice) > 0 {
				t.Errorf("one step contradicts itself: %q", twice)
			}
		})
	}
}

// found returns what Find yields, in words.
func found(t *testing.T, steps ...[]Claim) (out []string) {
	t.Helper()
	all := Find(steps, func(c Contradiction) bool {
		if c.First >= c.Second {
			t.Errorf("steps %d and %d are out of order", c.First, c.Second)
		}
		out = append(out, c.B.Text()+" - "+c.Against())
		return true
	})
	if !all {
		t.Error("not everything was compared")
	}
	return out
}

// TestFindEnds: Find stops when it is told to, and when comparing costs too much.
func TestFindEnds(t *testing.T) {
	n := 0
	three := [][]Claim{{Path("/f").Whole("1")}, {Path("/f").Whole("2")}, {Path("/f").Whole("3")}}
	if all := Find(three, func(Contradiction) bool { n++; return false }); n != 1 || !all {
		t.Errorf("%d contradictions, compared all: %t; want one, and true", n, all)
	}
	var many [][]Claim
	for range 2100 {
		many = append(many, []Claim{Path("/f").Line(strings.Repeat("x", len(many)), nil, false)})
	}
	if Find(many, func(Contradiction) bool { return true }) {
		t.Error("2100 lines were all compared")
	}
	if !Find(many[:1000], func(Contradiction) bool { return true }) {
		t.Error("1000 lines were not all compared")
	}
}

// TestKnown: what is not known is not compared, except that there is a content.
func TestKnown(t *testing.T) {
	f := Path("/f")
	claims := []Claim{f.Whole("1"), f.Is("mode", "?"), Path("/?").Are(File), f.Line("a?", nil, false), f.Only("list", "a", "?"), f.Is("owner", "ann")}
	got := Known(claims, func(text string) bool { return !strings.Contains(text, "?") })
	if len(got) != 2 || got[0].want != (whole{}) || got[1].Aspect != "owner" {
		t.Errorf("got %+v", got)
	}
}
