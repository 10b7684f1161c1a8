package state

// Ends is who or what ends a wait, or fixes a failure. Decisions read it, and people read the text beside it.
type Ends string

// What ends a wait.
const (
	EndsItself Ends = "itself" // other nodes, or the next pull
	EndsInTime Ends = "time"   // the time that the text names
	EndsByAct  Ends = "act"    // an operator
)

// Remedy is what ends a wait, or fixes a failure.
type Remedy struct {
	Ends  Ends   `json:"ends,omitempty"`  // empty: there is no remedy
	Clear string `json:"clear,omitempty"` // the command, the act or the time
}

// noAction is what clears a wait that ends without anybody.
const noAction = "no action needed"

// NoAction is the remedy of what ends without anybody.
func NoAction() Remedy { return Itself(noAction) }

// Itself is the remedy of what ends without anybody, in the given words.
func Itself(text string) Remedy { return Remedy{EndsItself, text} }

// InTime is the remedy of what ends at a time, which the text names.
func InTime(text string) Remedy { return Remedy{EndsInTime, text} }

// Act is what an operator has to do.
func Act(text string) Remedy { return Remedy{EndsByAct, text} }

// Itself reports that nobody has to act.
func (r Remedy) Itself() bool { return r.Ends == EndsItself }

// Stays reports that other nodes cannot end the wait.
func (r Remedy) Stays() bool { return r.Ends == EndsByAct || r.Ends == EndsInTime }

// known reports a remedy of a kind that this pullet knows.
func (r Remedy) known() bool {
	return r.Ends == "" || r.Ends == EndsItself || r.Ends == EndsInTime || r.Ends == EndsByAct
}
