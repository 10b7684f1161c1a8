// Package offer tells the fleet which services this host offers, and waits for those of others.
package offer

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	packaged := apply.Named("package", "name") // a service is often called like its package
	return []apply.Spec{
		{
			Name: "service.publish", Summary: "this host's instance of a service, known to the fleet", NoFiles: true,
			Needs: packaged, New: func() apply.Action { return &Publish{} },
			Shows: apply.Shown{
				Params: []string{
					"interface",
					"address",
					"tags",
					"port",
				}, Where: "all hosts of the fleet read the services of others",
			},
		},
		{
			Name: "service.withdraw", Summary: "no instance of a service on this host", NoFiles: true,
			Removes: "published service", RemovesFirst: true,
			Needs: packaged, New: func() apply.Action { return &Withdraw{} },
		},
		{
			Name: "service.wait", Summary: "wait until enough hosts offer a service", Passive: true,
			Needs: packaged, New: func() apply.Action { return &Wait{} },
		},
	}
}
