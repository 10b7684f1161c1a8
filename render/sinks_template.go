package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/pullet/pullet/internal/safetext"
)

// sinkTemplate is a body in JSON with values of an event in it. Every value is written as JSON, whatever is in it, so
// that an event says nothing but values. It has no loops, no variables and no functions but a few, and so an end.
type sinkTemplate struct{ body *template.Template }

const (
	maxSinkTemplate = 8 << 10 // bytes
	maxSinkBody     = 1 << 20
)

// sinkFuncs are the functions that templates of sinks may call. json is written behind every value.
var sinkFuncs = template.FuncMap{
	"json": func(v any) (string, error) {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(v)
		return strings.TrimSuffix(b.String(), "\n"), err
	},
	"join": func(separator string, list any) string {
		var out []string
		switch list := list.(type) {
		case []string:
			out = list
		case []any:
			for _, one := range list {
				out = append(out, fmt.Sprint(one))
			}
		}
		return strings.Join(out, separator)
	},
}

// sinkCalls are their names, and those that text/template has itself.
var sinkCalls = []string{"join", "print", "index", "len", "eq", "ne", "and", "or", "not"}

func parseSinkTemplate(text string) (*sinkTemplate, error) {
	if len(text) > maxSinkTemplate {
		return nil, fmt.Errorf("it has %d bytes, of %d at most", len(text), maxSinkTemplate)
	}
	body, err := template.New("template").Funcs(sinkFuncs).Parse(text)
	if err != nil {
		return nil, err
	}
	if err := closeNode(body.Root); err != nil {
		return nil, err
	}
	t := &sinkTemplate{body}
	_, err = t.fill(map[string]any{
		"name": "backup/failed", "fleet": "fleet", "node": "web1", "hosts": []string{"web1"}, "id": "1", "count": 1,
		"time": time.Time{}, "data": map[string]any{}, "text": "",
	})
	if _, unfit := errors.AsType[template.ExecError](err); unfit { // of what other events have
		err = nil
	}
	return t, err
}

// closeNode writes json behind every value, and refuses what has no end.
func closeNode(n parse.Node) error {
	switch n := n.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, one := range n.Nodes {
			if err := closeNode(one); err != nil {
				return err
			}
		}
	case *parse.IfNode:
		return errors.Join(calls(n.Pipe), closeNode(n.List), closeNode(n.ElseList))
	case *parse.ActionNode:
		err := calls(n.Pipe)
		name := parse.NewIdentifier("json").SetPos(n.Pos)
		call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{name}}
		n.Pipe.Cmds = append(n.Pipe.Cmds, call)
		return err
	case *parse.TextNode, *parse.CommentNode:
	default:
		return fmt.Errorf("%q: a body has values and if, and nothing else", safetext.Cut(n.String(), 40))
	}
	return nil
}

// calls refuses variables and functions that bodies do not have.
func calls(p *parse.PipeNode) error {
	if len(p.Decl) > 0 {
		return fmt.Errorf("%q: a body has no variables", p.Decl[0].String())
	}
	for _, cmd := range p.Cmds {
		for _, arg := range cmd.Args {
			switch arg := arg.(type) {
			case *parse.IdentifierNode:
				if !slices.Contains(sinkCalls, arg.Ident) {
					return fmt.Errorf("there is no function %q here: use %s", arg.Ident, strings.Join(sinkCalls, ", "))
				}
			case *parse.PipeNode:
				if err := calls(arg); err != nil {
					return err
				}
			case *parse.ChainNode:
				if inner, ok := arg.Node.(*parse.PipeNode); ok {
					if err := calls(inner); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// fill is the body for an event.
func (t *sinkTemplate) fill(event map[string]any) ([]byte, error) {
	out := &bounded{most: maxSinkBody}
	if err := t.body.Execute(out, event); err != nil {
		return nil, err
	}
	body := bytes.TrimSpace(out.Bytes())
	if !json.Valid(body) {
		return nil, errors.New("it gives no JSON: write {{ .name }} without quotes around it, which it brings itself")
	}
	return body, nil
}

// bounded is a buffer of so many bytes at most.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, fmt.Errorf("the body has more than %d bytes", b.most)
	}
	return b.Buffer.Write(p)
}
