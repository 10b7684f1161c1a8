// Package file manages files: whole ones, parts of text files, directories and links.
package file

import "github.com/pullet/pullet/apply"

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{Name: "file.managed", Summary: "a regular file with this content, owner and mode", New: func() apply.Action { return &Managed{Replace: true} }},
		{Name: "file.line", Summary: "a line in a text file", New: func() apply.Action { return &Line{State: present} }},
		{Name: "file.block", Summary: "a text between two marker lines of a file", New: func() apply.Action { return &Block{State: present} }},
		{Name: "file.directory", Summary: "a directory with this owner and mode", New: func() apply.Action { return &Directory{} }},
		{Name: "file.symlink", Summary: "a symbolic link to this target", New: func() apply.Action { return &Symlink{} }},
		{Name: "file.absent", Summary: "nothing at this path", NoFiles: true, New: func() apply.Action { return &Absent{} }},
		{Name: "file.content", Summary: "a file of this host, read for later steps", Passive: true, New: func() apply.Action { return &Content{Recursive: true} }},
	}
}
