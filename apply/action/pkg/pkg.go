// Package pkg manages packages and package repositories, with apt or dnf.
package pkg

import (
	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	named := apply.Named("package", "name", "pkgs")
	return []apply.Spec{
		{
			Name: "pkg.installed", Summary: "packages that are installed, in this version", Provides: named, Needs: repository,
			New: func() apply.Action { return &Installed{Configuring: newConfiguring(), Locking: newLocking()} },
		},
		{
			Name: "pkg.latest", Summary: "packages in the newest version", Provides: named, Needs: repository,
			New: func() apply.Action {
				return &Latest{Refreshing: newRefreshing(), Configuring: newConfiguring(), Locking: newLocking()}
			},
		},
		{
			Name: "pkg.removed", Summary: "packages that are not installed", Provides: named, Needs: repository,
			New: func() apply.Action { return &Removed{Locking: newLocking()} },
		},
		{
			Name: "pkg.uptodate", Summary: "all packages in the newest version", Needs: repository,
			New: func() apply.Action {
				return &Uptodate{Refreshing: newRefreshing(), Configuring: newConfiguring(), Locking: newLocking()}
			},
		},
		{
			Name: "pkgrepo.managed", Summary: "a package repository that the host uses", Provides: repository,
			New: func() apply.Action { return &RepoManaged{Enabled: true, Refresh: true, Locking: newLocking()} },
		},
		{
			Name: "pkgrepo.absent", Summary: "a package repository that the host does not use", Provides: repository,
			New: func() apply.Action { return &RepoAbsent{Locking: newLocking()} },
		},
	}
}

// repository is what every package may come from: which one it comes from is not known before the repositories are
// there.
func repository(render.Params) []string { return []string{"package repository"} }
