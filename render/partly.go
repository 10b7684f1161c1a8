package render

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// A template that fails says nothing of what is behind the failure. So that a file's other mistakes are told with it,
// what failed is taken out and the rest looked at: a value becomes a mark that no file has, and a block is left out.
// Nothing of this is ever run.

// lost stands where a value would be that could not be made.
const lost = "\uE002"

// maxPartial bounds how many failures of one file are taken out.
const maxPartial = 20

// partly executes what is left of a job's file without the actions that fail, and records each failure; nil where
// that cannot be done. Cut tells that a block was left out: what seems to be missing may stand in it.
func (f *documents) partly(src *source, bad *Error) (out *rendered, cut bool) {
	text := src.text
	for range maxPartial {
		if slices.ContainsFunc(f.failed, func(s *Error) bool { return s.Pos == bad.Pos }) { // it was no help
			return nil, false
		}
		f.c.fail(bad)
		f.failed = append(f.failed, bad)
		if bad.Pos.File != src.path || bad.Pos.Line == 0 {
			return nil, false
		}
		taken, block := without(text, lineStarts(text)[bad.Pos.Line-1]+bad.Pos.Col-1)
		if taken == "" {
			return nil, false
		}
		text, cut = taken, cut || block
		rest := &source{
			path:       src.path,
			text:       text,
			shapes:     src.shapes,
			conditions: src.conditions,
			owner:      src.owner,
			early:      src.early,
		}
		bad = rest.parse(f.c.scope, rest.functions(rest.owner), true)
		rest.text, rest.lines = src.text, nil // of the same length: messages show what is written
		if bad != nil {
			if before := f.failed[len(f.failed)-1]; errors.Is(before, errNotOpened) { // it declared what is missing now
				bad.cause = errNotOpened
			}
			src.quote(bad)
			continue
		}
		f.c.scope.x.meter.reset()
		if out, bad = f.execute(rest); bad == nil {
			return out, cut
		}
	}
	return nil, false
}

var (
	opensBlock = lazyregexp.New(`^\{\{-?\s*(else\s+)?(if|with|range)\b`)
	noValue    = lazyregexp.New(
		`^\{\{-?\s*(\$\w+\s*(,\s*\$\w+\s*)?:?=|(else|end|define|block|template|break|continue)\b|/\*)`,
	)
)

// without takes the action at an offset out of a template, which keeps its length: so all else keeps its place. It is
// "" where that cannot be done.
func without(text string, at int) (rest string, block bool) {
	begin := strings.LastIndex(text[:min(at+2, len(text))], "{{")
	if begin < 0 {
		return "", false
	}
	action, _, closed := strings.Cut(text[begin:], "}}")
	action += "}}"
	if !closed || begin+len(action) <= at || strings.Contains(action, "\n") {
		return "", false
	}
	instead := lost
	switch {
	case opensBlock.MatchString(action):
		block = true
		m := opensBlock.FindStringSubmatch(action)
		instead = strings.TrimSuffix(m[0], m[2]) + "if 0"
		closing := "}}"
		if strings.HasSuffix(action, " -}}") {
			closing = " -}}"
		}
		if len(instead)+len(closing) > len(action) {
			return "", false
		}
		instead += strings.Repeat(" ", len(action)-len(instead)-len(closing)) + closing
	case noValue.MatchString(action):
		return "", false
	default:
		instead += strings.Repeat("_", len(action)-len(lost))
	}
	return text[:begin] + instead + text[begin+len(action):], block
}

// loses reports a mark below a node.
func loses(n *yaml.Node) bool {
	if strings.Contains(n.Value, lost) {
		return true
	}
	for _, c := range n.Content {
		if loses(c) {
			return true
		}
	}
	return false
}

// ownMistakes are those that do not follow from what was taken out.
func (f *documents) ownMistakes() ErrorList {
	return onlyFirst(slices.DeleteFunc(slices.Clone(f.c.errs), func(e *Error) bool {
		return !slices.Contains(f.failed, e) &&
			slices.ContainsFunc(f.failed, func(s *Error) bool { return e.follows(s) })
	}))
}

// quotedLost is the mark in a quoted text.
var quotedLost = strings.Trim(strconv.QuoteToASCII(lost), `"`)

// namesLost reports a value, or a quoted one, with a mark in it.
func namesLost(value string) bool {
	return strings.Contains(value, lost) || strings.Contains(value, quotedLost)
}

// follows reports a mistake that the failure of a template makes: it is about a mark, or stands at the text in which
// one is.
func (e *Error) follows(failed *Error) bool {
	if e.lost {
		return true
	}
	if e.Pos.File != failed.Pos.File || e.Pos.Line != failed.Pos.Line || e.Pos.Col > failed.Pos.Col {
		return false
	}
	line := failed.line
	between := line[min(e.Pos.Col-1, len(line)):min(failed.Pos.Col-1, len(line))]
	before, _, _ := strings.Cut(between, "{{")
	return !strings.ContainsAny(before, ":,{[")
}
