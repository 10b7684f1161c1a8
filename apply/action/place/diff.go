package place

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/pullet/pullet/internal/safetext"
)

// The most of a diff that is kept, and the largest text that is compared line by line.
const (
	maxDiffLines = 400
	maxDiffText  = 1 << 20
)

// Diff is a unified diff from old to new, or the sizes and digests of what is no text.
func Diff(name string, old, new []byte) string {
	if !isText(old) || !isText(new) {
		return fmt.Sprintf("binary: %s -> %s\n", describe(old), describe(new))
	}
	diff := unified(name, string(old), string(new))
	lines := strings.SplitAfter(diff, "\n")
	if len(lines) > maxDiffLines {
		return strings.Join(lines[:maxDiffLines], "") + fmt.Sprintf("... %d more lines\n", len(lines)-maxDiffLines)
	}
	return diff
}

// unified is a unified diff. In a new file there is nothing to search for.
func unified(name, old, new string) string {
	name = safetext.OneLine(name)
	was, shall := name+" (current)", name+" (desired)"
	if old != "" || new == "" {
		return udiff.Unified(was, shall, old, new)
	}
	diff, err := udiff.ToUnified(was, shall, "", []udiff.Edit{{New: new}}, udiff.DefaultContextLines)
	if err != nil { // it would be a fault of the library
		return err.Error() + "\n"
	}
	return diff
}

func isText(data []byte) bool {
	return len(data) <= maxDiffText && !bytes.ContainsRune(data, 0) && utf8.Valid(data)
}

func describe(data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%d bytes sha256:%x", len(data), sum[:6])
}
