package passwd

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/internal/lazyregexp"
)

// File is the lines of the host's passwd, group or shadow file, in their order.
type File []Line

// Line is one line, split at its colons.
type Line []string

// The places of what stands in a line of each file.
const (
	ID           = 2 // of passwd and group
	GID          = 3 // of passwd
	membersField = 3 // of group
	Comment      = 4
	Home         = 5
	Shell        = 6
	Expires      = 7 // of shadow
)

// Read reads one of the host's own files: passwd, group, shadow.
func Read(h *apply.Host, file string) (File, error) {
	path, err := h.Resolve("/etc/" + file)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(string(data)), nil
}

func parse(text string) File {
	var out File
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && line[0] != '#' {
			out = append(out, strings.Split(line, ":"))
		}
	}
	return out
}

// Named is the first line of this name, or nil.
func (f File) Named(name string) Line {
	for _, a := range f {
		if a[0] == name {
			return a
		}
	}
	return nil
}

// Numbered is the first line with this number, or nil.
func (f File) Numbered(id int) Line {
	for _, a := range f {
		if n, ok := a.Number(ID); ok && n == id {
			return a
		}
	}
	return nil
}

// Refers is the line that a name or a number in the place of one means, or nil.
func (f File) Refers(text string) Line {
	if found := f.Named(text); found != nil {
		return found
	}
	if id, err := strconv.Atoi(text); err == nil {
		return f.Numbered(id)
	}
	return nil
}

// Field is the text at a place; short lines are empty at their end.
func (l Line) Field(i int) string {
	if i < len(l) {
		return l[i]
	}
	return ""
}

// Number is the number at a place; false where there is none.
func (l Line) Number(i int) (int, bool) {
	n, err := strconv.Atoi(l.Field(i))
	return n, err == nil && n >= 0
}

// Members are the names in a line of the group file.
func (l Line) Members() []string {
	return strings.FieldsFunc(l.Field(membersField), func(r rune) bool { return r == ',' })
}

// GroupsOf are the names of the groups whose lines name a user.
func (f File) GroupsOf(user string) []string {
	var out []string
	for _, g := range f {
		if slices.Contains(g.Members(), user) {
			out = append(out, g[0])
		}
	}
	return out
}

// accountName is what every distribution takes as the name of a user or group.
var accountName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}[A-Za-z0-9_.$-]?$`)

// CheckName is the check of a name while an action is bound.
func CheckName(param, name string) error {
	if !accountName.MatchString(name) {
		return apply.BadParam(
			param,
			"%q is no name for an account: letters, digits, _ . and - after a letter or _, at most 32",
			name,
		)
	}
	return nil
}
