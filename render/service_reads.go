package render

import (
	"fmt"
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

// services are those that the action at a line and column of the template reads, itself or by a variable. Decided adds
// those of the conditions that the action stands below. "" is a service whose name is computed.
func (s *source) services(line, col int, decided bool) []string {
	return s.reads(line, col, decided, readService)
}

// reads are the names that a function finds in the calls of the action at a line and column of the template, and in
// those behind its variables. Decided adds what decided on reaching the action.
func (s *source) reads(line, col int, decided bool, find readFinder) []string {
	if s.tmpl == nil || line < 1 || line > len(s.starts()) {
		return nil
	}
	w := &readsAt{offset: parse.Pos(s.starts()[line-1] + col), find: find,
		behind: map[string][]string{}, above: map[string][]string{}}
	for range 2 { // a template may be called behind its definition
		w.at, w.read, w.decided = nil, nil, nil
		for _, t := range s.tmpl.Templates() {
			if t.Tree != nil {
				w.list(t.Root, w.above[t.Name()])
			}
		}
	}
	if decided {
		return distinct(slices.Concat(w.read, w.decided))
	}
	return distinct(w.read)
}

// readsAt walks through templates and finds what decides on the action at an offset.
type readsAt struct {
	offset parse.Pos
	find   readFinder
	behind map[string][]string // what a variable was made of
	above  map[string][]string // what decides on calls of a template, by its name
	at     *parse.PipeNode     // the last action before the offset
	read   []string            // what it reads
	// what the conditions above it read
	decided []string
}

// list visits the nodes of a list in their order. Above is what decides on reaching it.
func (w *readsAt) list(l *parse.ListNode, above []string) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			w.pipe(n.Pipe, above)
		case *parse.IfNode:
			w.block(&n.BranchNode, above)
		case *parse.RangeNode:
			w.block(&n.BranchNode, above)
		case *parse.WithNode:
			w.block(&n.BranchNode, above)
		case *parse.TemplateNode:
			if n.Pipe != nil { // {{ template "x" }} hands on nothing
				w.pipe(n.Pipe, above)
			}
			w.above[n.Name] = distinct(slices.Concat(w.above[n.Name], above))
		}
	}
}

// block visits a condition and what stands below it.
func (w *readsAt) block(b *parse.BranchNode, above []string) {
	below := slices.Concat(above, w.pipe(b.Pipe, above))
	w.list(b.List, below)
	w.list(b.ElseList, below)
}

// pipe notes an action, and returns what it reads.
func (w *readsAt) pipe(p *parse.PipeNode, above []string) []string {
	read := pipeReads(p, w.behind, w.find)
	for _, v := range p.Decl {
		w.behind[v.Ident[0]] = distinct(slices.Concat(read, w.behind[v.Ident[0]]))
	}
	// A call that was put in stands before what is written there.
	if p.Pos <= w.offset && (w.at == nil || p.Pos >= w.at.Pos) {
		w.at, w.read, w.decided = p, read, above
	}
	return read
}

// distinct is a list without what stands in it twice.
func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
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

// tooFew finds the failures that more instances of a service may end: the author's own word, and a place in a list that
// is too short.
var tooFew = lazyregexp.New(`error calling (?:fail|required): |there is no element |out of (?:range|bounds)`)

// Awaits returns the service that a mistake waits for, and how many hosts announced it, in words: a service that the
// failing action reads and that no host has announced, or any that it reads where the mistake says that there are too
// few. Asked are the services that the template asked for; they stand for a name that it computes. Both are "" where
// the mistake waits for none.
func (e *Error) Awaits(count func(service string) (int, error), asked ...string) (service, announced string) {
	for _, name := range e.Services {
		names := []string{name}
		if name == "" {
			names = asked
		}
		for _, name := range names {
			switch n, err := count(name); {
			case err != nil:
			case n == 0:
				return name, "nobody has announced it"
			case e.few && n == 1:
				return name, "only one host has announced it"
			case e.few:
				return name, fmt.Sprintf("only %d hosts have announced it", n)
			}
		}
	}
	return "", ""
}
