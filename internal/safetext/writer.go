package safetext

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Writer makes everything that is written harmless to a terminal, as Text does. It is safe for concurrent use.
type Writer struct {
	To io.Writer // behind it

	mu   sync.Mutex
	rest []byte // the beginning of a character
}

// Write writes text. A character may come in parts.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for i := max(0, end-utf8.UTFMax+1); i < end; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			end = i
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.To, Text(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Own writes the program's own control sequences, with texts that were made harmless before.
func (w *Writer) Own(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := io.WriteString(w.To, text)
	return err
}
