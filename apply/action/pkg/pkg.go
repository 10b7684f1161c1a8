// Package pkg manages packages and package repositories, with apt or dnf.
package pkg

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{Name: "pkg.installed", Summary: "packages that are installed, in this version", New: func() apply.Action { return &Installed{Configuring: newConfiguring(), Locking: newLocking()} }},
		{Name: "pkg.latest", Summary: "packages in the newest version", New: func() apply.Action {
			return &Latest{Refreshing: newRefreshing(), Configuring: newConfiguring(), Locking: newLocking()}
		}},
		{Name: "pkg.removed", Summary: "packages that are not installed", New: func() apply.Action { return &Removed{Locking: newLocking()} }},
		{Name: "pkg.uptodate", Summary: "all packages in the newest version", New: func() apply.Action {
			return &Uptodate{Refreshing: newRefreshing(), Configuring: newConfiguring(), Locking: newLocking()}
		}},
		{Name: "pkgrepo.managed", Summary: "a package repository that the host uses", New: func() apply.Action {
			return &RepoManaged{Enabled: true, Refresh: true, Locking: newLocking()}
		}},
		{Name: "pkgrepo.absent", Summary: "a package repository that the host does not use", New: func() apply.Action { return &RepoAbsent{Locking: newLocking()} }},
	}
}
