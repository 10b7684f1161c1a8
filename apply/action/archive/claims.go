package archive

import "github.com/pullet/pullet/apply/claim"

// Claims returns the directory. What is in it only the archive knows, and several archives may share it. Where a path
// decides whether the archive is extracted, the directory may go again.
func (a *Extracted) Claims() []claim.Claim {
	if a.Creates != "" {
		return nil
	}
	return []claim.Claim{claim.Path(a.Name).Are(claim.Tree)}
}
