package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// encode writes the arguments as the function does, with a mark for each opaque text.
func (fn *function) encode(c *carrier, args []any) (string, error) {
	switch base(fn.name) {
	case "quote":
		return inQuoteMarks(args, `"`, func(text string) string { return c.quoted(text, unquoted(strconv.Quote(text))) }), nil
	case "squote":
		return inQuoteMarks(args, "'", func(text string) string { return c.quoted(text, text) }), nil
	case "toYaml":
		marked := replaced(args[0], c.scalar)
		return toYAML(marked)
	}
	marked := replaced(args[0], func(text string) string { return c.quoted(text, insideJSON(text, fn.name)) })
	out, err := called(fn.f, []reflect.Value{reflect.ValueOf(&marked).Elem()})
	if err != nil {
		return "", err
	}
	return out[0].String(), nil
}

// layOut moves what an encoder wrote.
func (fn *function) layOut(c *carrier, args []any, inner encoded) (string, error) {
	marked, err := inner.mark(c)
	if err != nil {
		return "", err
	}
	in, err := fn.fit(append(append([]any(nil), args[:len(args)-1]...), marked))
	if err != nil {
		return "", err
	}
	out, err := called(fn.f, in)
	if err != nil {
		return "", err
	}
	return out[0].String(), nil
}

// inQuoteMarks is each argument in quotes, as the functions quote and squote write them.
func inQuoteMarks(args []any, mark string, with func(text string) string) string {
	var out []string
	for _, a := range args {
		if a == nil {
			continue
		}
		text, ok := textOf(a)
		if !ok {
			text = fmt.Sprint(revealed(a))
		}
		out = append(out, mark+with(text)+mark)
	}
	return strings.Join(out, " ")
}

// unquoted is a text without the quotes around it.
func unquoted(text string) string { return text[1 : len(text)-1] }

// insideJSON is a text as it stands between the quotes of JSON.
func insideJSON(text, function string) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(base(function) != "toRawJson")
	_ = enc.Encode(text) // a text can be encoded
	return unquoted(strings.TrimSuffix(out.String(), "\n"))
}
