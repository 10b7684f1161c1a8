package lint

import (
	"errors"

	"github.com/pullet/pullet/internal/secrets"
	"github.com/pullet/pullet/render"
)

// encrypted are mistakes in who may read the encrypted files, and in whom they are encrypted for.
func encrypted(repo *render.Repository) (out render.ErrorList) {
	for _, l := range repo.Layers() {
		rules, err := secrets.Read(repo, l)
		var found render.ErrorList
		if err == nil {
			found, err = rules.Check()
		}
		var mistakes render.ErrorList
		switch {
		case errors.As(err, &mistakes):
			found = mistakes
		case err != nil:
			found = render.ErrorList{{Pos: render.Position{File: render.SecretsFile}, Message: err.Error()}}
		}
		out = append(out, found...)
	}
	return out
}
