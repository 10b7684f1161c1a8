package main

import (
	"strings"
	"testing"
)

// TestConfirming: the name is asked for on a terminal alone, and nothing else will do.
func TestConfirming(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		confirming
		want string
	}{
		{confirming{name: "db3"}, ""},
		{confirming{in: strings.NewReader("db3\n"), terminal: true}, ""},
		{confirming{in: strings.NewReader("db3"), terminal: true}, ""},
		{confirming{in: strings.NewReader("db3\n")},
			"not recovered: confirm it with the name of this host: --confirm db3"},
		{confirming{in: strings.NewReader("y\n"), terminal: true},
			`not recovered: "y" is not the name of this host, which is db3`},
		{confirming{in: strings.NewReader(""), terminal: true},
			`not recovered: "" is not the name of this host, which is db3`},
		{confirming{name: "db1"}, `not recovered: "db1" is not the name of this host, which is db3`},
	} {
		var out strings.Builder
		text := ""
		if err := c.check(&out, "db3"); err != nil {
			text = err.Error()
		}
		if text != c.want {
			t.Errorf("it says %q, and has to say %q", text, c.want)
		}
		asked := out.String() == "type the name of this host to go on with its record alone: "
		if asked != (c.terminal && c.name == "") {
			t.Errorf("it prints %q", out.String())
		}
	}
}
