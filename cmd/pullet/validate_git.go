package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pullet/pullet/render"
)

// unfetched finds what git keeps elsewhere than in the repository, so that a host refuses the commit. The work tree shows that only where git
// notes it: a file from LFS is there with its content.
func unfetched(dir string) (found render.ErrorList) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read, others report
		switch {
		case err != nil:
			return nil
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular() || d.Name() != ".gitmodules" && d.Name() != ".gitattributes":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			found = append(found, keptElsewhere(filepath.ToSlash(name), text)...)
		}
		return nil
	})
	return found
}

// keptElsewhere reads what git notes of submodules and LFS.
func keptElsewhere(name string, text []byte) (found render.ErrorList) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(line))
		at := render.Position{File: name, Line: number, Col: 1}
		if name == ".gitmodules" && strings.HasPrefix(line, "[submodule ") {
			found = append(found, &render.Error{Pos: at, Message: line + ": hosts refuse a commit with submodules", Hint: "put its files into the repository"})
		}
		if strings.HasSuffix(name, ".gitattributes") && strings.Contains(line, "filter=lfs") && !strings.HasPrefix(line, "#") {
			found = append(found, &render.Error{Pos: at, Severity: render.Warning, Message: "hosts refuse a commit with files that are kept in git LFS", Hint: "put them into the repository as they are"})
		}
	}
	return found
}
