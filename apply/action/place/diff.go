package place

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
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
	diff := udiff.Unified(name+" (current)", name+" (desired)", string(old), string(new))
	lines := strings.SplitAfter(diff, "\n")
	if len(lines) > maxDiffLines {
		return strings.Join(lines[:maxDiffLines], "") + fmt.Sprintf("... %d more lines\n", len(lines)-maxDiffLines)
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
