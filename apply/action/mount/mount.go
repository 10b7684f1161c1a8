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
			Shows: apply.Shown{
				Params: []string{"device", "options"}, Where: "every user of the host can read the table of mounts",
				Instead: "write a file with it, such as the one that credentials= of cifs names",
			},
		},
		{
			Name:    "mount.unmounted",
			Summary: "a directory where nothing is mounted",
			New:     func() apply.Action { return &Unmounted{Persist: true} },
		},
	}
}
