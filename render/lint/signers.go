package lint

import (
	"errors"
	"io/fs"

	"github.com/pullet/pullet/internal/trust"
	"github.com/pullet/pullet/render"
)

// signers are mistakes in the rules of who may change which paths: a host that verifies commits refuses one with them.
func signers(r *render.Repository) (out render.ErrorList) {
	for _, l := range r.Layers() {
		text, err := fs.ReadFile(l.FS, trust.RulesFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			_, err = trust.ReadRules(trust.File{Name: trust.RulesFile, Content: text})
		}
		if err != nil {
			pos := render.Position{File: r.DisplayName(l, trust.RulesFile)}
			if at, ok := errors.AsType[*trust.LineError](err); ok {
				pos.Line, err = at.Line, at.Err
			}
			out = append(out, &render.Error{
				Pos:      pos,
				Severity: render.Warning,
				Message:  err.Error(),
				Hint:     "hosts that verify commits refuse one with this file",
			})
		}
	}
	return out
}
