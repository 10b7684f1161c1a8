package apply

import "github.com/pullet/pullet/render"

// Warnings returns what was found when the program was bound and does not stop it: steps that contradict each other,
// unless something keeps them apart.
func (p *Program) Warnings() render.ErrorList { return p.warnings }
