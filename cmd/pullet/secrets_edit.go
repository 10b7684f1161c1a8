package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pullet/pullet/internal/secrets"
	"github.com/pullet/pullet/render"
)

func (s *secretsCmd) editCommand() *cobra.Command {
	return &cobra.Command{
		Use: "edit PATH", Args: arguments(cobra.ExactArgs(1)),
		Short: "Edit a file, or make a new one, and encrypt it for its readers",
		Long: "Edit opens $VISUAL or $EDITOR on the text in a file system in memory that only the editor sees: whatever\n" +
			"ends the editor or pullet, no text is left behind. What is saved is encrypted for the readers that\n" +
			"secrets.yaml names. Without standard input as a terminal nothing is asked.",
		RunE: func(cmd *cobra.Command, args []string) error { return s.edit(cmd.Context(), args[0]) },
	}
}

func (s *secretsCmd) edit(ctx context.Context, name string) error {
	if err := secrets.CheckPath(name); err != nil {
		return usage(err)
	}
	rules, err := s.rules(ctx)
	if err != nil {
		return err
	}
	keys, err := s.keys(rules, name)
	if err != nil {
		return err
	}
	sealed, err := s.onDisk(name)
	if err != nil {
		return err
	}
	var before []byte
	isNew := sealed == nil
	if !isNew {
		if before, err = s.open(name); err != nil {
			return err
		}
	}
	text, err := s.edited(ctx, name, before)
	if err != nil {
		return err
	}
	if now, err := s.onDisk(name); err != nil || !bytes.Equal(now, sealed) {
		mine := name + ".mine"
		err = errors.Join(err, s.put(mine, text, keys))
		return errors.Join(
			err,
			fmt.Errorf("%s was changed by somebody else meanwhile: what you wrote is in %s, encrypted", name, mine),
		)
	}
	if !isNew && bytes.Equal(text, before) {
		fmt.Fprintf(s.out, "%s: unchanged\n", name)
		return nil
	}
	if err := s.put(name, text, keys); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: encrypted for %s\n", name, count(len(keys), "key"))
	return nil
}

// onDisk is the file as it stands there; nothing where there is none.
func (s *secretsCmd) onDisk(name string) ([]byte, error) {
	sealed, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return sealed, err
}

// edited is the text after the user edited it. Variables have to be a map; a user at a terminal can fix them.
func (s *secretsCmd) edited(ctx context.Context, name string, text []byte) ([]byte, error) {
	for {
		out, err := editPrivately(ctx, name, text)
		if err != nil || !strings.HasPrefix(name, "vars/") {
			return out, err
		}
		err = render.CheckVars(name, out)
		if err == nil {
			return out, nil
		}
		if !s.askAgain(err) {
			return nil, fmt.Errorf("%w\nnothing was changed", err)
		}
		text = out
	}
}

// askAgain shows a mistake to a user at a terminal, who can go back to the editor.
func (s *secretsCmd) askAgain(err error) bool {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	fmt.Fprintf(s.err, "%v\nEnter: edit again, Ctrl-C: give up and lose what was edited ", err)
	one := make([]byte, 1)
	n, err := os.Stdin.Read(one)
	return err == nil && n == 1
}

// ownedLikeTop gives a file the owner of the repository's directory, where root runs the command in the repository of a
// user.
func ownedLikeTop(root *os.Root, file string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		return root.Lchown(file, int(owner.Uid), int(owner.Gid))
	}
	return nil
}
