package git

import (
	"cmp"

	"github.com/pullet/pullet/apply/claim"
)

// Claims returns which repository the directory has, and at which commit. What is in it only the repository knows.
func (a *Checkout) Claims() []claim.Claim {
	of := claim.Of("checkout", claim.Path(a.Name).Name)
	out := []claim.Claim{
		claim.Path(a.Name).Are(claim.Tree), of.Is("url", a.URL), of.Is("ref", cmp.Or(a.Ref, "HEAD")),
	}
	return append(out, a.permissions().Claims(a.Name)...)
}
