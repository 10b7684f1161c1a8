package action

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"

	"github.com/pullet/pullet/apply"
)

// What macros may use: each of these actions reads, and its value is a text.

// Reads refuses parameters that say whether the command runs or changed something: a macro's command always runs, and only reads.
func (a *CmdRun) Reads() error {
	if !a.Unchecked() || a.Changed != nil || a.Failed != nil {
		return errors.New("a macro always runs its command, which only reads: leave out creates, removes, unless, onlyif, changed and failed")
	}
	return nil
}

// Read is what the command prints.
func (a *CmdRun) Read(ctx context.Context, h *apply.Host) (string, error) {
	out, err := a.Apply(ctx, h, apply.Change{})
	return out.StdOut, err
}

// Reads is never an error.
func (a *FileContent) Reads() error { return nil }

// Read is the text of the file.
func (a *FileContent) Read(_ context.Context, h *apply.Host) (string, error) {
	at, err := h.Follow(a.Name)
	if err != nil {
		return "", err
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.Name, plainError(err))
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s is a directory: the value of a macro is the text of one file", a.Name)
	}
	left := int64(maxPublished)
	var p published
	if err := p.read(a.Name, path.Base(a.Name), at, &left); err != nil {
		return "", err
	}
	return string(p.Files[0].Content), nil
}

// Reads refuses methods that change something on the server, and guards.
func (a *HTTPRequest) Reads() error {
	switch {
	case !a.reads():
		return fmt.Errorf("method %s changes the server, and a macro only reads: use GET", a.Method)
	case !a.Unchecked():
		return errors.New("a macro always sends its request: leave out creates, removes, unless and onlyif")
	}
	return nil
}

// Read is the body of the answer.
func (a *HTTPRequest) Read(ctx context.Context, h *apply.Host) (string, error) {
	out, err := a.Apply(ctx, h, apply.Change{})
	return out.StdOut, err
}

// Reads is never an error: Read does not upgrade.
func (a *PkgUptodate) Reads() error { return nil }

// Read is true where the host's package lists, as they are, have no upgrade. It refreshes nothing.
func (a *PkgUptodate) Read(ctx context.Context, h *apply.Host) (string, error) {
	p, err := a.packager(h)
	if err != nil {
		return "", err
	}
	news, err := p.upgrades(ctx, a.what())
	return strconv.FormatBool(len(news) == 0), err
}
