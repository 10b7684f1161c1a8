package authority

import (
	"fmt"

	"github.com/pullet/pullet/internal/safetext"
)

// maxReason is the longest reason of a refusal that is shown, in bytes.
const maxReason = 1000

// Refusal is an error whose reason the one who asked may know. Join returns the server's in its own error.
type Refusal struct {
	Reason string
}

func (r *Refusal) Error() string { return safetext.Line(r.Reason, maxReason) }

func refusal(format string, args ...any) *Refusal {
	return &Refusal{Reason: fmt.Sprintf(format, args...)}
}
