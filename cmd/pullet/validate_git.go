package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/pullet/pullet/internal/gitrules"
	"github.com/pullet/pullet/render"
)

// keptElsewhere finds what git notes of submodules and LFS, so that a host refuses the commit. In the work tree a file
// from LFS has its content, and so only the notes show it.
func keptElsewhere(ctx context.Context, files fs.FS) (found render.ErrorList, err error) {
	var names []string
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			names = append(names, name)
		}
		return errors.Join(err, ctx.Err())
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if name != ".gitmodules" && path.Base(name) != ".gitattributes" {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number := 0
		for line := range bytes.Lines(text) {
			number++
			e, err := noted(ctx, name, strings.TrimSpace(string(line)), names)
			if err != nil {
				return nil, err
			}
			if e != nil {
				e.Pos = render.Position{File: name, Line: number, Col: 1}
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// noted returns what is wrong with a line of a .gitmodules or .gitattributes file.
func noted(ctx context.Context, name, line string, files []string) (*render.Error, error) {
	if name == ".gitmodules" {
		if !strings.HasPrefix(line, "[submodule ") {
			return nil, nil
		}
		return &render.Error{
			Message: line + ": hosts refuse a commit with submodules",
			Hint:    "put its files into the repository",
		}, nil
	}
	if !strings.Contains(line, "filter=lfs") || strings.HasPrefix(line, "#") {
		return nil, nil
	}
	e := &render.Error{
		Severity: render.Warning,
		Message:  "hosts refuse a commit with files that are kept in git LFS",
		Hint:     "put the file into the repository as it is",
	}
	filters, err := gitrules.ReadFilters(map[string][]byte{name: []byte(line)})
	if err != nil {
		return nil, err
	}
	first, found, err := filters.First(ctx, files, func(filter string) bool { return filter == "lfs" })
	if found {
		e.Severity, e.Message = render.Mistake, first.Name+" is kept in git LFS, and hosts refuse a commit with such files"
	}
	return e, err
}
