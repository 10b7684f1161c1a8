package hostfile

import (
	"errors"
	"fmt"
)

// LinkRefused is a symbolic link on the way to a file that is not followed. It is a fault of the host and not of what
// the fleet was told.
type LinkRefused struct {
	Path   string // of the link
	Target string // what it says
	UID    int    // who owns it
	Why    string
	Cure   string
}

func (e *LinkRefused) Error() string {
	return fmt.Sprintf("%s is a symbolic link to %s and is not followed: %s; %s", e.Path, e.Target, e.Why, e.Cure)
}

// HostFault is true: see apply.FaultOf.
func (e *LinkRefused) HostFault() bool { return true }

// FileRefused is a file that is neither read nor changed as it stands there. It is a fault of the host and not of what
// the fleet was told.
type FileRefused struct {
	Path string
	Why  string
	Cure string
}

func (e *FileRefused) Error() string { return fmt.Sprintf("%s %s; %s", e.Path, e.Why, e.Cure) }

// HostFault is true: see apply.FaultOf.
func (e *FileRefused) HostFault() bool { return true }

// ErrReplaced says that what was found is not what was opened: somebody exchanged it in between.
var ErrReplaced = errors.New("was replaced while it was opened")

// looks is how often a file is looked at that a program replaces again and again.
const looks = 16

// WhileReplaced looks at a file again while look fails with ErrReplaced. Editors replace a file by a rename: which file
// has the name may change between two calls.
func WhileReplaced(look func() error) (err error) {
	for range looks {
		if err = look(); !errors.Is(err, ErrReplaced) {
			break
		}
	}
	return err
}

// replacedError is what somebody exchanged while it was worked on: an ErrReplaced.
type replacedError struct{ *FileRefused }

// Unwrap is the refusal.
func (e replacedError) Unwrap() error { return e.FileRefused }

// Is reports ErrReplaced.
func (e replacedError) Is(target error) bool { return target == ErrReplaced }

func replaced(path string) error {
	return replacedError{&FileRefused{
		path,
		"was replaced by another program at the same moment",
		"find the program that writes there, then pull again",
	}}
}
