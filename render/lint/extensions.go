package lint

import "github.com/pullet/pullet/render"

// unseenExtensions are notes of what hosts alone can find out about executables: who signed them, and whether the
// fleet's record has them.
func unseenExtensions(r *render.Repository) render.ErrorList {
	var out render.ErrorList
	note := func(e *render.Extension, field, hint, text string) {
		n := e.ErrorAt([]string{field}, "%s: %s", field, text)
		n.Severity, n.Hint = render.Note, hint
		out = append(out, n)
	}
	const signers = "extensions.allowedSigners in its own configuration"
	list, _ := r.Extensions() // its mistakes are told elsewhere
	for _, e := range list {
		switch {
		case e.Broken:
			continue
		case e.Signature != "" && e.SignedElsewhere():
			note(e, "signature", signers, "each host fetches what is signed, and checks by whom")
		case e.Signature != "":
			note(e, "signature", signers, "whether the key that signed may sign is for each host to check")
		}
		if e.Datastore {
			note(e, "datastore", "pullet extension list", "whether the fleet's record has it is not checked here")
		}
	}
	return out
}
