// Package git checks out git repositories.
package git

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{Name: "git.checkout", Summary: "a directory with the files of a git repository", New: newCheckout},
	}
}
