package program

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Continue goes on as the installed program, with the arguments and the environment of this process and under its pid.
// It returns only an error. Files that this process still has open are closed.
func Continue() error {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	return fmt.Errorf("the new pullet cannot be started: %w", err)
}
