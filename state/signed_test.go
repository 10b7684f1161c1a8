package state

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pullet/pullet/internal/authority"
)

// certified are an authority and the credentials of somebody whom it certified for 90 days.
func certified(t *testing.T, kind authority.Kind, now time.Time) (a *authority.Authority, credentials []byte) {
	t.Helper()
	a, err := authority.Create("prod", now)
	must(t, err)
	key, csr, err := authority.Request()
	must(t, err)
	chain, err := a.Issue(csr, authority.Subject{Fleet: "prod", Name: "alice", Kind: kind}, nil, authority.DefaultLife, now)
	must(t, err)
	return a, append(key, chain...)
}

func sample(now time.Time) Command {
	return Command{
		ID: "c1", Args: []string{"echo", "a b"}, Target: "role=web", Stages: [][]string{{"n1", "n2"}, {"n3"}}, LeftOut: []string{"n4"},
		Max: 1, Limits: []int{1, 2}, MaxFailures: 1, Timeout: time.Minute, Reason: "why", By: "alice (root@n1)", At: now, Until: now.Add(time.Hour),
	}
}

// TestSignedText: the text that is signed stays as it is: hosts with another pullet verify it, too.
func TestSignedText(t *testing.T) {
	const want = `fleet 1
4:prod
id 1
2:c1
args 2
4:echo
3:a b
target 1
8:role=web
stages 1
1:2
stage 2
2:n1
2:n2
stage 1
2:n3
leftOut 1
2:n4
max 1
1:1
limits 2
1:1
1:2
maxFailures 1
1:1
timeout 1
11:60000000000
reason 1
3:why
by 1
15:alice (root@n1)
at 1
20:2026-06-01T12:00:00Z
until 1
20:2026-06-01T13:00:00Z
`
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	if got := string(sample(now).signedText("prod")); got != want {
		t.Errorf("%s", got)
	}
	if got := string(sample(now.In(time.FixedZone("x", 3600))).signedText("prod")); got != want {
		t.Errorf("in another zone:\n%s", got)
	}
}

// TestSignatureCoversTheRecord: whatever of a signed command somebody changes, nobody signed that. A field that is
// added to Command fails here until it is signed.
func TestSignatureCoversTheRecord(t *testing.T) {
	now := time.Now()
	a, credentials := certified(t, authority.Operator, now)
	c := sample(now)
	must(t, c.Sign("prod", credentials))
	if who, err := c.Signer("prod", a.Bundle(), now); who != "alice" || err != nil {
		t.Fatal(who, err)
	}
	refused := func(what, fleet string, c Command) {
		t.Helper()
		if who, err := c.Signer(fleet, a.Bundle(), now); err == nil || who != "" || !strings.Contains(err.Error(), "did not sign this") {
			t.Errorf("%s: %q %v", what, who, err)
		}
	}
	refused("the fleet", "prod2", c)
	for i := range reflect.TypeFor[Command]().NumField() {
		if name := reflect.TypeFor[Command]().Field(i).Name; name != "Signature" {
			for n, changed := range changes(t, reflect.ValueOf(c).Field(i)) {
				other := c
				reflect.ValueOf(&other).Elem().Field(i).Set(changed)
				refused(name+" "+string(rune('a'+n)), "prod", other)
			}
		}
	}
}

// changes are values of the same type that differ a little.
func changes(t *testing.T, v reflect.Value) (out []reflect.Value) {
	t.Helper()
	var values []any
	switch v := v.Interface().(type) {
	case string:
		values = []any{v + " ", v[1:], "", strings.ToUpper(v)}
	case int:
		values = []any{v + 1, v - 1, -v}
	case time.Duration:
		values = []any{v + 1, v - 1}
	case time.Time:
		values = []any{v.Add(time.Nanosecond), v.Add(-time.Nanosecond)}
	case []int:
		values = []any{v[1:], append(v[:len(v):len(v)], 0), []int{v[1], v[0]}, []int(nil)}
	case []string:
		values = []any{v[1:], append(v[:len(v):len(v)], ""), []string{strings.Join(v, " ") + " "}, []string(nil)}
	case [][]string:
		values = []any{v[1:], [][]string{v[1], v[0]}, [][]string{{"n1"}, {"n2", "n3"}}, [][]string{{"n1", "n2", "n3"}}, append(v[:len(v):len(v)], nil)}
	default:
		t.Fatalf("say how a %T is changed", v)
	}
	for _, one := range values {
		out = append(out, reflect.ValueOf(one))
	}
	return out
}

// TestSignedTextsDiffer: two commands have the same text only where they are the same, whatever stands in their texts.
func TestSignedTextsDiffer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		return []string{"", "a", "1:a\n", "stage 1\n", "a\n1:a", "args 0\n"}[random.IntN(6)]
	}
	list := func() (out []string) {
		for range random.IntN(3) {
			out = append(out, text())
		}
		return out
	}
	made := func() Command {
		c := Command{ID: text(), Args: list(), LeftOut: list(), Target: text(), Reason: text(), By: text(), Max: random.IntN(2)}
		for range random.IntN(3) {
			c.Stages = append(c.Stages, list())
		}
		return c
	}
	have := map[string]Command{}
	for range 20000 {
		c := made()
		seen := string(c.signedText("f"))
		if other, known := have[seen]; known && !reflect.DeepEqual(other, c) {
			t.Fatalf("%+v and %+v have the text\n%s", other, c, seen)
		}
		have[seen] = c
	}
}

// TestSignedAsRecorded: what the record makes of texts, and of times, is what is signed: a host that reads the command
// verifies it.
func TestSignedAsRecorded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, credentials := certified(t, authority.Operator, now)
	s := open(t, t.TempDir())
	c := sample(now.In(time.FixedZone("x", 7200)))
	c.Target, c.Reason = strings.Repeat("x", 2*maxText), "two\nlines \x1b[1m"
	c.Args, c.LeftOut = []string{"no UTF-8: \xff", "a\nb", "<&>\u2028\b"}, []string{}
	must(t, c.Sign("prod", credentials))
	must(t, s.Commands.Give(ctx, c))
	read, _, err := s.Commands.Get(ctx, "c1")
	must(t, err)
	if who, err := read.Signer("prod", a.Bundle(), now); who != "alice" || err != nil {
		t.Error(who, err)
	}
	c.ID = "c2"
	c.Max = -1
	if err := c.Sign("prod", credentials); err == nil || !strings.Contains(err.Error(), "sign the command: max:") {
		t.Error(err)
	}
}

// TestSigner: who signed, for which fleet, and when that counts.
func TestSigner(t *testing.T) {
	now := time.Now()
	a, operator := certified(t, authority.Operator, now)
	node, nodes := certified(t, authority.Node, now)
	other, _ := certified(t, authority.Operator, now)
	signed := func(credentials []byte) Command {
		c := sample(now)
		must(t, c.Sign("prod", credentials))
		return c
	}
	elsewhere := sample(now)
	must(t, elsewhere.Sign("test", operator))
	for name, c := range map[string]struct {
		command Command
		fleet   string
		bundle  []byte
		at      time.Time
		who     string
		want    string
	}{
		"as it is":              {signed(operator), "prod", a.Bundle(), now, "alice", ""},
		"unsigned":              {sample(now), "prod", a.Bundle(), now, "", "it has no signature: give it with the certificate of an operator"},
		"another authority":     {signed(operator), "prod", other.Bundle(), now, "", "did not sign it; to give it again: pullet run"},
		"a node":                {signed(nodes), "prod", node.Bundle(), now, "", "the node alice signed it, and commands are for operators to give"},
		"another fleet":         {signed(operator), "test", a.Bundle(), now, "", "did not sign this"},
		"another fleet's":       {elsewhere, "test", a.Bundle(), now, "", "the operator alice of the fleet prod signed it, and this host is of test"},
		"a little late":         {signed(operator), "prod", a.Bundle(), now.Add(time.Hour + clocksDiffer), "alice", ""},
		"too late":              {signed(operator), "prod", a.Bundle(), now.Add(time.Hour + clocksDiffer + time.Second), "alice", "it ended at "},
		"a little early":        {signed(operator), "prod", a.Bundle(), now.Add(-clocksDiffer), "alice", ""},
		"too early":             {signed(operator), "prod", a.Bundle(), now.Add(-clocksDiffer - time.Second), "alice", "it was given at "},
		"an ended certificate":  {signed(operator), "prod", a.Bundle(), now.Add(authority.DefaultLife + time.Hour), "", "it ended at "},
		"a damaged signature":   {Command{ID: "c1", Signature: "x"}, "prod", a.Bundle(), now, "", "not the JSON that is expected"},
		"no bundle to speak of": {signed(operator), "prod", []byte("x"), now, "", "damaged"},
	} {
		who, err := c.command.Signer(c.fleet, c.bundle, c.at)
		if who != c.who || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q %v, want %q", name, who, err, c.want)
		}
	}
}

// TestBegun: a node begins once with a signed command. It forgets one that no longer counts, and does not begin with it
// when its clock goes back.
func TestBegun(t *testing.T) {
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	command := func(id string, lasts time.Duration) Command { return Command{ID: id, Until: noon.Add(lasts)} }
	short, long := command("short", time.Minute), command("long", time.Hour)
	var b Begun
	for _, c := range []Command{short, long} {
		must(t, b.Again(c))
		b = b.With(c, noon)
	}
	for _, c := range []Command{short, long} {
		if err := b.Again(c); err == nil || !strings.Contains(err.Error(), "this host began with it before") {
			t.Errorf("%s: %v", c.ID, err)
		}
	}
	if b = b.With(command("third", time.Hour), noon.Add(time.Minute+clocksDiffer)); len(b.Until) != 3 || !b.Over.IsZero() {
		t.Errorf("it may still count: %+v", b)
	}
	b = b.With(command("fourth", 2*time.Hour), noon.Add(2*time.Minute+clocksDiffer))
	if _, known := b.Until["short"]; known || len(b.Until) != 3 || !b.Over.Equal(short.Until) {
		t.Errorf("it is not forgotten, or another one is: %+v", b)
	}
	if err := b.Again(short); err == nil || !strings.Contains(err.Error(), "the clock of this host went back since") {
		t.Errorf("%v", err)
	}
	must(t, b.Again(command("new", 2*time.Minute)))
}
