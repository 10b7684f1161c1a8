package puller

import (
	"errors"
	"fmt"
)

// contentError is a fault of what was committed, not of the store: building it
// anew would not help.
type contentError struct{ path, text string } // path may be empty

func (e contentError) Error() string {
	if e.path != "" {
		return fmt.Sprintf("path %q: %s", e.path, e.text)
	}
	return e.text
}

// atFault says whether an error is a fault of what was committed.
func atFault(err error) bool {
	_, ok := errors.AsType[contentError](err)
	return ok
}

func tooLarge(size, limit int64, err error) error {
	if err != nil {
		return err
	}
	return contentError{text: fmt.Sprintf("%d bytes, larger than the limit of %d MiB", size, limit>>20)}
}

// Refused returns the path and the reason for which every host refuses the content of a tree, if the error says that.
// The path may be empty.
func Refused(err error) (path, why string, refused bool) {
	e, refused := errors.AsType[contentError](err)
	return e.path, e.text, refused
}
