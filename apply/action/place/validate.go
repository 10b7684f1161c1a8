package place

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/hostfile"
)

// checkedFile is new content that the validate command accepted, in a directory that only the agent's user can enter.
// What is placed is copied from it: nobody can have changed it since.
type checkedFile struct {
	*hostfile.Candidate
	remove func() error
}

// validated writes new content where nobody else can reach it, under the name and with the owner and mode that it shall
// have, and runs the command on it.
func (p Placing) validated(
	ctx context.Context,
	h *apply.Host,
	name string,
	w Wanted,
	fill func(io.Writer) error,
) (*checkedFile, error) {
	dir, remove, err := h.PrivateDir()
	if err != nil {
		return nil, err
	}
	c := &checkedFile{remove: remove}
	path := filepath.Join(dir, filepath.Base(filepath.Clean(name)))
	if err = c.write(path, w, fill); err != nil {
		err = fmt.Errorf("%s: %w; the old file is untouched", name, err)
	} else {
		err = p.validate(ctx, h, name, path)
	}
	if err != nil {
		return nil, errors.Join(err, c.done())
	}
	return c, nil
}

// validate runs the command on a file.
func (p Placing) validate(ctx context.Context, h *apply.Host, name, path string) error {
	line := strings.ReplaceAll(p.Validate, "%s", shellQuote(path))
	out, err := h.Run(ctx, apply.Command{Args: apply.Shell(line), Theirs: "validate"})
	if err != nil {
		return fmt.Errorf("validate: %w; the old file is untouched", err)
	}
	if out.ExitCode != 0 {
		return &contentError{
			strings.ReplaceAll(out.Failure(), path, name),
			&apply.ExitError{Command: p.Validate, Output: out},
		}
	}
	return nil
}

// contentError is new content that the validate command refused: a fault of the commit.
type contentError struct {
	said string
	exit *apply.ExitError
}

func (e *contentError) Error() string {
	said := e.said
	if apply.LastLines(e.exit.Output) == "" { // then the command is all that there is to go by
		said = e.exit.Command + ": " + said
	}
	return "validate: " + said + "; the old file is untouched"
}

func (e *contentError) Unwrap() error { return e.exit }

func (c *checkedFile) write(path string, w Wanted, fill func(io.Writer) error) error {
	at, err := hostfile.Root("/").Entry(path)
	if err != nil {
		return err
	}
	defer at.Close()
	if c.Candidate, err = at.Candidate(); err != nil {
		return err
	}
	if err := fill(c); err != nil {
		return err
	}
	if err := c.ReadOnly(); err != nil { // the command may execute it
		return err
	}
	return errors.Join(w.Set(c.Candidate), c.PlaceUnsynced()) // nobody needs it after a power loss
}

// copyTo writes the content that was accepted.
func (c *checkedFile) copyTo(to io.Writer) error {
	if _, err := c.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(to, c.File)
	return err
}

// done removes the directory.
func (c *checkedFile) done() error {
	if c.Candidate != nil {
		c.Drop()
	}
	return c.remove()
}
