package render

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/safetext"
)

// allOperators stands in a list for every operator of the fleet.
const allOperators = "operators"

// AllowRun says whose commands a host runs: those of whoever may write the fleet's record, of operators whom the
// fleet's authority certified, or nobody's.
type AllowRun struct {
	Anybody   bool
	Operators []string // by the names in their certificates; "operators" is all of them
}

// Verifies reports that a command has to show who gave it.
func (a AllowRun) Verifies() bool { return !a.Anybody && len(a.Operators) > 0 }

// Allows says whether a command runs that this operator gave; "" is somebody who did not show who he is.
func (a AllowRun) Allows(operator string) bool {
	listed := slices.Contains(a.Operators, allOperators) || slices.Contains(a.Operators, operator)
	return a.Anybody || operator != "" && listed
}

// String is who is allowed, for people.
func (a AllowRun) String() string {
	switch {
	case a.Anybody:
		return "everybody who may write the fleet's record"
	case len(a.Operators) == 0:
		return "nobody"
	case slices.Contains(a.Operators, allOperators):
		return "every operator of the fleet"
	case len(a.Operators) == 1:
		return "the operator " + a.Operators[0]
	}
	return "the operators " + strings.Join(a.Operators, ", ")
}

func (a *AllowRun) decode(d *decoder, n *yaml.Node) {
	if isNull(n) {
		return
	}
	*a = AllowRun{} // a drop-in replaces what was said before it
	if n.Kind == yaml.SequenceNode {
		for _, name := range n.Content {
			a.Operators = append(a.Operators, d.operator(resolve(name)))
		}
		return
	}
	if n.Kind != yaml.ScalarNode || setScalar(n.Value, reflect.ValueOf(&a.Anybody).Elem()) != nil {
		d.failf(n, "allowRun: expected true, false or a list such as [operators] or [alice, bob], found %s", kindName(n))
	}
}

// operator is one of a list. A boolean there was meant for the whole of it.
func (d *decoder) operator(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!bool" || !safetext.Name(n.Value) {
		d.failf(n, "allowRun: expected operators, or the name of one as in its certificate, found %s", kindName(n))
	}
	return n.Value
}

func (a *AllowRun) shape() *Shape {
	names := &Shape{Kind: List, Elem: &Shape{Kind: Text, NotNull: true}}
	return &Shape{Kind: Either, Name: "true or false, or list of operators", Either: []*Shape{{Kind: Truth}, names}}
}
