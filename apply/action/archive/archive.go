// Package archive extracts archives into directories.
package archive

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name:    "archive.extracted",
			Summary: "a directory with what an archive holds",
			New:     func() apply.Action { return &Extracted{} },
		},
	}
}
