package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// WithoutPath is an error without the path on this machine, which the reader knows by another name.
func WithoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// MaxText bounds the files of the system that are read.
const MaxText = 64 << 20

// Text is a file of the host as it was found, of which an action changes a part. A link is followed, beneath the root.
type Text struct {
	Name  string // as messages name it
	path  string // where it leads, beneath the root
	Text  string
	There bool // false: there is no such file yet
}

// ReadText reads a file that need not be there.
func ReadText(h *apply.Host, name string) (Text, error) {
	at, err := h.Follow(name)
	if err != nil {
		return Text{}, err
	}
	defer at.Close()
	data, err := at.ReadFile(MaxText)
	if err != nil && !hostfile.NotThere(err) {
		return Text{}, named(name, err)
	}
	return Text{name, at.Path(), string(data), err == nil}, nil
}

// named says which file an error is about, if it does not.
func named(name string, err error) error {
	if plain := WithoutPath(err); plain != err {
		return fmt.Errorf("%s: %w", name, plain)
	}
	return err
}

// Replace gives the file another text. Its owner and mode stay; a new file and missing directories get the usual ones.
// Undo puts back what was there.
func (f Text) Replace(ctx context.Context, h *apply.Host, text string) (undo func() error, err error) {
	if f.There && f.Text == text {
		return func() error { return nil }, nil
	}
	if err := f.write(ctx, h, text); err != nil {
		return nil, err
	}
	if !f.There {
		return func() error { return Remove(h, f.path) }, nil
	}
	return func() error { return f.write(context.WithoutCancel(ctx), h, f.Text) }, nil
}

func (f Text) write(ctx context.Context, h *apply.Host, text string) error {
	w, err := Permissions{}.Wanted(h)
	if err != nil {
		return err
	}
	at, err := h.Entry(f.path)
	if err != nil {
		return err
	}
	defer at.Close()
	one := File{Name: f.path, At: at, Want: Content{Data: []byte(text)}, Wanted: w}
	if is, err := one.Check(); err != nil || is.Empty() {
		return err
	}
	return one.Apply(ctx, h, Placing{MakeDirs: true})
}

// Remove takes the file away. Undo puts it back.
func (f Text) Remove(ctx context.Context, h *apply.Host) (undo func() error, err error) {
	if !f.There {
		return func() error { return nil }, nil
	}
	if err := Remove(h, f.path); err != nil {
		return nil, err
	}
	return func() error { return f.write(context.WithoutCancel(ctx), h, f.Text) }, nil
}

// Diff is from what the file says to another text.
func (f Text) Diff(text string) string {
	if f.There && f.Text == text {
		return ""
	}
	return Diff(f.Name, []byte(f.Text), []byte(text))
}

// WithLine is a text with one more line at its end.
func WithLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line + "\n"
}

// PutBack is an error after which things were put back, or not.
func PutBack(err error, undo func() error) error {
	if failed := undo(); failed != nil {
		return fmt.Errorf("%w; and what was there could not be put back: %w", err, failed)
	}
	return err
}

// EditText replaces a text file by what an edit makes of it, which nobody else of this run edits meanwhile.
func EditText(ctx context.Context, h *apply.Host, name string, edit func(string) string) error {
	unlock, err := h.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	file, err := ReadText(h, name)
	if err != nil {
		return err
	}
	_, err = file.Replace(ctx, h, edit(file.Text))
	return err
}
