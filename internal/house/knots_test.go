package house

import (
	"bytes"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// largestKnot is how many lines the files of a package may have together that all use each other: what is larger has no
// walls inside, and belongs into several packages.
const largestKnot = 2500

// knots are the packages with a larger one, from before the rule. A ceiling may only fall.
var knots = map[string]int{
	"apply":              7450,
	"cmd/pullet":         15900,
	"internal/agent":     11610,
	"internal/datastore": 5700,
	"lock":               3770,
	"puller":             3600,
	"render":             15230,
	"state":              11900,
}

// TestKnots holds packages to walls: no knot of files above largestKnot lines.
func TestKnots(t *testing.T) {
	all, err := exports()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasPrefix(path, module) || len(all[path].GoFiles) < 2 {
			continue
		}
		name := ours(path)
		files, lines := knot(t, check(t, name))
		ceiling, known := knots[name]
		switch {
		case !known && lines > largestKnot:
			t.Errorf("%s: %d lines in %d files that all use each other, and %d are allowed: %v", name, lines, len(files), largestKnot, files)
		case known && lines > ceiling:
			t.Errorf("%s: %d lines in files that all use each other, and there were %d: put what is new into a package of its own", name, lines, ceiling)
		case known && lines <= largestKnot:
			t.Errorf("%s has no knot above %d lines any more: take it from the table", name, largestKnot)
		case known && lines < ceiling*9/10:
			t.Errorf("%s: the knot has only %d lines now, of %d: write that into the table", name, lines, ceiling)
		}
	}
}

// knot returns the largest set of files of a package in which each uses each other one, directly or not, and its lines.
func knot(t *testing.T, p *typed) (largest []string, lines int) {
	t.Helper()
	for _, files := range components(p.fileUses()) {
		n := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			n += bytes.Count(text, []byte{'\n'})
		}
		if len(files) > 1 && n > lines {
			largest, lines = files, n
		}
	}
	for i := range largest {
		largest[i] = filepath.Base(largest[i])
	}
	return largest, lines
}

// fileUses returns which files of a package use what others declare: functions, types, constants, variables, methods,
// fields.
func (p *typed) fileUses() map[string]map[string]bool {
	file := func(at token.Pos) string { return typedFiles.Position(at).Filename }
	out := map[string]map[string]bool{}
	for _, parsed := range p.parsed {
		out[file(parsed.Package)] = map[string]bool{}
	}
	note := func(id *ast.Ident, used types.Object) {
		if used.Pkg() != p.Package || !used.Pos().IsValid() {
			return
		}
		if v, is := used.(*types.Var); is && !v.IsField() && v.Parent() != p.Scope() {
			return
		}
		if from, to := file(id.Pos()), file(used.Pos()); from != to {
			out[from][to] = true
		}
	}
	for id, used := range p.Uses {
		note(id, used)
	}
	return out
}

// components returns the strongly connected components of a graph, after Tarjan.
func components(graph map[string]map[string]bool) (out [][]string) {
	index, low, open := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(node string) {
		index[node] = len(index) + 1
		low[node], open[node] = index[node], true
		stack = append(stack, node)
		for next := range graph[node] {
			if index[next] == 0 {
				visit(next)
				low[node] = min(low[node], low[next])
			} else if open[next] {
				low[node] = min(low[node], index[next])
			}
		}
		if low[node] != index[node] {
			return
		}
		at := slices.Index(stack, node)
		for _, in := range stack[at:] {
			open[in] = false
		}
		out = append(out, slices.Sorted(slices.Values(stack[at:])))
		stack = stack[:at]
	}
	for _, node := range slices.Sorted(maps.Keys(graph)) {
		if index[node] == 0 {
			visit(node)
		}
	}
	return out
}
