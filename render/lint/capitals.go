package lint

import (
	"fmt"
	"strings"

	"github.com/pullet/pullet/render"
)

// inCapitals are the comparisons of a condition that can never hold, or always do.
func inCapitals(e render.Expression) render.ErrorList {
	var out render.ErrorList
	for _, c := range e.Capitals() {
		bad := e.ErrorAt(c.At, fmt.Sprintf("the fact %q is never %q", c.Fact, c.Text))
		bad.Severity = render.Warning
		bad.Hint = fmt.Sprintf("its values are in lower case: write '%s'", strings.ToLower(c.Text))
		out = append(out, bad)
	}
	return out
}
