package gitrules

import "strings"

// pattern is a pattern of gitignore(5) or gitattributes(5).
type pattern struct {
	dir      string   // directory of its file with a slash at the end; "" is the top
	parts    [][]glob // between slashes; a part without globs is "**"
	anchored bool     // matches the path below dir, not the last name alone
	dirOnly  bool
	never    bool // matches nothing because its syntax is wrong
}

// glob is a part of a pattern that matches one byte, or with star any number of them.
type glob struct {
	star bool
	set  *set // nil: the byte alone
	lit  byte
}

// set is a set of bytes.
type set [4]uint64

func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (g glob) matches(b byte) bool {
	if g.set != nil {
		return g.set.has(b)
	}
	return g.lit == b
}

// parsePattern reads a pattern of a file in a directory.
func parsePattern(dir, text string) pattern {
	p := pattern{dir: dir}
	if text, p.dirOnly = strings.CutSuffix(text, "/"); strings.Contains(text, "/") {
		p.anchored = true
	}
	part, rest, more := "", strings.TrimPrefix(text, "/"), true
	for more {
		part, rest, more = cutPart(rest)
		if p.anchored && len(part) >= 2 && strings.Trim(part, "*") == "" {
			p.parts = append(p.parts, nil)
			continue
		}
		globs, ok := parseGlobs(part, more)
		if !ok {
			return pattern{never: true}
		}
		p.parts = append(p.parts, globs)
	}
	return p
}

// cutPart cuts a pattern at its first slash outside of brackets.
func cutPart(text string) (part, rest string, more bool) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '/':
			return text[:i], text[i+1:], true
		case '\\':
			if !strings.HasPrefix(text[i+1:], "/") {
				i++
			}
		case '[':
			_, end := parseSet(text[i+1:])
			i += end
		}
	}
	return text, "", false
}

// parseGlobs reads a part of a pattern; ok is false if no name matches it. A backslash before a slash has no effect.
func parseGlobs(part string, beforeSlash bool) (globs []glob, ok bool) {
	for i := 0; i < len(part); i++ {
		switch c := part[i]; c {
		case '*':
			if len(globs) == 0 || !globs[len(globs)-1].star {
				globs = append(globs, glob{star: true})
			}
		case '?':
			globs = append(globs, glob{set: &set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}})
		case '[':
			s, end := parseSet(part[i+1:])
			if end == 0 {
				return nil, false
			}
			globs = append(globs, glob{set: s})
			i += end
		case '\\':
			switch i++; {
			case i < len(part):
				globs = append(globs, glob{lit: part[i]})
			case !beforeSlash:
				return nil, false
			}
		default:
			globs = append(globs, glob{lit: c})
		}
	}
	return globs, len(globs) > 0
}

// parseSet reads a set up to its bracket, and returns the length of its text; 0 if the bracket is missing.
func parseSet(text string) (*set, int) {
	s, i := &set{}, 0
	not := text != "" && (text[0] == '!' || text[0] == '^')
	if not {
		i++
	}
	for first := i; i < len(text); i++ {
		if text[i] == ']' && i > first {
			if not {
				s = &set{^s[0], ^s[1], ^s[2], ^s[3]}
			}
			return s, i + 1
		}
		if name, _, ok := strings.Cut(text[i:], ":]"); ok && strings.HasPrefix(name, "[:") {
			if class := classes[name[2:]]; class != nil {
				for b := range 128 {
					if class(byte(b)) {
						s.add(byte(b))
					}
				}
				i += len(name) + 1
				continue
			}
		}
		from, at := member(text, i)
		to := from
		if at+2 < len(text) && text[at+1] == '-' && text[at+2] != ']' {
			to, at = member(text, at+2)
		}
		for b := int(from); b <= int(to); b++ {
			s.add(byte(b))
		}
		i = at
	}
	return nil, 0
}

// member returns the byte at i, or the one behind a backslash, and where it is.
func member(text string, i int) (byte, int) {
	if text[i] == '\\' && i+1 < len(text) {
		i++
	}
	return text[i], i
}

var classes = map[string]func(byte) bool{
	"alnum":  func(b byte) bool { return isAlpha(b) || isDigit(b) },
	"alpha":  isAlpha,
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < ' ' || b == 127 },
	"digit":  isDigit,
	"graph":  func(b byte) bool { return b > ' ' && b < 127 },
	"lower":  func(b byte) bool { return 'a' <= b && b <= 'z' },
	"print":  func(b byte) bool { return b >= ' ' && b < 127 },
	"punct":  func(b byte) bool { return b > ' ' && b < 127 && !isAlpha(b) && !isDigit(b) },
	"space":  func(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' },
	"upper":  func(b byte) bool { return 'A' <= b && b <= 'Z' },
	"xdigit": func(b byte) bool { return isDigit(b) || 'a' <= b|0x20 && b|0x20 <= 'f' },
}

func isAlpha(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }
func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// matches reports whether the pattern matches a path, which is relative to the top.
func (p pattern) matches(path string, isDir bool) bool {
	below, ok := strings.CutPrefix(path, p.dir)
	switch {
	case !ok || p.never || p.dirOnly && !isDir:
		return false
	case !p.anchored:
		return matchName(p.parts[0], below[strings.LastIndexByte(below, '/')+1:])
	}
	return matchPath(p.parts, below)
}

// matchPath matches the names of a path with the parts of a pattern. After a "**" it tries the first place that fits,
// and the next one if the parts behind it do not match there; earlier ones need no second try.
func matchPath(parts [][]glob, path string) bool {
	rest, more := path, true // names that are left
	i, again := 0, -1        // the part, and the one behind the last "**"
	var restAgain string
	for more {
		name, after, hasMore := strings.Cut(rest, "/")
		switch {
		case i < len(parts) && parts[i] == nil:
			if i == len(parts)-1 {
				return true
			}
			i++
			again, restAgain = i, rest
		case i < len(parts) && matchName(parts[i], name):
			i, rest, more = i+1, after, hasMore
		case again >= 0:
			_, restAgain, more = strings.Cut(restAgain, "/")
			i, rest = again, restAgain
		default:
			return false
		}
	}
	return i == len(parts)
}

// matchName matches a name in the same way.
func matchName(globs []glob, name string) bool {
	i, j := 0, 0
	again, from := -1, 0 // the glob behind the last star, and where it was tried
	for j < len(name) {
		switch {
		case i < len(globs) && globs[i].star:
			i++
			again, from = i, j
		case i < len(globs) && globs[i].matches(name[j]):
			i, j = i+1, j+1
		case again >= 0:
			from++
			i, j = again, from
		default:
			return false
		}
	}
	for i < len(globs) && globs[i].star {
		i++
	}
	return i == len(globs)
}
