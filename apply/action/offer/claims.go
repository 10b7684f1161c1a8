package offer

import (
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply/claim"
)

// Claims returns the instance of the service as the fleet sees it.
func (a *Publish) Claims() []claim.Claim {
	of := service(a.Name)
	return []claim.Claim{
		of.Is("state", "published"), of.Is("port", strconv.Itoa(a.Port)), of.Is("address", a.Address),
		of.Is("interface", a.Interface), of.Is("tags", strings.Join(a.Tags, ", ")),
	}
}

// Claims returns that the host does not offer the service.
func (a *Withdraw) Claims() []claim.Claim {
	return []claim.Claim{service(a.Name).Is("state", "withdrawn")}
}

// service returns the host's instance of a service.
func service(name string) claim.Thing { return claim.Of("published service", name) }
