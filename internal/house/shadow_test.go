package house

import (
	"go/types"
	"testing"
)

// TestNothingIsHidden: in a pull, which is a chain of embedded types, no field or method has the name of another one
// further down: who reads p.store cannot see which of two it is, and one of them may be nil.
func TestNothingIsHidden(t *testing.T) {
	pkg, embedding := check(t, "internal/agent"), 0
	for _, name := range pkg.Scope().Names() {
		if named, ok := pkg.Scope().Lookup(name).Type().(*types.Named); ok {
			embedding += hides(t, named)
		}
	}
	if embedding < 5 {
		t.Errorf("only %d embedded fields were found", embedding)
	}
}

// hides reports what a type hides, and counts what it embeds.
func hides(t *testing.T, named *types.Named) (embedded int) {
	of, ok := named.Underlying().(*types.Struct)
	if !ok {
		return 0
	}
	for e := range of.Fields() {
		if !e.Embedded() {
			continue
		}
		embedded++
		for own := range of.Fields() {
			if below, _, _ := types.LookupFieldOrMethod(e.Type(), true, own.Pkg(), own.Name()); own != e && below != nil {
				t.Errorf("%s: the field %s hides that of %s", typedFiles.Position(own.Pos()), own.Name(), e.Name())
			}
		}
		for own := range named.Methods() {
			if below, _, _ := types.LookupFieldOrMethod(e.Type(), true, own.Pkg(), own.Name()); below != nil {
				t.Errorf("%s: the method %s hides that of %s", typedFiles.Position(own.Pos()), own.Name(), e.Name())
			}
		}
	}
	return embedded
}
