package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
)

// mutant is a source file with one fault.
type mutant struct {
	file    string // relative to the module
	line    int    // where the fault is
	endLine int
	kind    string
	old     string // the place as it is
	text    string // the whole file with the fault
	rank    string // decides whether a sample has it
}

func (m *mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s", m.file, m.line, m.kind, bytes.Join(bytes.Fields([]byte(m.old)), []byte(" ")))
}

// mutants are all faults that the kinds below put into a file. Their rank depends on the seed, the function and the
// place's text, not on its line: a change of a file elsewhere leaves a sample as it is.
func mutants(file string, text []byte, seed int) ([]*mutant, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &faults{set: set, file: file, text: string(text), seed: seed, twins: map[string]int{}}
	for _, decl := range parsed.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok && function.Body != nil {
			f.function = function.Name.Name
			f.in(function.Body, function.Type)
		}
	}
	return f.found, nil
}

// faults collects the mutants of a file.
type faults struct {
	set        *token.FileSet
	file, text string
	function   string
	seed       int
	twins      map[string]int // mutants that look the same, counted
	found      []*mutant
}

// in finds the faults of a function's body; those of functions in it are found with their own results.
func (f *faults) in(body ast.Node, function *ast.FuncType) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch at := n.(type) {
		case *ast.FuncLit:
			f.in(at.Body, at.Type)
			return false
		case *ast.IfStmt:
			f.condition(at.Cond)
		case *ast.SwitchStmt:
			f.cases(at)
		case *ast.BinaryExpr:
			f.binary(at)
		case *ast.SliceExpr:
			f.number(at.Low)
			f.number(at.High)
		case *ast.IndexExpr:
			f.number(at.Index)
		case *ast.ReturnStmt:
			f.swallowed(at, function)
		case *ast.ExprStmt:
			if _, call := at.X.(*ast.CallExpr); call {
				f.add("call skipped", at, "if false { "+f.source(at)+" }")
			}
		}
		return true
	})
}

// condition negates a condition, unless it is a comparison, which is negated as such, and drops it.
func (f *faults) condition(c ast.Expr) {
	text := f.source(c)
	if b, compares := c.(*ast.BinaryExpr); !compares || opposite[b.Op] == "" {
		f.add("condition negated", c, "!("+text+")")
	}
	f.add("condition dropped", c, "false && ("+text+")")
}

// cases are the conditions of a switch without a tag.
func (f *faults) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, clause := range s.Body.List {
		for _, c := range clause.(*ast.CaseClause).List {
			f.condition(c)
		}
	}
}

// opposite and edge are what a comparison becomes.
var (
	opposite = map[token.Token]string{
		token.EQL: "!=",
		token.NEQ: "==",
		token.LSS: ">=",
		token.GEQ: "<",
		token.GTR: "<=",
		token.LEQ: ">",
	}
	edge = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
)

// binary negates a comparison and moves its edge, drops a side of a condition, and counts one more.
func (f *faults) binary(b *ast.BinaryExpr) {
	x, y := f.source(b.X), f.source(b.Y)
	if op := opposite[b.Op]; op != "" {
		f.add("condition negated", b, x+" "+op+" "+y)
	}
	if op := edge[b.Op]; op != "" {
		f.add("edge moved", b, x+" "+op+" "+y)
	}
	switch b.Op {
	case token.LAND:
		f.add("left side dropped", b, "(true || "+x+") && "+y)
		f.add("right side dropped", b, x+" && (true || "+y+")")
	case token.LOR:
		f.add("left side dropped", b, "false && ("+x+") || "+y)
		f.add("right side dropped", b, x+" || false && ("+y+")")
	case token.ADD, token.SUB:
		f.number(b.X)
		f.number(b.Y)
	}
}

// number makes a number one larger.
func (f *faults) number(e ast.Expr) {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.INT {
		if n, err := strconv.Atoi(lit.Value); err == nil {
			f.add("off by one", lit, strconv.Itoa(n+1))
		}
	}
}

// swallowed returns no error where one is returned.
func (f *faults) swallowed(r *ast.ReturnStmt, function *ast.FuncType) {
	if function.Results == nil || len(r.Results) != function.Results.NumFields() {
		return
	}
	typ, _ := function.Results.List[len(function.Results.List)-1].Type.(*ast.Ident)
	last := r.Results[len(r.Results)-1]
	if is, _ := last.(*ast.Ident); typ == nil || typ.Name != "error" || is != nil && is.Name == "nil" {
		return
	}
	start, end := f.offset(r.Pos()), f.offset(last.Pos())
	f.add("error swallowed", r, "_ = "+f.source(last)+"; "+f.text[start:end]+"nil")
}

// add adds the mutant that has another text at a node.
func (f *faults) add(kind string, at ast.Node, text string) {
	start, end := f.offset(at.Pos()), f.offset(at.End())
	m := &mutant{
		file:    f.file,
		line:    f.set.Position(at.Pos()).Line,
		endLine: f.set.Position(at.End()).Line,
		kind:    kind,
		old:     f.text[start:end],
	}
	m.text = f.text[:start] + text + f.text[end:]
	key := fmt.Sprint(f.seed, f.file, f.function, kind, m.old)
	f.twins[key]++
	m.rank = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, key, f.twins[key])))
	f.found = append(f.found, m)
}

func (f *faults) source(n ast.Node) string { return f.text[f.offset(n.Pos()):f.offset(n.End())] }

func (f *faults) offset(p token.Pos) int { return f.set.Position(p).Offset }
