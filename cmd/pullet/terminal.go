package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"

	"github.com/pullet/pullet/internal/safetext"
)

// own writes the program's own control sequences where everything else is made harmless.
func own(w io.Writer, text string) {
	if s, ok := w.(*stream); ok {
		_ = s.Own(text) // as with every line for people
		return
	}
	_, _ = io.WriteString(w, text)
}

// fileOf is the file behind a writer, if there is one.
func fileOf(w io.Writer) (*os.File, bool) {
	if s, ok := w.(*stream); ok {
		w = s.To
	}
	f, ok := w.(*os.File)
	return f, ok
}

// ownWriter is for what was made harmless before, such as lines of the log with their colours.
type ownWriter struct{ to io.Writer }

func (w ownWriter) Write(p []byte) (int, error) {
	own(w.to, string(p))
	return len(p), nil
}

// harmless formats lines of the log whose texts a terminal only shows.
type harmless struct{ logrus.Formatter }

func (h harmless) Format(e *logrus.Entry) ([]byte, error) {
	e.Message = safetext.Text(e.Message)
	for key, value := range e.Data {
		switch v := value.(type) {
		case string:
			e.Data[key] = safetext.Text(v)
		case error:
			e.Data[key] = safetext.Text(v.Error())
		}
	}
	return h.Formatter.Format(e)
}

// printJSON prints a value as JSON; what a terminal would obey is escaped.
func printJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range text.String() {
		if r >= 0x7f && safetext.Obeyed(string(r)) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}
