package render

import (
	"bytes"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// FleetFile has the settings of the fleet.
const FleetFile = "pullet.yaml"

// TextFile is a file of the repository as text.
type TextFile struct {
	Dir  string // jobs, vars, ...; pullet.yaml itself
	Name string // below Dir
	Path string // in its layer
	Real string // Path without links; the same for all links to a file
	Text string // "" where the file is none, or too large
	src  *source
}

// Pos is the position of a byte offset; a negative one is the file as a whole.
func (f TextFile) Pos(offset int) Position {
	if offset < 0 {
		return Position{File: f.src.path}
	}
	return f.src.pos(offset)
}

// WarningAt is a warning at a byte offset, with its line; a negative one is the file as a whole.
func (f TextFile) WarningAt(offset int, format string, args ...any) *Error {
	e := f.src.errorAt(f.Pos(offset), format, args...)
	e.Severity = Warning
	return e
}

// maxSearched bounds the files that are searched: beyond it they are data.
const maxSearched = 1 << 20

// Texts are all text files of the repository that mean something to it.
func (r *Repository) Texts() []TextFile {
	var out []TextFile
	for _, l := range r.layers {
		for _, dir := range []string{FleetFile, "nodes", "base", "vars", "macros", "jobs", "files", "events", "reactions"} {
			// A folder that a layer does not have is an empty one.
			_ = fs.WalkDir(l.FS, dir, func(p string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
					return nil
				}
				f := TextFile{Dir: dir, Name: strings.TrimPrefix(p, dir+"/"), Path: p, Real: p}
				if info, err := d.Info(); err == nil && info.Size() <= maxSearched {
					f.Text = readText(l.FS, p)
					if at, known := info.Sys().(string); known {
						f.Real = at
					}
				}
				f.src = &source{path: r.displayName(place{l, p}), text: f.Text}
				out = append(out, f)
				return nil
			})
		}
	}
	return out
}

// readText is a file's text; "" where it has none.
func readText(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return ""
	}
	return string(text)
}

// WasRead reports that a catalog needed a file of some layer.
func (r *Repository) WasRead(name string) bool {
	for _, l := range r.layers {
		if r.parsed[l.Name+"\x00"+name] != nil {
			return true
		}
	}
	return false
}

// Layers are the state repositories, in their order.
func (r *Repository) Layers() []Layer { return r.layers }

// DisplayName is how messages name a file of a layer.
func (r *Repository) DisplayName(l Layer, path string) string { return r.displayName(place{l, path}) }

// WarningAt is a warning at a position of a file that a catalog needed, with its line.
func (r *Repository) WarningAt(pos Position, format string, args ...any) *Error {
	e := r.byPath[pos.File].errorAt(pos, format, args...)
	e.Severity = Warning
	return e
}
