package mount

import (
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/claim"
)

// Claims returns what is mounted and how, that there is a mount point, and the entry of /etc/fstab.
func (a *Mounted) Claims() []claim.Claim {
	dir := cleanDir(a.Name)
	on := claim.Of("mount", dir)
	out := []claim.Claim{
		on.Is("state", "mounted"), on.Is("device", a.Device), on.Is("type", a.entry.fstype),
		on.Is("options", a.entry.options), claim.Path(dir).Are(claim.Exists),
	}
	if a.entry == (fstabEntry{}) { // it waits for other steps
		out = []claim.Claim{on.Is("state", "mounted"), on.Is("device", a.Device), claim.Path(dir).Are(claim.Exists)}
	}
	if a.Persist {
		out = append(out, on.Is("dump", strconv.Itoa(a.Dump)), on.Is("pass", strconv.Itoa(a.Pass)))
		out = append(out, place.PartOf(fstabPath, "mount")...)
	}
	if strings.HasPrefix(a.Device, "/") && a.binds() && a.entry.dir != "" {
		out = append(out, claim.Path(a.Device).Are(claim.Exists))
	}
	return out
}

// Claims returns that nothing is mounted, and that /etc/fstab has no entry.
func (a *Unmounted) Claims() []claim.Claim {
	out := []claim.Claim{claim.Of("mount", cleanDir(a.Name)).Is("state", "unmounted")}
	if a.Persist {
		out = append(out, claim.Path(fstabPath).Part("absence of a mount"))
	}
	return out
}
