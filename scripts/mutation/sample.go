package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// place is where mutants are wanted: a package's directory, files by a pattern, or a line of one.
type place struct {
	path string
	line int // 0: all
}

func parsePlace(text string) (place, error) {
	path, number, lined := strings.Cut(text, ":")
	p := place{path: filepath.Clean(path)}
	if !lined {
		return p, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return p, fmt.Errorf("%s: a line is a number from 1", text)
	}
	p.line = n
	return p, nil
}

// files are the place's sources without tests.
func (p place) files() ([]string, error) {
	pattern := p.path
	if !strings.HasSuffix(pattern, ".go") {
		pattern = filepath.Join(pattern, "*.go")
	}
	all, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(f string) bool { return strings.HasSuffix(f, "_test.go") }), nil
}

// ranked are the mutants of a place, the first to be tried first.
func (p place) ranked(seed int) (out []*mutant, err error) {
	files, err := p.files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := mutants(file, text, seed)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if p.line == 0 || p.line == m.line {
				out = append(out, m)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no mutant is known here", p.path)
	}
	slices.SortFunc(out, func(a, b *mutant) int { return strings.Compare(a.rank, b.rank) })
	return out, nil
}
