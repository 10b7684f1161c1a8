package membership

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// cluster reads a cluster: how many voters there are to be, its members, and the other hosts that may carry it.
//
//	3: a* b! (c=) | d e?
//
// A member in parentheses is a learner, with = one that has the record. Other marks of members: * it leads, ~ nobody
// reached it for a minute, ! nor for eleven, ^ an operator moves the datastore away from it, - the repository does not
// name it. Marks of hosts: ? it is not ready, ! it failed. The host of a member is not ready, but with + it is. What
// follows @ is a failure domain.
func cluster(t *testing.T, text string) Cluster {
	t.Helper()
	count, rest, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{Count: n, ReplaceAfter: replaceAfter}
	members, others, _ := strings.Cut(rest, "|")
	for _, word := range strings.Fields(members) {
		name, domain, marks := parts(word)
		m := Member{Node: name, Learner: strings.HasPrefix(word, "(")}
		m.Leader, m.CaughtUp, m.Moving = marks("*"), marks("="), marks("^")
		switch {
		case marks("~"):
			m.Down = time.Minute
		case marks("!"):
			m.Down = 11 * time.Minute
		}
		c.Members = append(c.Members, m)
		if !marks("-") {
			c.Hosts = append(c.Hosts, Host{Node: name, Domain: domain, Ready: marks("+")})
		}
	}
	for _, word := range strings.Fields(others) {
		name, domain, marks := parts(word)
		c.Hosts = append(c.Hosts, Host{Node: name, Domain: domain, Ready: !marks("?"), Failed: marks("!")})
	}
	return c
}

func parts(word string) (name, domain string, marks func(string) bool) {
	word, domain, _ = strings.Cut(strings.Trim(word, "()"), "@")
	name = strings.TrimRight(word, "*~!^-+=?")
	return name, domain, func(mark string) bool { return strings.Contains(word[len(name):], mark) }
}

func TestNext(t *testing.T) {
	const dead, moved = "no other member reached it for 11m0s", "an operator moves the datastore away from it"
	const unnamed = "the repository does not name it any more"
	const one, two = "it needs one more host, and no further host that may carry it is ready",
		"it needs 2 more hosts, and no further host that may carry it is ready"
	for _, c := range []struct{ what, of, step, why string }{
		{"one is enough", "1: a* | b", "", ""},
		{"three are there", "3: a* b c | d", "", ""},
		{"no member", "3: | a", "", "0 of 0 members answer: it takes 1"},

		{"a new fleet", "3: a* | b c", "add b", "members to stay: 1 of 3"},
		{"a pair comes together", "3: a* (b=) | c", "add c", "members to stay: 2 of 3"},
		{"no more than a pair", "5: a* (b) (c) | d e", "", "b gets the record"},
		{"who has the record waits", "3: a* (b=) (c)", "", "c gets the record"},
		{"who is away waits", "3: a* (b~=) (c=)", "", "b gets the record"},
		{"both have the record", "3: a* (b=) (c=)", "promote b", "it has the record"},
		{"two bear no fault", "3: a* b (c=)", "promote c", "it has the record"},
		{"three of five", "5: a* b c | d e", "add d", "members to stay: 3 of 5"},
		{"five of five", "5: a* b c d (e=)", "promote e", "it has the record"},
		{"only one further host", "3: a* | b c?", "add b", "members to stay: 1 of 3"},
		{"it stays a learner", "3: a* (b=) | c?", "", one},
		{"no further host", "3: a* | b?", "", two},
		{"it grows while one is away", "5: a* b c~ | d e", "add d", "members to stay: 3 of 5"},

		{"not dead yet", "3: a* b c~ | d", "",
			"no other member reaches c: after 10m0s another host takes its place"},
		{"dead, its successor learns first", "3: a* b c! | d", "add d", "members to stay: 2 of 3"},
		{"its successor begins", "3: a* b | d", "add d", "members to stay: 2 of 3"},
		{"its successor comes", "3: a* b (d=)", "promote d", "it has the record"},
		{"dead with a successor", "3: a* b c! (d=)", "remove c", dead},
		{"dead, and its successor begins", "3: a* b c! (d)", "", "d gets the record"},
		{"dead without a successor", "3: a* b c! | d?", "", one},
		{"dead, and its own host is ready", "3: a* b c!+", "remove c", dead},
		{"its own host is the last to be taken", "5: a* b c d e!+ | f", "add f", "members to stay: 4 of 5"},
		{"before one that failed", "5: a* b c d e!+ | f!", "remove e", dead},
		{"one that answers does not come again", "3: a* b^+ c | d!", "add d", "members to stay: 2 of 3"},
		{"and without it", "5: a* b c d | e f!", "add e", "members to stay: 4 of 5"},
		{"one of five: its successor first", "5: a* b c d e! | f", "add f", "members to stay: 4 of 5"},
		{"one of five, its successor ready", "5: a* b c d e! (f=)", "remove e", dead},
		{"one of five, another one away", "5: a* b c d~ e! | f", "add f", "members to stay: 4 of 5"},
		{"two of five", "5: a* b c d! e! | f g", "add f", "members to stay: 3 of 5"},
		{"two of five, one removed", "5: a* b c e! | f g", "add f", "members to stay: 3 of 5"},
		{"an even number with a dead one", "5: a* b c e! (f)", "remove e", dead},
		{"an even number with a dead one and a ready one", "5: a* b c e! (f=)", "promote f", "it has the record"},
		{"no quorum, another one away", "3: a* b~ c! | d", "", "1 of 3 members answer: it takes 2"},
		{"no quorum, dead", "3: a* b! c! | d e", "", "1 of 3 members answer: it takes 2"},
		{"no quorum of two", "3: a* b! (c=)", "", "1 of 2 members answer: it takes 2"},

		{"a learner never comes", "3: a* (b!) (c=) | d", "remove b", dead},
		{"the next host is tried", "3: a* (c=) | b! d", "add d", "members to stay: 2 of 3"},
		{"it is tried again when no other is left", "3: a* (c=) | b!", "add b", "members to stay: 2 of 3"},
		{"a learner is one too many: who has the record stays", "3: a* b (c=) (d)", "remove d",
			"it is one more than the 3 that are wanted"},
		{"a learner is moved", "3: a* b (c=^) | d", "remove c", moved},

		{"not named: its successor", "3: a* b c- | d", "add d", "members to stay: 2 of 3"},
		{"not named: its successor comes before it leaves", "3: a* b c- (d=)", "promote d", "it has the record"},
		{"not named: it leaves", "3: a* b c- d", "remove c", unnamed},
		{"not named without a successor", "3: a* b c-", "", one},
		{"not named and away: it needs not be dead", "3: a* b c~- (d=)", "remove c", unnamed},
		{"a learner is not named", "3: a* (b=-) | c d", "remove b", unnamed},

		{"the only one is moved", "1: a*^ | b", "add b", "members to stay: 0 of 1"},
		{"the only one is moved: its successor comes", "1: a*^ (b=)", "promote b", "it has the record"},
		{"the only one is moved: it hands over", "1: a*^ b", "lead b", "a is to leave: " + moved},
		{"the only one is moved: it leaves", "1: a^ b*", "remove a", moved},
		{"one of three is moved", "3: a* b^ c (d=)", "promote d", "it has the record"},
		{"one of three is moved: it leaves", "3: a* b^ c d", "remove b", moved},
		{"the leader is moved", "3: a*^ b c d", "lead b", "a is to leave: " + moved},
		{"leadership goes to one who answers", "3: a*^ b~ c d", "lead c", "a is to leave: " + moved},
		{"leadership goes to one who stays", "3: a*^ b^ c d e", "remove b", moved},
		{"one is moved, another one away", "3: a* b^ c~ d", "remove b", moved},
		{"an even number with one that is moved", "5: a* b c d^ (e)", "remove d", moved},
		{"one of two is moved", "3: a* b^ (c) (d)", "remove b", moved},

		{"several leave at once", "3: a*- b- c- | d e f", "add d", "members to stay: 0 of 3"},
		{"several leave: one comes", "3: a*- b- c- (d=) (e)", "promote d", "it has the record"},
		{"several leave: one goes", "3: a*- b- c- d (e=)", "remove b", unnamed},
		{"several leave: the leader is last", "3: a*- d e f", "lead d", "a is to leave: " + unnamed},
		{"who is dead goes first", "3: a* b- c! d e", "remove c", dead},

		{"five become three", "3: a* b c d e", "remove e", "it is one more than the 3 that are wanted"},
		{"four become three", "3: a* b c d", "remove d", "it is one more than the 3 that are wanted"},
		{"three become one", "1: a* b c", "remove c", "it is one more than the 1 that are wanted"},
		{"who leaves goes first", "3: a* b- c d e", "remove b", unnamed},
		{"who is away goes first", "3: a* b c~ d e", "remove c", "it is one more than the 3 that are wanted"},
		{"it does not shrink into the loss of its quorum", "3: a* b- c~ d~ e", "",
			"b is to leave (" + unnamed + "), and without it 2 of 4 members would answer"},
		{"the leader is one too many", "1: a b*", "lead a", "b is to leave: it is one more than the 1 that are wanted"},
		{"it shrinks: no learner stays", "1: a* (b=)", "remove b", "it is one more than the 1 that are wanted"},

		{"another rack", "3: a*@r1 | b@r1 c@r2", "add c", "members to stay: 1 of 3"},
		{"a third rack", "3: a*@r1 (b)@r2 | c@r1 d@r2 e@r3", "add e", "members to stay: 2 of 3"},
		{"no rack is like no other", "3: a*@r1 b | c@r1 d", "add d", "members to stay: 2 of 3"},
		{"who failed comes last, whatever its rack", "3: a*@r1 | b!@r2 c@r1", "add c", "members to stay: 1 of 3"},
		{"the fullest rack shrinks", "3: a*@r1 b@r2 c@r2 d@r2 e@r3", "remove d", "it is one more than the 3 that are wanted"},
		{"who leaves does not count for its rack", "3: a*@r1 b@r2 c^@r3 | d@r1 e@r3", "add e", "members to stay: 2 of 3"},
	} {
		step := Next(cluster(t, c.of))
		if got := strings.TrimSpace(string(step.Kind) + " " + step.Node); got != c.step || step.Why != c.why {
			t.Errorf("%s: %s:\n%q (%s), and it has to be\n%q (%s)", c.what, c.of, got, step.Why, c.step, c.why)
		}
	}
}

// TestReplacedAtOnce: where members are replaced at once, those that answer are not.
func TestReplacedAtOnce(t *testing.T) {
	c := cluster(t, "3: a* b c~ (d=)")
	c.ReplaceAfter = 0
	want := Step{Remove, "c", "no other member reached it for 1m0s"}
	if step := Next(c); step != want {
		t.Error(step)
	}
	c.Members = c.Members[:2]
	want = Step{Why: "it needs one more host, and no further host that may carry it is ready"}
	if step := Next(c); step != want {
		t.Error(step)
	}
}

// TestSameAddress: a host at the address of another member comes when that one is away for so long that it is replaced,
// and has made place. Nobody waits for it, or gives it the place of one that answers.
func TestSameAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, of, step string }{
		{"of one that answers", "3: a* b | d", " "},
		{"another host is ready", "3: a* b | d e", "add e"},
		{"of one that is away", "3: a* b c~ | d", " "},
		{"of one that is replaced", "3: a* b c! | d", "remove c"},
		{"another host is ready for it", "3: a* b c! | d e", "add e"},
	} {
		of := cluster(t, c.of)
		at := of.Members[len(of.Members)-1].Node
		for i := range of.Hosts {
			if of.Hosts[i].Node == "d" {
				of.Hosts[i].At = at
			}
		}
		if step := Next(of); string(step.Kind)+" "+step.Node != c.step {
			t.Errorf("%s: %+v, and not %s", c.what, step, c.step)
		}
	}
}

// TestLearnerTime: a host that is about to become a member has its time, however soon another one takes the place of a
// member that is away.
func TestLearnerTime(t *testing.T) {
	for _, c := range []struct {
		learner bool
		down    time.Duration
		removed bool
	}{
		{true, 20 * time.Second, false},
		{true, time.Minute, true},
		{false, 20 * time.Second, true},
	} {
		members := []Member{{Node: "a", Leader: true}, {Node: "b"}, {Node: "c", Learner: c.learner, Down: c.down}}
		of := Cluster{Count: 3, ReplaceAfter: 15 * time.Second, Members: members}
		for _, m := range members {
			of.Hosts = append(of.Hosts, Host{Node: m.Node})
		}
		if got := of.leaves(members[2]) != ""; got != c.removed {
			t.Errorf("%+v: removed %v, want %v", members[2], got, c.removed)
		}
	}
}
