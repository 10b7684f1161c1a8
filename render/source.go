package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render/newcomer"
)

// maxOutput bounds what one template may produce: far above any real file, far below what would hurt a node.
const maxOutput = 16 << 20

// source is one file of a layer. Its template is parsed once and executed for each catalog.
type source struct {
	shapes      *sync.Map // of the structs that it is decoded into, by type; nil: not kept
	conditions  *sync.Map // that were compiled, by their texts; nil: not kept
	path        string    // as shown to the user, "repository:path" where there are several
	text        string
	tmpl        *template.Template  // nil: a plain file
	texts       map[*byte]parse.Pos // first byte of each literal text of the template -> its offset in text
	lines       []int               // offsets of the lines of text; made when first needed
	changes     bool                // it calls functions that change maps
	deferrables []*deferrable       // actions that may have to wait for a step
	owner       *execution          // with whose functions it is parsed
	early       bool                // with those of base/services.yaml
}

// pos is the position of a byte offset in the source.
func (s *source) pos(offset int) Position {
	starts := s.starts()
	offset = min(max(offset, 0), len(s.text))
	line := sort.Search(len(starts), func(i int) bool { return starts[i] > offset })
	return Position{File: s.path, Line: line, Col: offset - starts[line-1] + 1}
}

// errorAt is a mistake at a position of the source, with its line. An error among the arguments is its cause.
func (s *source) errorAt(pos Position, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	out := &Error{Pos: pos, Message: message}
	s.quote(out)
	for _, arg := range args {
		out.lost = out.lost || namesLost(fmt.Sprint(arg))
		if err, ok := arg.(error); ok {
			out.cause = err
		}
	}
	return out
}

// maxMessage bounds what a mistake quotes.
const maxMessage = 2000

// parse reads the source as a template with these functions. Actions that ask for a step's result wait where the file's
// values are kept apart by YAML; in a text that is executed when it is used, they do not.
func (s *source) parse(in *scope, funcs template.FuncMap, mayWait bool) *Error {
	if len(s.text) > maxDocument {
		return &Error{
			Pos:     Position{File: s.path},
			Message: fmt.Sprintf("the template is larger than %d MiB", maxDocument>>20),
		}
	}
	if strings.Count(s.text, "{{") > maxActions {
		return s.errorAt(Position{File: s.path, Line: 1, Col: 1}, "the template has more than %d actions", maxActions)
	}
	open, at := blocks(s.text)
	if at >= 0 {
		return s.errorAt(s.pos(at), "more than %d blocks are open here", maxBlocks)
	}
	t, err := template.New(s.path).Funcs(funcs).Option("missingkey=error").Parse(s.text)
	if err != nil && strings.HasSuffix(err.Error(), ": unexpected EOF") &&
		len(open) > 0 { // the parser says where the file ends
		last := open[len(open)-1].at
		return s.errorAt(s.pos(last), "%s has no {{ end }}", openingAction.FindString(s.text[last:]))
	}
	if err != nil {
		return s.unknownFunction(in, s.templateError(in, err), funcs)
	}
	if bad := s.internal(t); bad != nil {
		return bad
	}
	s.tmpl, s.texts = t, map[*byte]parse.Pos{}
	for _, t := range t.Templates() {
		if t.Tree == nil || t.Root == nil {
			continue
		}
		walkNodes(t.Root, func(n parse.Node) {
			switch n := n.(type) {
			case *parse.TextNode:
				if len(n.Text) > 0 {
					s.texts[&n.Text[0]] = n.Pos
				}
			case *parse.ChainNode:
				exportMethods(n)
			}
		})
		if mayWait {
			if bad := s.deferActions(t, funcs); bad != nil {
				return bad
			}
		}
		guardTree(t)
		if err := meterTree(t, funcs); err != nil {
			return s.templateError(in, err)
		}
	}
	return nil
}

var openingAction = lazyregexp.New(`^\{\{.{0,60}?\}\}|^\{\{-?\s*\w+`)
var notDefined = lazyregexp.New(`^function "(\w+)" not defined$`)

// unknownFunction gives the mistake of a function that does not exist its column and the nearest that does.
func (s *source) unknownFunction(in *scope, e *Error, funcs template.FuncMap) *Error {
	m := notDefined.FindStringSubmatch(e.Message)
	if m == nil {
		if e.Hint == "" {
			e.Hint = newcomer.ParseHint(e.Message, s.line(e.Pos.Line))
		}
		return e
	}
	if at := calledAt(s.line(e.Pos.Line), m[1]); at >= 0 {
		e = s.errorAt(Position{File: s.path, Line: e.Pos.Line, Col: at + 1}, "there is no function %q", m[1])
	}
	if e.Hint = in.bareName(m[1]); e.Hint != "" {
		return e
	}
	if e.Hint = newcomer.LoopHint(s.text, m[1]); e.Hint != "" {
		return e
	}
	line := s.line(e.Pos.Line)
	e.Hint = functionHint(m[1], line[min(e.Pos.Col-1, len(line)):], slices.Collect(maps.Keys(funcs)))
	return e
}

var actionOfLine = lazyregexp.New(`\{\{.*?(\}\}|$)`)

// calledAt is where a line calls a function: it is a word of an action, and no field or variable; -1 where it does not.
func calledAt(line, name string) int {
	word := regexp.MustCompile(`(^|[^\w.$"])` + name + `\b`)
	for _, a := range actionOfLine.FindAllStringIndex(line, -1) {
		if m := word.FindStringSubmatchIndex(line[a[0]:a[1]]); m != nil {
			return a[0] + m[3]
		}
	}
	return strings.Index(line, name) // of an action that began in another line
}

// internals are the functions that calls are put in for while a template is parsed. Nobody writes them.
var internals = []string{"tick", "down", "up", "weighed", "printed", "keyed", "deferred", "local"}

// internal refuses a call of an internal function: with it a template could have more work than it may.
func (s *source) internal(t *template.Template) (bad *Error) {
	for _, t := range t.Templates() {
		if t.Tree == nil || t.Root == nil {
			continue
		}
		walkNodes(t.Root, func(n parse.Node) {
			ident, ok := n.(*parse.IdentifierNode)
			s.changes = s.changes || ok && slices.Contains(changers, base(ident.Ident))
			if ok && bad == nil && slices.Contains(internals, ident.Ident) {
				bad = s.errorAt(s.pos(int(ident.Pos)), "there is no function %q", ident.Ident)
			}
		})
	}
	return bad
}

// line is a line of the source, "" where there is none.
func (s *source) line(number int) string {
	return lineAt(s.text, s.starts(), number)
}

// literal is the offset of a text of the template, which is known by its address.
func (s *source) literal(p []byte) (int, bool) {
	if len(p) == 0 {
		return 0, false
	}
	at, ok := s.texts[&p[0]]
	return int(at), ok
}

// execute renders the template for a scope that has an execution. A plain source renders as itself.
func (s *source) execute(in *scope, dot any) (*rendered, *Error) {
	if s.tmpl == nil {
		return &rendered{src: s, text: []byte(s.text)}, nil
	}
	r := &rendered{src: s, segs: make([]segment, 0, len(s.texts)+1)}
	t, err := s.bind(s.tmpl, in.x)
	if err == nil {
		err = t.Execute(r, dot)
	}
	if err != nil {
		bad := s.templateError(in, err)
		if n := len(r.segs); bad.Pos.Line == 0 && n > 0 { // from Write: it is where the output ends
			at := s.errorAt(s.pos(r.segs[n-1].src), "%s", bad.Message)
			at.cause = err
			bad = at
		}
		return nil, bad
	}
	return r, nil
}
