// Package mount manages mounts and /etc/fstab.
package mount

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name:    "mount.mounted",
			Summary: "a mounted file system, now and at boot",
			New:     func() apply.Action { return &Mounted{FSType: "auto", Persist: true} },
		},
		{
			Name:    "mount.unmounted",
			Summary: "a directory where nothing is mounted",
			New:     func() apply.Action { return &Unmounted{Persist: true} },
		},
	}
}
