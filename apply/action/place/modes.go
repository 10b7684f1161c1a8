package place

import (
	"io/fs"

	"github.com/pullet/pullet/apply"
)

// TreeModes are the modes of what is below a directory.
type TreeModes struct {
	FileMode string `yaml:"fileMode"` // octal, of the files below the directory
	DirMode  string `yaml:"dirMode"`  // octal, of the directories below it
}

// CheckModes finds a mode that is not one: an *apply.ParamError.
func (m TreeModes) CheckModes() error {
	for param, text := range map[string]string{"fileMode": m.FileMode, "dirMode": m.DirMode} {
		if err := checkMode(param, text); err != nil {
			return err
		}
	}
	return nil
}

// Tree is what the kinds of files in a tree shall have.
type Tree struct{ File, Exec, Dir Wanted }

// Tree looks up what owner and modes mean for a tree. A mode without x gets it for directories and executable files,
// where it has r.
func (p Permissions) Tree(h *apply.Host, m TreeModes) (Tree, error) {
	w, err := p.Wanted(h)
	if err != nil {
		return Tree{}, err
	}
	out := Tree{w, w, w}
	out.Exec.Mode |= (w.Mode & 0o444) >> 2
	out.Dir.Mode = out.Exec.Mode
	if !w.SetMode {
		out.File.Mode, out.Exec.Mode, out.Dir.Mode = NewMode, 0o755, 0o755 // of new ones: orOf
	}
	if m.FileMode != "" {
		mode, err := (Permissions{Mode: m.FileMode}).mode()
		if err != nil {
			return out, err
		}
		for _, one := range []*Wanted{&out.File, &out.Exec} {
			one.Mode, one.SetMode = mode, true
		}
	}
	if m.DirMode != "" {
		out.Dir.Mode, err = (Permissions{Mode: m.DirMode}).mode()
		out.Dir.SetMode = true
	}
	return out, err
}

// Of is what a file of a tree shall have. One that came from another host has the mode that it had there; 0 is none.
func (w Tree) Of(mode fs.FileMode, exec bool) Wanted {
	switch {
	case mode != 0 && !w.File.SetMode:
		own := w.File
		own.Mode, own.SetMode = mode, true
		return own
	case exec:
		return w.Exec
	}
	return w.File
}
