// Package file manages files: whole ones, parts of text files, directories and links.
package file

import (
	"path"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/render"
)

// Actions lists the actions of this package in the order of the documentation.
func Actions() []apply.Spec {
	return []apply.Spec{
		{
			Name: "file.managed", Summary: "a regular file with this content, owner and mode",
			Needs: surroundings, New: func() apply.Action { return &Managed{Replace: true} },
			Shows: apply.Shown{
				Params: []string{"validate"},
				Where:  "every user of the host can read the arguments of commands (ps)",
			},
		},
		{
			Name: "file.line", Summary: "a line in a text file",
			Needs: surroundings, New: func() apply.Action { return &Line{State: present} },
		},
		{
			Name: "file.block", Summary: "a text between two marker lines of a file",
			Needs: surroundings, New: func() apply.Action { return &Block{State: present} },
		},
		{
			Name: "file.directory", Summary: "a directory with this owner and mode",
			Provides: itself, Needs: surroundings, New: func() apply.Action { return &Directory{} },
		},
		{
			Name: "file.symlink", Summary: "a symbolic link to this target",
			Needs: surroundings, New: func() apply.Action { return &Symlink{} },
		},
		{
			Name: "file.absent", Summary: "nothing at this path", NoFiles: true,
			Needs: surroundings, New: func() apply.Action { return &Absent{} },
		},
		{
			Name: "file.content", Summary: "a file of this host, read for later steps", Passive: true,
			Needs: surroundings, New: func() apply.Action { return &Content{Recursive: true} },
		},
	}
}

// itself is the directory that a step makes.
func itself(p render.Params) []string { return []string{"directory " + path.Clean(p.Text("name"))} }

// surroundings are the directories above a file, its owner and its group.
func surroundings(p render.Params) []string {
	var out []string
	for dir := path.Dir(path.Clean(p.Text("name"))); path.IsAbs(dir) && dir != "/"; dir = path.Dir(dir) {
		out = append(out, "directory "+dir)
	}
	if owner := p.Text("owner"); owner != "" {
		out = append(out, "user "+owner)
	}
	if group := p.Text("group"); group != "" {
		out = append(out, "group "+group)
	}
	return out
}
