package program

import (
	"fmt"
	"os"
	"syscall"
)

// Continue goes on as the installed program, with these arguments, the environment of this process and its pid. It
// returns only an error. Files that this process still has open are closed.
func (i *Installed) Continue(args []string) error {
	err := syscall.Exec(i.Path, append([]string{os.Args[0]}, args...), os.Environ())
	return fmt.Errorf("the new pullet cannot be started: %w", err)
}
