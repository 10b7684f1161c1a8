package datastore

import (
	"slices"

	"github.com/pullet/pullet/internal/durable"
	"github.com/pullet/pullet/state"
)

// shutFile names those who were shut out and of whom that is not on record yet.
const shutFile = "shut.json"

// notes are the file.
type notes struct{ Config }

// read reads the names. While they cannot be read the keeper does nothing: it would let them in.
func (n notes) read() (names []string, err error) {
	err = durable.ReadJSON(n.file(shutFile), &names)
	return names, err
}

// mark adds the names, which it returns, to those whom an operator revokes.
func (n notes) mark(c state.Credentials) ([]string, error) {
	names, err := n.read()
	for _, name := range names {
		c.Revoking[name] = true
	}
	return names, err
}

// add notes a name.
func (n notes) add(name string) error {
	names, err := n.read()
	if err != nil || slices.Contains(names, name) {
		return err
	}
	return durable.WriteJSON(n.file(shutFile), append(names, name))
}

// remove removes a name, where it is noted.
func (n notes) remove(name string) error {
	names, err := n.read()
	if err != nil || !slices.Contains(names, name) {
		return err
	}
	return durable.WriteJSON(n.file(shutFile), without(names, []string{name}))
}
