package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// A repository is written by people who mean well, and read by every node of the fleet: what is written by mistake,
// such as a loop in a loop, has to end with a message, in bounded memory. text/template cannot be interrupted, so it
// counts: every range, template and function call spends some of the work that one file may cost. Counting, unlike a
// clock, gives the same answer on every node.

const (
	maxWork     = 2_000_000 // of one file: a few seconds
	maxDocument = 4 << 20   // bytes of a YAML document, and of a template
	maxDepth    = 100       // of values in values, and of templates that call templates
	maxBlocks   = 500       // of blocks in blocks: each costs the parser stack
	maxGrowth   = 64 << 20  // bytes that one call may make or look through
	maxPattern  = 1000      // bytes of a regular expression
	maxSteps    = 100_000   // of a catalog
	maxActions  = 50_000    // of one template: each costs the parser a kilobyte

	maxAllWork    = 10_000_000 // of all files and expressions of a catalog: some seconds
	maxAllValues  = 2_000_000  // of all documents of a catalog
	maxAllActions = 200_000    // of all templates of a repository
)

// meter is the work that is left for the file that is being executed. Its functions are called by templates.
type meter struct {
	left, depth int
	all         *pool
	ctx         context.Context // ends the work early; may be nil
	secrets     *secretTexts    // learns what functions make of secrets; may be nil
}

func (m *meter) reset() { *m = meter{left: maxWork, all: m.all, ctx: m.ctx, secrets: m.secrets} }

// spend counts work, which is never negative.
func (m *meter) spend(work int) error {
	if m.left -= max(work, 0); m.left < 0 {
		return fmt.Errorf("the file takes too much work: more than %d steps of its templates", maxWork)
	}
	if err := over(m.ctx); err != nil {
		return err
	}
	return m.all.spend(work)
}

// pool is what is left for all files of a catalog while it is compiled. Nil is for what a run evaluates, which has a
// deadline.
type pool struct{ work, values int }

func newPool() *pool { return &pool{maxAllWork, maxAllValues} }

// What everything says that comes after the one who took the last. It is told once.
var (
	errSpent         = errors.New("the templates and expressions of this host take too much work together")
	errTooManyValues = errors.New("the files of this host have too many values together")
)

func (p *pool) spend(work int) error {
	if p == nil {
		return nil
	}
	if p.work -= max(work, 0); p.work < 0 {
		return fmt.Errorf("%w: more than %d steps", errSpent, maxAllWork)
	}
	return nil
}

// written counts what a template wrote: it stays in the memory.
func (p *pool) written(bytes int) error { return p.spend(bytes / 50) }

// full reports that no more values may come.
func (p *pool) full() bool { return p != nil && p.values < 0 }

// hold refuses more values in documents than a catalog may have in all.
func (p *pool) hold(values int) error {
	if p == nil {
		return nil
	}
	if p.values -= values; p.values < 0 {
		return fmt.Errorf("%w: more than %d", errTooManyValues, maxAllValues)
	}
	return nil
}

// Spent reports a catalog that takes more work than is allowed.
func Spent(err error) bool { return errors.Is(err, errSpent) }

// onlyFirst leaves one of the mistakes that say that all is spent.
func onlyFirst(errs ErrorList) ErrorList {
	seen := false
	return slices.DeleteFunc(errs, func(e *Error) bool {
		spent := errors.Is(e, errSpent) || errors.Is(e, errTooManyValues)
		drop := spent && seen
		seen = seen || spent
		return drop
	})
}

// limitError is a limit that was met by a block of a template, at an offset in its source.
type limitError struct {
	error
	at int
}

// tick is called by every turn of a range, and by every template, with the number of nodes in it.
func (m *meter) tick(at, nodes int) (string, error) {
	if err := m.spend(nodes); err != nil {
		return "", &limitError{err, at}
	}
	return "", nil
}

// down and up are called before and after a template that a template calls.
func (m *meter) down(at int) (string, error) {
	if m.depth++; m.depth > maxDepth {
		return "", &limitError{fmt.Errorf("templates call templates more than %d deep", maxDepth), at}
	}
	return "", nil
}

func (m *meter) up() string { m.depth--; return "" }

// meterTree makes the blocks of a template count.
func meterTree(t *template.Template, funcs template.FuncMap) error {
	var failed error
	funcs = template.FuncMap{
		"tick": funcs["tick"],
		"down": funcs["down"],
		"up":   funcs["up"],
	} // the parser copies them for each call
	call := func(format string, args ...any) parse.Node {
		c, err := template.New("").Funcs(funcs).Parse(fmt.Sprintf("{{ $_ := "+format+" }}", args...))
		if err != nil {
			failed = err
			return nil
		}
		return c.Root.Nodes[0]
	}
	nodes := 0
	walkNodes(t.Root, func(n parse.Node) { nodes++ })
	walkNodes(t.Root, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.RangeNode:
			inner := 1
			walkNodes(n.List, func(parse.Node) { inner++ })
			n.List.Nodes = append([]parse.Node{call("tick %d %d", n.Pos, inner)}, n.List.Nodes...)
		case *parse.PipeNode:
			weighCompared(n)
		case *parse.ListNode:
			for i := 0; i < len(n.Nodes); i++ {
				if c, ok := n.Nodes[i].(*parse.TemplateNode); ok {
					around := []parse.Node{call("down %d", c.Pos), c, call("up")}
					n.Nodes = append(n.Nodes[:i:i], append(around, n.Nodes[i+1:]...)...)
					i += 2
				}
			}
		}
	})
	t.Root.Nodes = append([]parse.Node{call("tick %d %d", t.Root.Pos, nodes)}, t.Root.Nodes...)
	return failed
}

// compares are the functions of text/template that look through their arguments and cannot be wrapped.
var compares = []string{"eq", "ne", "lt", "le", "gt", "ge"}

// weighCompared makes the comparisons of a pipeline count what they look through: eq A B becomes eq (weighed A) B.
func weighCompared(n *parse.PipeNode) {
	for _, c := range n.Cmds {
		ident, ok := c.Args[0].(*parse.IdentifierNode)
		if !ok || !slices.Contains(compares, ident.Ident) || len(c.Args) < 2 {
			continue
		}
		call, ok := c.Copy().(*parse.CommandNode)
		if !ok {
			continue
		}
		call.Args = []parse.Node{parse.NewIdentifier("weighed").SetPos(ident.Pos), c.Args[1]}
		around := n.CopyPipe()
		around.Decl, around.Cmds = nil, []*parse.CommandNode{call}
		c.Args[1] = around
	}
}

var block = lazyregexp.New(`\{\{-?\s*(if|range|with|block|define|else\s+(?:if|with)|end)\b`)

// openBlock is a block of a template that has no end yet.
type openBlock struct {
	at, arms int // where it begins, and for how many blocks it counts: each else if is one
}

// blocks looks at the blocks of a template as the parser would, without its stack: those that have no end, and the
// offset of one that is in too many others, or -1.
func blocks(text string) (open []openBlock, tooDeep int) {
	depth := 0
	for _, m := range block.FindAllStringSubmatchIndex(text, -1) {
		switch word := text[m[2]:m[3]]; {
		case word == "end" && len(open) > 0:
			depth -= open[len(open)-1].arms
			open = open[:len(open)-1]
		case strings.HasPrefix(word, "else") && len(open) > 0:
			open[len(open)-1].arms++
			depth++
		case word != "end":
			open = append(open, openBlock{m[0], 1})
			depth++
		}
		if depth > maxBlocks {
			return open, m[0]
		}
	}
	return open, -1
}
