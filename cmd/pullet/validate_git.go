package main

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/gitattributes"

	"github.com/pullet/pullet/internal/gitremote"
	"github.com/pullet/pullet/render"
)

// unfetched finds what git keeps elsewhere than in the repository, so that a host refuses the commit. The work tree
// shows that where git notes it: a file from LFS is there with its content. A pointer that was never fetched shows
// itself.
func unfetched(dir string) (found render.ErrorList) {
	var files []string
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read, others report
		switch {
		case err != nil:
			return nil
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		if name, err := filepath.Rel(dir, path); err == nil {
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	attributes := map[string][]byte{}
	for _, name := range files {
		noted := name == ".gitmodules" || path.Base(name) == ".gitattributes"
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !noted && info.Size() >= gitremote.MaxPointer {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case err != nil:
		case noted:
			found = append(found, keptElsewhere(name, text, files)...)
			if path.Base(name) == ".gitattributes" {
				attributes[name] = text
			}
		case gitremote.IsPointer(text):
			found = append(
				found,
				&render.Error{
					Pos:     render.Position{File: name, Line: 1, Col: 1},
					Message: "this is the pointer of a file that is kept in git LFS, which hosts do not fetch",
					Hint:    inRepository,
				},
			)
		}
	}
	if f, is := gitremote.Filtered(attributes, files); is {
		found = append(found, &render.Error{Pos: render.Position{File: f.Name, Line: 1, Col: 1}, Message: f.Error()})
	}
	return found
}

const inRepository = "put the file into the repository as it is"

// keptElsewhere reads what git notes of submodules and LFS.
func keptElsewhere(name string, text []byte, files []string) (found render.ErrorList) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line := strings.TrimSpace(string(line))
		at := render.Position{File: name, Line: number, Col: 1}
		if name == ".gitmodules" && strings.HasPrefix(line, "[submodule ") {
			found = append(
				found,
				&render.Error{
					Pos:     at,
					Message: line + ": hosts refuse a commit with submodules",
					Hint:    "put its files into the repository",
				},
			)
		}
		if strings.HasSuffix(name, ".gitattributes") && strings.Contains(line, "filter=lfs") &&
			!strings.HasPrefix(line, "#") {
			e := &render.Error{
				Pos:      at,
				Severity: render.Warning,
				Message:  "hosts refuse a commit with files that are kept in git LFS",
				Hint:     inRepository,
			}
			if first := firstMatch(path.Dir(name), strings.Fields(line)[0], files); first != "" {
				e.Severity, e.Message = render.Mistake, first+" is kept in git LFS, and hosts refuse a commit with such files"
			}
			found = append(found, e)
		}
	}
	return found
}

// firstMatch is the first file that a pattern of gitattributes(5) in a directory means; "" is none, as for a pattern
// with a slash at its end.
func firstMatch(dir, text string, files []string) string {
	if strings.HasSuffix(text, "/") {
		return ""
	}
	var above []string
	if dir != "." {
		above = strings.Split(dir, "/")
	}
	pattern := gitattributes.ParsePattern(text, above)
	i := slices.IndexFunc(files, func(name string) bool { return pattern.Match(strings.Split(name, "/")) })
	if i < 0 {
		return ""
	}
	return files[i]
}
