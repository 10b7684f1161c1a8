package place

import (
	"strconv"

	"github.com/pullet/pullet/apply/claim"
)

// Claims returns what the permissions want of a path. A name and a number of an owner are not compared: only the host
// knows whether they mean the same, except for root.
func (p Permissions) Claims(name string) []claim.Claim {
	var out []claim.Claim
	if mode, err := p.mode(); err == nil && p.Mode != "" {
		out = append(out, claim.Path(name).Is("mode", ModeBits(mode)))
	}
	for _, one := range []struct{ aspect, who string }{{"owner", p.Owner}, {"group", p.Group}} {
		_, err := strconv.Atoi(one.who)
		switch {
		case one.who == "":
		case one.who == "0":
			out = append(out, claim.Path(name).Is(one.aspect, "root"))
		case err == nil:
			out = append(out, claim.Path(name).Is("number of the "+one.aspect, one.who))
		default:
			out = append(out, claim.Path(name).Is(one.aspect, one.who))
		}
	}
	return out
}

// Digest tells equal contents. It is "" where the content is not known.
func (d Content) Digest() string {
	switch {
	case d.Data != nil:
		return claim.Digest(d.Data)
	case d.Remote != nil:
		return d.Remote.Digest.String()
	}
	return ""
}

// WholeFile returns the claims of a file that an action writes as a whole.
func WholeFile(name, text string) []claim.Claim {
	return []claim.Claim{claim.Path(name).Are(claim.File), claim.Path(name).Whole(claim.Digest([]byte(text)))}
}

// PartOf returns the claims of a part of a file that has to be there.
func PartOf(name, what string) []claim.Claim {
	return []claim.Claim{claim.Path(name).Are(claim.File), claim.Path(name).Part(what)}
}
