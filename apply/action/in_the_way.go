package action

import "fmt"

// inTheWay is what stands on the host where a step wants something else: a directory for a file, a pipe, a file too large to read. A
// local user can put it there, so it says nothing about the other hosts.
type inTheWay struct{ error }

// HostFault is true: see apply.FaultOf.
func (inTheWay) HostFault() bool { return true }

func (e inTheWay) Unwrap() error { return e.error }

// blocked is fmt.Errorf for what is in the way.
func blocked(format string, args ...any) error { return inTheWay{fmt.Errorf(format, args...)} }
