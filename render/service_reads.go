package render

import (
	"slices"
	"strings"
	"text/template/parse"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// asksForService finds the services that templates and expressions name literally.
var asksForService = lazyregexp.New("\\bservices\\s*\\(?\\s*[\"'`]([A-Za-z0-9-]+)[\"'`]")

// ServiceName is a service that a text of templates and expressions names literally: services "db" or services('db').
type ServiceName struct {
	Name string
	From int // the byte offset of services
	At   int // the byte offset of the name
}

// ServicesIn are the services that a text of templates and expressions names literally.
func ServicesIn(text string) []ServiceName {
	var out []ServiceName
	for _, m := range asksForService.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, ServiceName{text[m[2]:m[3]], m[0], m[2]})
	}
	return out
}

// readsServices are the services that an expression reads, "" for one whose name it computes.
func readsServices(expression string) []string {
	var named []string
	for _, s := range ServicesIn(expression) {
		named = append(named, s.Name)
	}
	if len(named) == 0 && strings.Contains(expression, "services") {
		return []string{""}
	}
	return named
}

// services are those that the action at a line and column of the template reads, itself or by a variable; "" is one
// whose name it computes.
func (s *source) services(line, col int) []string { return s.reads(line, col, readService) }

// reads are the names that a function finds in the calls of the action at a line and column of the template, and in
// those behind its variables.
func (s *source) reads(line, col int, find readFinder) []string {
	if s.tmpl == nil || line < 1 || line > len(s.starts()) {
		return nil
	}
	offset := parse.Pos(s.starts()[line-1] + col)
	var at *parse.PipeNode
	reads := map[string][]string{} // by variable
	for _, t := range s.tmpl.Templates() {
		if t.Tree == nil {
			continue
		}
		walkPipes(t.Root, func(p *parse.PipeNode) {
			for _, v := range p.Decl {
				reads[v.Ident[0]] = distinct(append(pipeReads(p, reads, find), reads[v.Ident[0]]...))
			}
			if p.Pos <= offset && (at == nil || p.Pos >= at.Pos) { // a call that was put in stands before what is written there
				at = p
			}
		})
	}
	if at == nil {
		return nil
	}
	return distinct(pipeReads(at, reads, find))
}

// distinct is a list without what stands in it twice.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// walkPipes visits the pipes of actions and blocks in their order, not those in parentheses.
func walkPipes(n parse.Node, visit func(*parse.PipeNode)) {
	walkNodes(n, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.ActionNode:
			visit(n.Pipe)
		case *parse.IfNode:
			visit(n.Pipe)
		case *parse.RangeNode:
			visit(n.Pipe)
		case *parse.WithNode:
			visit(n.Pipe)
		case *parse.TemplateNode:
			if n.Pipe != nil { // {{ template "x" }} hands on nothing
				visit(n.Pipe)
			}
		}
	})
}

// readFinder finds what a call reads of the fleet.
type readFinder func(*parse.CommandNode) (name string, reads bool)

// readService finds the service that a call reads.
func readService(c *parse.CommandNode) (string, bool) {
	return literalArg(c, 1), isCall(c.Args[0], "services")
}

// pipeReads are the names that a pipe reads, and those behind its variables.
func pipeReads(p *parse.PipeNode, behind map[string][]string, find readFinder) []string {
	var out []string
	walkNodes(p, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.CommandNode:
			if name, reads := find(n); reads {
				out = append(out, name)
			}
		case *parse.VariableNode:
			out = append(out, behind[n.Ident[0]]...)
		}
	})
	return out
}

// isCall reports a name that stands alone.
func isCall(n parse.Node, name string) bool {
	f, ok := n.(*parse.IdentifierNode)
	return ok && f.Ident == name
}

// literalArg is the last argument of a call, of which it is the nth; "" where it is computed.
func literalArg(c *parse.CommandNode, nth int) string {
	if len(c.Args) == nth+1 {
		if s, ok := c.Args[nth].(*parse.StringNode); ok {
			return s.Text
		}
	}
	return ""
}
