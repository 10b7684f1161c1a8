package action

import (
	"io/fs"

	"github.com/pullet/pullet/apply"
)

// TreeModes are the modes of what is below a directory.
type TreeModes struct {
	FileMode string `yaml:"fileMode"` // octal, of the files below the directory
	DirMode  string `yaml:"dirMode"`  // octal, of the directories below it
}

func (m TreeModes) check() error {
	for param, text := range map[string]string{"fileMode": m.FileMode, "dirMode": m.DirMode} {
		if err := checkMode(param, text); err != nil {
			return err
		}
	}
	return nil
}

// treeWanted is what the kinds of files in a tree shall have.
type treeWanted struct{ file, exec, dir wanted }

// tree looks up what owner and modes mean for a tree. A mode without x gets it for directories and executable files, where it has r.
func (p Permissions) tree(h *apply.Host, m TreeModes) (treeWanted, error) {
	w, err := p.wanted(h)
	if err != nil {
		return treeWanted{}, err
	}
	out := treeWanted{w, w, w}
	out.exec.mode |= (w.mode & 0o444) >> 2
	out.dir.mode = out.exec.mode
	if !w.setMode {
		out.file.mode, out.exec.mode, out.dir.mode = newFileMode, 0o755, 0o755 // of new ones: orOf
	}
	if m.FileMode != "" {
		mode, err := (Permissions{Mode: m.FileMode}).mode()
		if err != nil {
			return out, err
		}
		for _, one := range []*wanted{&out.file, &out.exec} {
			one.mode, one.setMode = mode, true
		}
	}
	if m.DirMode != "" {
		out.dir.mode, err = (Permissions{Mode: m.DirMode}).mode()
		out.dir.setMode = true
	}
	return out, err
}

// of is what a file of a tree shall have. One that came from another host has the mode that it had there; 0 is none.
func (w treeWanted) of(mode fs.FileMode, exec bool) wanted {
	switch {
	case mode != 0 && !w.file.setMode:
		own := w.file
		own.mode, own.setMode = mode, true
		return own
	case exec:
		return w.exec
	}
	return w.file
}
