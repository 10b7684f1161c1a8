package house

import (
	"go/types"
	"strings"
	"testing"
)

// TestOneLevel: what a type of apply embeds embeds nothing of ours in turn, so that who reads s.name has two places to
// look at and not five.
func TestOneLevel(t *testing.T) {
	pkg := check(t, "apply")
	looked := 0
	for _, name := range pkg.Scope().Names() {
		named, ok := pkg.Scope().Lookup(name).Type().(*types.Named)
		if !ok {
			continue
		}
		for _, outer := range embeds(named) {
			looked++
			for _, inner := range embeds(outer.Type()) {
				if strings.HasPrefix(inner.Pkg().Path(), module) {
					t.Errorf("%s: %s embeds %s, which embeds %s: name the field",
						typedFiles.Position(outer.Pos()), name, outer.Name(), inner.Name())
				}
			}
		}
	}
	if looked == 0 {
		t.Error("no embedded fields were found")
	}
}

// embeds are the embedded fields of a struct, or of one that a pointer leads to.
func embeds(typ types.Type) (fields []*types.Var) {
	if pointer, ok := typ.Underlying().(*types.Pointer); ok {
		typ = pointer.Elem()
	}
	of, ok := typ.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for field := range of.Fields() {
		if field.Embedded() {
			fields = append(fields, field)
		}
	}
	return fields
}
