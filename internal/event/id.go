package event

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// NewID is the id of an event: its time, so that ids sort, and chance enough for all hosts of a fleet at once.
func NewID() string {
	b := make([]byte, 6)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return time.Now().UTC().Format("20060102T150405Z") + "-" + hex.EncodeToString(b)
}
