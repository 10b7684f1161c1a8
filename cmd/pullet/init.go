package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

//go:embed all:starter
var starter embed.FS

// schemaDir is where the first lines of the starter's files look for their schemas.
const schemaDir = ".pullet/schema"

func initCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "init [DIR]", GroupID: "repo", Args: upToOne,
		Short: "Start a state repository: a small one that validates",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			files, err := fs.Sub(starter, "starter")
			if err != nil {
				return err
			}
			if err := copyNew(files, dir); err != nil {
				return err
			}
			if err := writeSchemas(cmd.Context(), filepath.Join(dir, schemaDir)); err != nil {
				return err
			}
			fmt.Fprintf(
				a.out,
				"wrote a state repository to %s; next:\n  pullet validate %s\n  pullet plan %s\n",
				dir,
				dir,
				dir,
			)
			return nil
		},
	}
}

// copyNew copies files into a directory, and refuses to touch any that is there.
func copyNew(files fs.FS, dir string) error {
	return fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, path)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		data, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s is there already: init never overwrites", to)
		}
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		return errors.Join(err, f.Close())
	})
}
