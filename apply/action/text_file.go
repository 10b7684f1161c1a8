package action

import (
	"context"
	"fmt"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// maxTextFile bounds the files of the system that are read.
const maxTextFile = 64 << 20

// textFile is a file of the host as it was found, of which an action changes a part. A link is followed, beneath the root.
type textFile struct {
	name  string // as messages name it
	path  string // where it leads, beneath the root
	text  string
	there bool
}

// readText reads a file that need not be there.
func readText(h *apply.Host, name string) (textFile, error) {
	at, err := h.Follow(name)
	if err != nil {
		return textFile{}, err
	}
	defer at.Close()
	data, err := at.ReadFile(maxTextFile)
	if err != nil && !hostfile.NotThere(err) {
		return textFile{}, named(name, err)
	}
	return textFile{name, at.Path(), string(data), err == nil}, nil
}

// named says which file an error is about, if it does not.
func named(name string, err error) error {
	if plain := plainError(err); plain != err {
		return fmt.Errorf("%s: %w", name, plain)
	}
	return err
}

// replace gives the file another text. Its owner and mode stay; a new file and missing directories get the usual ones. Undo puts back what
// was there.
func (f textFile) replace(ctx context.Context, h *apply.Host, text string) (undo func() error, err error) {
	if f.there && f.text == text {
		return func() error { return nil }, nil
	}
	if err := f.write(ctx, h, text); err != nil {
		return nil, err
	}
	if !f.there {
		return func() error { return removeFile(h, f.path) }, nil
	}
	return func() error { return f.write(context.WithoutCancel(ctx), h, f.text) }, nil
}

func (f textFile) write(ctx context.Context, h *apply.Host, text string) error {
	w, err := Permissions{}.wanted(h)
	if err != nil {
		return err
	}
	at, err := h.Entry(f.path)
	if err != nil {
		return err
	}
	defer at.Close()
	one := oneFile{name: f.path, at: at, want: desired{data: []byte(text)}, w: w}
	if is, err := one.check(); err != nil || is.Empty() {
		return err
	}
	return one.apply(ctx, h, Placing{MakeDirs: true})
}

// remove takes the file away. Undo puts it back.
func (f textFile) remove(ctx context.Context, h *apply.Host) (undo func() error, err error) {
	if !f.there {
		return func() error { return nil }, nil
	}
	if err := removeFile(h, f.path); err != nil {
		return nil, err
	}
	return func() error { return f.write(context.WithoutCancel(ctx), h, f.text) }, nil
}

// diff is from what the file says to another text.
func (f textFile) diff(text string) string {
	if f.there && f.text == text {
		return ""
	}
	return textDiff(f.name, []byte(f.text), []byte(text))
}

// withLine is a text with one more line at its end.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line + "\n"
}

// putBack is an error after which things were put back, or not.
func putBack(err error, undo func() error) error {
	if failed := undo(); failed != nil {
		return fmt.Errorf("%w; and what was there could not be put back: %w", err, failed)
	}
	return err
}

// live reports that the root is the machine itself and not a directory that stands for one.
func live(h *apply.Host) bool { return h.Root == "/" }

// checkText compares a text file with what an edit makes of it.
func checkText(h *apply.Host, name, summary string, edit func(string) string) (apply.Change, error) {
	file, err := readText(h, name)
	if err != nil {
		return apply.Change{}, err
	}
	if want := edit(file.text); want != file.text {
		return apply.Change{Summary: strings.Join(strings.Fields(summary), " "), Diff: file.diff(want)}, nil
	}
	return apply.Change{}, nil
}

// editText replaces a text file by what an edit makes of it, which nobody else of this run edits meanwhile.
func editText(ctx context.Context, h *apply.Host, name string, edit func(string) string) error {
	unlock, err := h.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := readText(h, name)
	if err != nil {
		return err
	}
	_, err = file.replace(ctx, h, edit(file.text))
	return err
}
