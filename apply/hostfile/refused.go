package hostfile

import "fmt"

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

// replacedError is what somebody exchanged while it was worked on.
type replacedError struct{ *FileRefused }

// Unwrap is the refusal.
func (e replacedError) Unwrap() error { return e.FileRefused }

func replaced(path string) error {
	return replacedError{&FileRefused{
		path,
		"was replaced by another program at the same moment",
		"find the program that writes there, then pull again",
	}}
}
