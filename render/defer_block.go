package render

import (
	"bytes"
	"slices"
	"strings"
	"text/template/parse"

	"go.yaml.in/yaml/v4"
)

// A block that decides by the item of a forEach ({{ if item.shell }}, {{ range item.keys }}) waits as a whole: it is
// one action to the rest, whose place in the tree it takes.

// itemBlocks puts an action in the place of every block whose head asks for the item, and says which blocks they stand
// for.
func (s *source) itemBlocks(root *parse.ListNode) map[*parse.ActionNode]parse.Node {
	whole := map[*parse.ActionNode]parse.Node{}
	walkNodes(root, func(n parse.Node) {
		list, ok := n.(*parse.ListNode)
		if !ok {
			return
		}
		for i, child := range list.Nodes {
			if head := headOf(child); head != nil && s.deferrable(head).item {
				stand := &parse.ActionNode{NodeType: parse.NodeAction, Pos: head.Pos, Line: head.Line, Pipe: head}
				whole[stand], list.Nodes[i] = child, stand
			}
		}
	})
	return whole
}

// headOf is what a block decides by; nil for what is no block. The rest of an if with else counts: it is one block.
func headOf(n parse.Node) *parse.PipeNode {
	switch n := n.(type) {
	case *parse.IfNode:
		return n.Pipe
	case *parse.RangeNode:
		return n.Pipe
	case *parse.WithNode:
		return n.Pipe
	}
	return nil
}

// deferrableBlock is a block with all that is in it. The variables that it sets itself are its own.
func (s *source) deferrableBlock(head *parse.PipeNode, block parse.Node) *deferrable {
	d := &deferrable{src: s, at: head.Pos, text: head.String()}
	d.inspect(block)
	var own []string
	walkNodes(block, func(n parse.Node) {
		switch n := n.(type) {
		case *parse.PipeNode:
			for _, v := range n.Decl {
				own = append(own, v.Ident[0])
			}
		case *parse.TextNode:
			n.Text = bytes.ReplaceAll(n.Text, []byte("\n"), []byte("\n"+lineOfFile))
		}
	})
	d.block = block.String()
	d.vars = slices.DeleteFunc(d.vars, func(v string) bool { return slices.Contains(own, v) })
	return d
}

// lineOfFile marks where lines of a block begin that stand in the file, and not in the data that it prints.
const lineOfFile = "\uE000\uE001"

// unindented is the text of a node, read as YAML reads it, where lines of a file got into it through a block: without
// what they are indented by, or on one line.
func (d *document) unindented(n *yaml.Node, text string) string {
	if !strings.Contains(text, lineOfFile) {
		return text
	}
	indent := 0
	if n.Style&yaml.LiteralStyle != 0 {
		indent = d.indentOf(n)
	}
	parts := strings.Split(text, "\n"+lineOfFile)
	for i, part := range parts[1:] {
		rest := strings.TrimLeft(part, " ")
		if n.Style&yaml.LiteralStyle != 0 {
			rest = part[min(indent, len(part)-len(rest)):]
		}
		parts[i+1] = rest
	}
	if n.Style&yaml.LiteralStyle != 0 {
		return strings.Join(parts, "\n")
	}
	return strings.Join(parts, " ")
}

// indentOf is how far a literal text is indented: as its first line.
func (d *document) indentOf(n *yaml.Node) int {
	for line := n.Line + 1; ; line++ {
		text := d.from.line(line)
		if rest := strings.TrimLeft(text, " "); rest != "" || line > n.Line+1000 {
			return len(text) - len(rest)
		}
	}
}
