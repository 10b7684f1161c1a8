package lint

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
)

// What pullet reads of a repository: directories and files at its top, and files in base.
var (
	topNames = []string{
		"base",
		"files",
		"nodes",
		"vars",
		"macros",
		"jobs",
		"events",
		"reactions",
		"extensions",
		render.FleetFile,
		render.SecretsFile,
	}
	baseNames = []string{"vars.yaml", "macros.yaml", "jobs.yaml", "services.yaml", "events.yaml", "config.yaml"}
)

// strays are YAML files that nothing reads because of their name or place.
func strays(r *render.Repository) render.ErrorList {
	var out render.ErrorList
	for _, l := range r.Layers() {
		list, _ := fs.ReadDir(l.FS, ".") // an unreadable layer fails elsewhere
		for _, d := range list {
			if hint, stray := strayAtTop(l.FS, d); stray {
				out = append(out, strayed(r, l, d.Name(), d.IsDir(), hint))
			}
		}
		for _, dir := range []string{"base", "vars", "macros", "jobs", "events", "reactions", "nodes"} {
			out = append(out, straysBelow(r, l, dir)...)
		}
	}
	return out
}

func strayed(r *render.Repository, l render.Layer, name string, dir bool, hint string) *render.Error {
	what := "file"
	if dir {
		what = "directory"
	}
	return &render.Error{
		Pos: render.Position{File: r.DisplayName(l, name)}, Severity: render.Warning,
		Message: "pullet does not read this " + what, Hint: hint,
	}
}

// strayAtTop judges an entry at the top of a repository. What holds no YAML, such as documentation, may have any name.
func strayAtTop(files fs.FS, d fs.DirEntry) (hint string, stray bool) {
	name := d.Name()
	near, later := render.Nearest(name, topNames), ""
	if near != name && (d.IsDir() || render.IsYAML(name)) {
		later = render.LaterHint(files, name)
	}
	switch {
	case near == name, strings.HasPrefix(name, "."):
		return "", false
	case later != "" && near == "":
		return later, true
	case near != "":
		return fmt.Sprintf("did you mean %s?", near), true
	case d.IsDir():
		return "it reads " + strings.Join(topNames, ", ") + "; what steps place on hosts belongs in files", holdsYAML(
			files,
			name,
		)
	}
	hint = "settings of the fleet belong in pullet.yaml, settings of a host in its own /etc/pullet/pullet.yaml"
	return hint, render.IsYAML(name)
}

// holdsYAML reports a YAML file anywhere below a directory.
func holdsYAML(files fs.FS, dir string) bool {
	found := false
	// A directory that cannot be read fails elsewhere.
	_ = fs.WalkDir(files, dir, func(p string, d fs.DirEntry, err error) error {
		if found = found || err == nil && d.Type().IsRegular() && render.IsYAML(p); found {
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// notes are the extensions of files that people write beside the ones that are read.
var notes = []string{"", ".md", ".txt", ".rst", ".adoc"}

// straysBelow are the files of a directory that are not among those that it is read for.
func straysBelow(r *render.Repository, l render.Layer, dir string) render.ErrorList {
	var out render.ErrorList
	// A directory that a layer does not have is an empty one.
	_ = fs.WalkDir(l.FS, dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return nil
		}
		switch {
		case dir == "base" && path.Dir(p) == dir:
			if hint, stray := strayInBase(l.FS, d.Name()); stray {
				out = append(out, strayed(r, l, p, false, hint))
			}
		case dir == "vars" && render.IsYAML(strings.TrimSuffix(p, render.SealedSuffix)):
		case !render.IsYAML(p) && !slices.Contains(notes, path.Ext(p)):
			out = append(out, strayed(r, l, p, false, "files in "+dir+" end with .yaml"))
		case dir == "base":
			out = append(out, strayed(r, l, p, false, "base has no directories"))
		}
		return nil
	})
	return out
}

func strayInBase(files fs.FS, name string) (hint string, stray bool) {
	near := render.Nearest(name, baseNames)
	if near == name {
		return "", false
	}
	switch later := render.LaterHint(files, "base/"+name); {
	case later != "" && near == "":
		return later, true
	case near != "":
		return fmt.Sprintf("did you mean base/%s?", near), true
	}
	return "it reads " + strings.Join(baseNames, ", ") + " there", !slices.Contains(notes, path.Ext(name))
}
