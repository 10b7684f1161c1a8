package apply

// UntrustedError says that a plan left out what the state repository wants to run, so the answer is not known.
type UntrustedError struct {
	What string // such as "unless"
}

func (e *UntrustedError) Error() string { return e.What + " was not run" }
