package render

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Scalars with opaque texts are told by their style, which every copy of a node keeps.
const (
	opaqueStyle  yaml.Style = 1 << 30 // some of the text is opaque
	unnamedStyle yaml.Style = 1 << 29 // some opaque text of it is not a plain name
	bareStyle    yaml.Style = 1 << 28 // some opaque text of it is not quoted for a shell
	secretStyle  yaml.Style = 1 << 27 // some opaque text of it is a secret
)

// insert puts opaque texts into the scalars of a tree, where their marks stand. A mark that no action wrote is a
// mistake.
func (d *document) insert(n *yaml.Node, used map[string]bool) *Error {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, markOpen) {
		if bad := d.insertInto(n, used); bad != nil {
			return bad
		}
	}
	for _, c := range n.Content {
		if bad := d.insert(c, used); bad != nil {
			return bad
		}
	}
	return nil
}

const markOpen, markClose = "\uE000", "\uE001"

func (d *document) insertInto(n *yaml.Node, used map[string]bool) *Error {
	var out strings.Builder
	rest, whole := n.Value, false
	for {
		before, after, open := strings.Cut(rest, markOpen)
		out.WriteString(before)
		if !open {
			break
		}
		name, behind, closed := strings.Cut(after, markClose)
		number, isMark := markNumber(name)
		if !closed || !isMark {
			out.WriteString(markOpen)
			rest = after
			continue
		}
		if from, to := d.from.marks(name); used[name] || number < from || number >= to {
			return d.errorAt(n, "the characters U+E000 and U+E001 are kept for pullet")
		}
		used[name] = true
		if name[0] != 'f' {
			out.WriteString(waitingMark(number))
		} else {
			one := d.from.carrier.texts[number]
			whole = out.Len() == 0 && behind == "" && n.Style&^yaml.TaggedStyle == 0
			out.WriteString(one.in(n, whole))
			setType(n, one, whole)
		}
		rest = behind
	}
	n.Value = out.String()
	return nil
}

// markNumber reads what stands between the characters of a mark: f and a number for an opaque text, a number for a
// deferred action.
func markNumber(name string) (int, bool) {
	digits := strings.TrimPrefix(name, "f")
	if digits == "" || len(digits) > 9 || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil
}

// marks are the numbers that this output may have in its marks.
func (r *rendered) marks(name string) (from, to int) {
	if name[0] != 'f' {
		return r.waits[0], r.waits[1]
	}
	if r.carrier == nil {
		return 0, 0
	}
	return 0, len(r.carrier.texts)
}

// in is the text as it belongs into a scalar.
func (c carried) in(n *yaml.Node, whole bool) string {
	switch {
	case c.form == asText,
		c.form == asWord,
		c.form == asScalar && whole,
		c.form == inQuotes && n.Style&yaml.DoubleQuotedStyle != 0:
		return c.text
	}
	return c.escaped
}

// setType gives a scalar with an opaque text its type: a text, unless the text is all of it and spells a number or a
// boolean.
func setType(n *yaml.Node, one carried, whole bool) {
	n.Style |= opaqueStyle
	if one.secret {
		n.Style |= secretStyle
	}
	if one.form != asWord {
		n.Style |= bareStyle
	}
	if !plainName.MatchString(one.text) {
		n.Style |= unnamedStyle
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return
	}
	n.Tag = "!!str"
	if !whole || one.form != asText {
		return
	}
	switch scalarValue(one.text).(type) {
	case bool:
		n.Tag = "!!bool"
	case int:
		n.Tag = "!!int"
	case float64:
		n.Tag = "!!float"
	}
}

// isOpaque reports a scalar with an opaque text in it.
func isOpaque(n *yaml.Node) bool { return n.Style&opaqueStyle != 0 }

// isSecret reports a scalar with a secret in it.
func isSecret(n *yaml.Node) bool { return n.Style&secretStyle != 0 }

// named refuses a scalar that is read as more than text, such as a target or an expression, with an opaque text that is
// not a plain name.
func (d *decoder) named(n *yaml.Node, what, hint string) bool {
	if n.Style&unnamedStyle == 0 {
		return true
	}
	if isSecret(n) { // which is reported as such
		return false
	}
	d.failf(
		n,
		"%s cannot hold a text that comes from a host's facts or from another host, unless that is a plain name",
		what,
	)
	d.errs[len(d.errs)-1].Hint = hint
	return false
}

// readable is a text of the output for people: an opaque text stands in it as it would in code.
func (r *rendered) readable(text string) string {
	var out strings.Builder
	for {
		before, after, open := strings.Cut(text, markOpen)
		out.WriteString(before)
		name, rest, closed := strings.Cut(after, markClose)
		if !open || !closed {
			return out.String()
		}
		if number, ok := markNumber(name); ok && name[0] == 'f' && r.carrier != nil && number < len(r.carrier.texts) {
			if one := r.carrier.texts[number]; one.secret {
				out.WriteString(shownSecret)
			} else {
				fmt.Fprintf(&out, "%q", one.text)
			}
		}
		text = rest
	}
}

// insertItem puts the opaque texts of an item into a scalar, which is text whatever they spell.
func (d *document) insertItem(n *yaml.Node) *Error {
	if !strings.Contains(n.Value, markOpen) {
		return nil
	}
	bad := d.insertInto(n, map[string]bool{})
	n.Tag = "!!str"
	return bad
}

// isOneMark reports a text that is one mark and nothing else.
func isOneMark(text, open, end string) bool {
	return strings.HasPrefix(text, open) && strings.Index(text, end) == len(text)-len(end)
}

// isEmpty reports a mark for an opaque text that is empty.
func (r *rendered) isEmpty(text string) bool {
	if r.carrier == nil || !isOneMark(text, markOpen, markClose) {
		return false
	}
	number, ok := markNumber(text[len(markOpen) : len(text)-len(markClose)])
	return ok && number < len(r.carrier.texts) && r.carrier.texts[number].text == ""
}
