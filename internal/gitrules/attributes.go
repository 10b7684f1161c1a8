package gitrules

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

const (
	maxRules = 1 << 20 // bytes of all rules of one kind
	maxLine  = 2048    // of gitattributes: git leaves longer ones out
)

// TooLargeError says that a repository has more rules than are read.
type TooLargeError struct{ kind string }

func tooLarge(kind string) error { return &TooLargeError{kind} }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the %s rules of the repository are larger than the limit of %d MiB", e.kind, maxRules>>20)
}

// FilteredFile is a file whose content git changes with a filter at each checkout, such as git-crypt: hosts get what
// the commit holds, which is not what stands in the work tree.
type FilteredFile struct{ Name, Filter string }

// Error names the filter, and not the file.
func (f FilteredFile) Error() string {
	return fmt.Sprintf(
		"the filter %s of .gitattributes makes the content of this file, and hosts run no filters: they would get what the "+
			"commit holds; put the file into the repository as it is, or encrypt it with pullet secrets edit",
		f.Filter,
	)
}

// Filters is the rules of gitattributes(5) that set filters.
type Filters struct {
	rules  map[string][]attributeRule // by directory with a slash at the end, those that count more last
	macros map[string][]attribute
}

type attributeRule struct {
	pattern
	attributes []attribute // filters and macros alone
}

// attribute is an attribute of a rule. A value is what it is set to; on is set without one.
type attribute struct {
	name, value string
	on          bool
}

// ReadFilters reads the texts of all .gitattributes files by their paths, which are relative to the repository.
func ReadFilters(texts map[string][]byte) (*Filters, error) {
	f := &Filters{rules: map[string][]attributeRule{}, macros: map[string][]attribute{}}
	size, some := 0, false
	for _, text := range texts {
		size += len(text)
		some = some || bytes.Contains(text, []byte("filter="))
	}
	switch {
	case !some:
		return f, nil
	case size > maxRules:
		return nil, tooLarge("gitattributes")
	}
	for name, text := range texts {
		dir := prefix(path.Dir(name))
		for line := range bytes.Lines(bytes.TrimPrefix(text, byteOrderMark)) {
			f.read(dir, string(line))
		}
	}
	for dir, rules := range f.rules {
		for i := range rules {
			rules[i].attributes = slices.DeleteFunc(rules[i].attributes, func(a attribute) bool {
				return a.name != "filter" && f.macros[a.name] == nil
			})
		}
		f.rules[dir] = slices.DeleteFunc(rules, func(r attributeRule) bool { return len(r.attributes) == 0 })
	}
	return f, nil
}

// read reads a line. Lines that git leaves out have no effect here, either.
func (f *Filters) read(dir, line string) {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") || len(line) > maxLine {
		return
	}
	name, rest := line, ""
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		name, rest = quoted, line[len(quoted):]
		if name, err = strconv.Unquote(quoted); err != nil {
			return
		}
	} else if i := strings.IndexAny(line, " \t"); i > 0 {
		name, rest = line[:i], line[i:]
	}
	attributes, ok := parseAttributes(rest)
	macro, isMacro := strings.CutPrefix(name, "[attr]")
	switch {
	case !ok, strings.HasPrefix(name, "!"):
	case !isMacro:
		if p := parsePattern(dir, name); !p.never && !p.dirOnly {
			f.rules[dir] = append(f.rules[dir], attributeRule{p, attributes})
		}
	case dir == "": // git reads macros at the top alone
		f.macros[macro] = attributes
	}
}

// parseAttributes reads the attributes of a line; ok is false if the name of one is not allowed.
func parseAttributes(text string) (out []attribute, ok bool) {
	for word := range strings.FieldsSeq(text) {
		a := attribute{}
		name, value, hasValue := strings.Cut(word, "=")
		switch {
		case hasValue:
			a.value = value
		case name[0] == '-' || name[0] == '!':
			name = name[1:]
		default:
			a.on = true
		}
		if !isAttribute(name) {
			return nil, false
		}
		a.name = name
		out = append(out, a)
	}
	return out, true
}

func isAttribute(name string) bool {
	other := func(r rune) bool {
		return r > 127 || !isAlpha(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune("-._", r)
	}
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, other)
}

// Of returns the filter of a file; "" if it has none. An error is that of the context.
func (f *Filters) Of(ctx context.Context, name string) (string, error) {
	known := map[string]attribute{}
	for dir := prefix(path.Dir(name)); ; dir = prefix(path.Dir(strings.TrimSuffix(dir, "/"))) {
		for _, rule := range slices.Backward(f.rules[dir]) {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			if rule.matches(name, false) {
				f.learn(known, rule.attributes)
			}
			if a, is := known["filter"]; is {
				return a.value, nil
			}
		}
		if dir == "" {
			return "", nil
		}
	}
}

// learn adds the attributes of a rule to those that are known of a file: what is known counts more.
func (f *Filters) learn(known map[string]attribute, attributes []attribute) {
	for _, a := range slices.Backward(attributes) {
		if _, is := known[a.name]; is {
			continue
		}
		known[a.name] = a
		if a.on {
			f.learn(known, f.macros[a.name])
		}
	}
}

// NotLFS reports a filter other than LFS. A file that LFS was turned on for later is in the commit as it is.
func NotLFS(filter string) bool { return filter != "lfs" }

// First returns the first of the files whose filter is wanted.
func (f *Filters) First(
	ctx context.Context, files []string, wanted func(filter string) bool,
) (first FilteredFile, found bool, err error) {
	if len(f.rules) == 0 {
		return FilteredFile{}, false, nil
	}
	for _, name := range files {
		filter, err := f.Of(ctx, name)
		if err != nil {
			return FilteredFile{}, false, err
		}
		if filter != "" && wanted(filter) {
			return FilteredFile{name, filter}, true, nil
		}
	}
	return FilteredFile{}, false, nil
}
