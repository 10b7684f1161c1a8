package newcomer

import "testing"

// TestBracketHints: an element in brackets, as other languages read it, has the hint how it is written here, whatever
// the quotes.
func TestBracketHints(t *testing.T) {
	for line, want := range map[string]string{
		"{{ services['db'] }}":              `services "db"`,
		"{{ len(services[\"db\"]) }}":       `services "db"`,
		"\"{{ range services[`db`] }}\"":    `services "db"`,
		"{{ (services['db'])[0].Address }}": `services "db"`,
		"{{ vars[`port`] }}":                `index vars "port"`,
		"{{ macros['m']('x') }}":            `macro "m" "x"`,
		"{{ services[0] }}":                 `vars.name, or index vars "name"`,
	} {
		if got := bracketHint(line); got != "there are no brackets in templates: write "+want {
			t.Errorf("%s: %s", line, got)
		}
	}
}
