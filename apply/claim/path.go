package claim

import (
	"path"
	"strings"
)

// State is what a path may be: a set of kinds of files.
type State uint8

// The states of paths.
const (
	Absent    State = 1 << iota // nothing is there
	Regular                     // a file
	Directory                   // a directory
	Link                        // a symbolic link

	File   = Regular | Link             // a file, or a link that is followed
	Tree   = Directory | Link           // a directory, or a link that is followed
	Exists = Regular | Directory | Link // anything
)

// fileKind is the kind of the things that are paths.
const fileKind = "file"

// state is what a path is.
type state struct {
	kinds  State
	spares bool // what is absent is only an empty directory: what lies in it stays
}

func (w state) key() string     { return "state " + w.text() }
func (w state) texts() []string { return nil }

func (w state) words(aspect string) (full, bare string) { return exactly(w.text()).words(aspect) }

func (w state) text() string {
	switch {
	case w.spares:
		return "absent if empty"
	case w.kinds == Absent:
		return "absent"
	case w.kinds == Link:
		return "link"
	case w.kinds == Tree, w.kinds == Directory:
		return "directory"
	case w.kinds == Exists:
		return "present"
	}
	return "file"
}

// Path returns the file or directory at a path as a thing. In a path that begins with ~USER that is the user's home.
func Path(name string) Thing { return Of(fileKind, path.Clean(name)) }

// Are claims what a path is.
func (t Thing) Are(kinds State) Claim { return t.claim("state", state{kinds: kinds}) }

// AbsentIfEmpty claims that there is no file at a path, and no empty directory.
func (t Thing) AbsentIfEmpty() Claim { return t.claim("state", state{Absent, true}) }

// exists returns the state of a claim that something is at a path.
func (c Claim) exists() bool {
	s, ok := c.want.(state)
	return ok && c.Kind == fileKind && s.kinds&Absent == 0
}

// closes reports a claim because of which nothing can lie below a path.
func (c Claim) closes() bool {
	s, ok := c.want.(state)
	return ok && c.Kind == fileKind && s.kinds&Tree == 0 && !s.spares
}

// homes finds the homes of users in the claims of all steps.
func homes(steps [][]Claim) map[string]string {
	out, usual := map[string]string{"root": "/root"}, map[string]string{}
	for _, claims := range steps {
		for _, c := range claims {
			home, ok := c.want.(exactly)
			switch {
			case !ok || c.Kind != "user":
			case c.Aspect == "home":
				out[c.Name] = string(home)
			case c.Aspect == "state" && home == "present":
				usual[c.Name] = "/home/" + c.Name
			}
		}
	}
	for name, home := range usual {
		if out[name] == "" {
			out[name] = home
		}
	}
	return out
}

// placed returns a claim with the path of a home in place of ~USER. It is false where that home is not known.
func (c Claim) placed(homes map[string]string) (Claim, bool) {
	below, found := strings.CutPrefix(c.Name, "~")
	if c.Kind != fileKind || !found {
		return c, true
	}
	user, rest, _ := strings.Cut(below, "/")
	home := homes[user]
	c.Name = path.Join(home, rest)
	return c, home != ""
}
