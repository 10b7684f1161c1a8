package action

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
)

// readText is a text file of the host, whose links are followed beneath the root; "" where it is missing.
func readText(h *apply.Host, name string) (string, error) {
	path, err := h.Resolve(name)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// writeText replaces a text file as file.managed does. A link that stands there is followed.
func writeText(ctx context.Context, h *apply.Host, name, text string) error {
	path, err := h.Resolve(name)
	if err != nil {
		return err
	}
	f := &FileManaged{Name: filepath.Join("/", strings.TrimPrefix(path, filepath.Clean(h.Root))), Content: &text}
	if err := f.Bind(apply.Binding{}); err != nil {
		return err
	}
	c, err := f.Check(ctx, h)
	if err != nil || c.Empty() {
		return err
	}
	_, err = f.Apply(ctx, h, c)
	return err
}

// checkText compares a text file with what an edit makes of it.
func checkText(h *apply.Host, name, summary string, edit func(string) string) (apply.Change, error) {
	have, err := readText(h, name)
	if err != nil {
		return apply.Change{}, err
	}
	if want := edit(have); want != have {
		return apply.Change{Summary: strings.Join(strings.Fields(summary), " "), Diff: textDiff(name, []byte(have), []byte(want))}, nil
	}
	return apply.Change{}, nil
}

// editText replaces a text file by what an edit makes of it.
func editText(ctx context.Context, h *apply.Host, name string, edit func(string) string) error {
	unlock, err := h.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	have, err := readText(h, name)
	if err != nil {
		return err
	}
	return writeText(ctx, h, name, edit(have))
}
