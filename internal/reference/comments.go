package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"strconv"
	"strings"
)

// comments are what the sources say about their declarations, by the declaration's name in its package: "render.Retry"
// for a type or a function, "render.Retry.Limit" for a field or a method, `render.roots["vars"]` for an entry of a map
// that a function fills.
type comments map[string]string

// readComments parses the sources, tests left out.
func readComments(sources fs.FS) (comments, error) {
	c := comments{}
	files := token.NewFileSet()
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f := &sourceFile{comments: c, pkg: path.Base(path.Dir(name)), files: files}
		f.behind, f.above = map[int]string{}, map[place]string{}
		f.read(parsed)
		return nil
	})
	return c, err
}

// sourceFile is one file as it is read.
type sourceFile struct {
	comments
	pkg    string
	files  *token.FileSet
	behind map[int]string // comments by the line that they stand on
	above  map[place]string
}

// place is where a comment above an entry has the entry: on the line after its last, in its own column.
type place struct{ line, column int }

func (f *sourceFile) line(pos token.Pos) int { return f.files.Position(pos).Line }

func (f *sourceFile) read(parsed *ast.File) {
	for _, group := range parsed.Comments {
		f.behind[f.line(group.Pos())] = group.Text()
		f.above[place{f.line(group.End()) + 1, f.files.Position(group.Pos()).Column}] = group.Text()
	}
	for _, decl := range parsed.Decls {
		switch decl := decl.(type) {
		case *ast.GenDecl:
			f.types(decl)
		case *ast.FuncDecl:
			f.function(decl)
		}
	}
}

func (f *sourceFile) types(decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		t, ok := spec.(*ast.TypeSpec)
		if !ok {
			continue
		}
		name := f.pkg + "." + t.Name.Name
		f.comments[name] = decl.Doc.Text()
		body, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, field := range body.Fields.List {
			text := field.Doc.Text()
			if text == "" {
				text = field.Comment.Text()
			}
			for _, n := range field.Names {
				f.comments[name+"."+n.Name] = text
			}
		}
	}
}

// function notes a function's comment, and those of the entries of maps in it: "key": value, with the comment behind it
// or above it, or m["key"] = f, where f's own comment counts.
func (f *sourceFile) function(decl *ast.FuncDecl) {
	name := f.pkg + "." + decl.Name.Name
	if decl.Recv != nil {
		if of, ok := decl.Recv.List[0].Type.(*ast.Ident); ok {
			f.comments[f.pkg+"."+of.Name+"."+decl.Name.Name] = decl.Doc.Text()
		}
		return
	}
	f.comments[name] = decl.Doc.Text()
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, text := literal(n.Key), f.ofEntry(n); key != "" && text != "" {
				f.comments[fmt.Sprintf("%s[%q]", name, key)] = text
			}
		case *ast.AssignStmt:
			to, ok := n.Lhs[0].(*ast.IndexExpr)
			from, named := n.Rhs[0].(*ast.Ident)
			if ok && named && literal(to.Index) != "" {
				f.comments[fmt.Sprintf("%s[%q]", name, literal(to.Index))] = f.pkg + "." + from.Name
			}
		}
		return true
	})
}

// ofEntry is the comment of an entry of a map.
func (f *sourceFile) ofEntry(n *ast.KeyValueExpr) string {
	at := f.files.Position(n.Pos())
	if text := f.behind[at.Line]; text != "" {
		return text
	}
	return f.above[place{at.Line, at.Column}]
}

// literal is the value of a text that stands in a source, or "".
func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value) // it was parsed
		return text
	}
	return ""
}

// entries are the keys that a function gives a map with a comment, and the comments.
func (c comments) entries(function string) map[string]string {
	out := map[string]string{}
	for name, text := range c {
		key, ok := strings.CutPrefix(name, function+"[")
		if !ok {
			continue
		}
		key, _ = strconv.Unquote(strings.TrimSuffix(key, "]")) // as function wrote it
		out[key] = text
		if named, ok := c[text]; ok {
			_, ident, _ := strings.Cut(text, ".")
			out[key] = renamed(named, ident, key)
		}
	}
	return out
}

// ofType is the comment of a type under the name that a reader knows it by.
func (c comments) ofType(t reflect.Type, name string) string {
	return renamed(c[typeName(t)], t.Name(), name)
}

// ofField is the comment of a field, likewise.
func (c comments) ofField(owner reflect.Type, field, name string) string {
	return renamed(c[typeName(owner)+"."+field], field, name)
}

func typeName(t reflect.Type) string { return path.Base(t.PkgPath()) + "." + t.Name() }

// renamed is a comment that begins with a Go name in the words of a reader: "Managed is a file" is "file.managed is a
// file".
func renamed(text, from, to string) string {
	if rest, ok := strings.CutPrefix(text, from+": "); ok {
		return rest
	}
	if rest, ok := strings.CutPrefix(text, from+" "); ok {
		return to + " " + rest
	}
	return text
}
