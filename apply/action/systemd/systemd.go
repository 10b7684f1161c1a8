// Package systemd manages units of systemd.
package systemd

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name: "service.ensure", Summary: "a unit of systemd that runs or not, now and after a boot", NoFiles: true,
			Needs: apply.Named("package", "name"), // a unit is often called like its package
			New:   func() apply.Action { return &Ensure{Settle: serviceSettle} },
		},
	}
}
