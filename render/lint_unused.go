package render

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What is unused is found in the text of the files, not in what some node makes of them: a name that stands anywhere counts as used,
// because a wrong warning costs more than a missing one.

// textFile is a file of the repository as text.
type textFile struct {
	dir   string // jobs, vars, ...; "" for pullet.yaml
	name  string // below dir
	shown string // for messages
	path  string
	text  string
	layer string
}

// maxLinted bounds the files that are searched: beyond it they are data.
const maxLinted = 1 << 20

// texts are all text files of the repository that mean something to it.
func (r *Repository) texts() []textFile {
	var out []textFile
	for _, l := range r.layers {
		for _, dir := range []string{fleetFile, "nodes", "base", "vars", "macros", "jobs", "files"} {
			// A folder that a layer does not have is an empty one.
			_ = fs.WalkDir(l.FS, dir, func(p string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
					return nil
				}
				f := textFile{dir: dir, name: strings.TrimPrefix(p, dir+"/"), shown: r.shown(place{l, p}), path: p, layer: l.Name}
				if info, err := d.Info(); err == nil && info.Size() <= maxLinted {
					f.text = readText(l.FS, p)
				}
				out = append(out, f)
				return nil
			})
		}
	}
	return out
}

// readText is a file's text; "" where it has none.
func readText(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
		return ""
	}
	return string(text)
}

// yaml reports that the file is one that the repository's folders hold.
func (f textFile) yaml() bool {
	return f.dir != "files" && (path.Ext(f.path) == ".yaml" || path.Ext(f.path) == ".yml")
}

var (
	templateAction = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	comment        = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	word           = regexp.MustCompile(`[\p{L}\p{N}_-]+`)
	topKey         = regexp.MustCompile(`(?m)^(["']?)([^\s"'#{\[:-][^"':\n]*)["']?:(?:\s|$)`)
	wholeVars      = regexp.MustCompile("\\b(?:vars|variables)\\b(?:\\??\\.[\\pL_]|\\??\\.?\\[\\s*[\"']|\\s+[\"'`]|[/:]|\\.ya?ml)?")
	someMacro      = regexp.MustCompile("\\bmacros?\\b(?:\\s+[\"'`]|\\[\\s*[\"']|\\(\\s*[\"']|\\s*:|/)?")
)

// unused are the files, macros and variables that nothing mentions.
func (r *Repository) unused() ErrorList {
	files := r.texts()
	out := r.unusedFiles(files)
	words := mentions(files)
	for _, f := range files {
		switch {
		case f.dir == "vars" && f.yaml() && !anyUse(files, wholeVars):
			out = append(out, unusedKeys(f, "variable", words, nil)...)
		case f.dir == "macros" && f.yaml() && !anyUse(files, someMacro):
			out = append(out, unusedKeys(f, "macro", words, definitions(files, "macros"))...)
		}
	}
	return out
}

// mentions counts the words of all texts. Those of vars files count where a template of theirs has them: else they are definitions.
func mentions(files []textFile) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		texts := []string{f.text}
		if f.dir == "vars" {
			texts = templateAction.FindAllString(f.text, -1)
		}
		for _, text := range texts {
			for _, w := range word.FindAllString(text, -1) {
				out[w]++
			}
		}
	}
	return out
}

// definitions counts how often each name is defined in the files of a folder.
func definitions(files []textFile, dir string) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		if f.dir == dir {
			for _, m := range topKey.FindAllStringSubmatch(f.text, -1) {
				out[m[2]]++
			}
		}
	}
	return out
}

// anyUse reports that some template or expression uses the variables, or the macros, by names that its text does not show. The pattern
// matches a root with what may follow it where the name is literal; the root alone is any use.
func anyUse(files []textFile, root *regexp.Regexp) bool {
	for _, f := range files {
		text := strings.Join(templateAction.FindAllString(f.text, -1), "\n")
		if f.dir == "jobs" { // expressions stand anywhere
			text += comment.ReplaceAllString(f.text, "")
		}
		for _, m := range root.FindAllString(text, -1) {
			if strings.Trim(m, "abcdefghijklmnopqrstuvwxyz") == "" {
				return true
			}
		}
	}
	return false
}

// unusedKeys are the top-level keys of a file that are mentioned no more often than they are defined.
func unusedKeys(f textFile, what string, words, defined map[string]int) ErrorList {
	var out ErrorList
	src := &source{path: f.shown, text: f.text}
	for _, m := range topKey.FindAllStringSubmatchIndex(f.text, -1) {
		name := f.text[m[4]:m[5]]
		if name == "metadata" || name == "spec" {
			if what == "variable" { // described: what is below spec is not looked at
				return nil
			}
			continue
		}
		if word.FindString(name) != name || words[name] > defined[name] {
			continue
		}
		e := src.errorAt(src.pos(m[4]), "nothing in the repository mentions the %s %q", what, name)
		e.Severity, e.Hint = Warning, "remove it, or use it"
		out = append(out, e)
	}
	return out
}

// unusedFiles are the files that no node read and no text names.
func (r *Repository) unusedFiles(files []textFile) ErrorList {
	named := map[string]*names{}
	for _, dir := range []string{"vars", "macros", "jobs", "files"} {
		named[dir] = namesIn(files, dir)
	}
	var out ErrorList
	for _, f := range files {
		if named[f.dir] == nil || f.dir != "files" && !f.yaml() || r.wasRead(f.path) || named[f.dir].has(f.name) {
			continue
		}
		e := &Error{Pos: Position{File: f.shown}, Severity: Warning, Message: "nothing refers to this file"}
		e.Hint = fmt.Sprintf("remove it, or name it in base/%s.yaml", f.dir)
		if f.dir == "files" {
			e.Hint = "remove it, or make it the source of a step"
		}
		out = append(out, e)
	}
	return out
}

// unusedExtensions are the actions of the repository that no other file names.
func (r *Repository) unusedExtensions() ErrorList {
	files := r.texts()
	var out ErrorList
	list, _ := r.Extensions() // its mistakes are told elsewhere
	for _, e := range list {
		if !slices.ContainsFunc(files, func(f textFile) bool { return strings.Contains(f.text, e.Name) }) {
			bad := e.ErrorAt([]string{"name"}, "no job uses the action %q", e.Name)
			bad.Severity, bad.Hint = Warning, "remove it, or use it"
			out = append(out, bad)
		}
	}
	return out
}

// wasRead reports that a catalog needed a file of some layer.
func (r *Repository) wasRead(name string) bool {
	for _, l := range r.layers {
		if r.parsed[l.Name+"\x00"+name] != nil {
			return true
		}
	}
	return false
}

// names are what texts call files: words, and patterns where a template makes the name.
type names struct {
	words    map[string]bool
	patterns map[string]*regexp.Regexp
	text     string // of files, which anything may mention
	looked   int    // bytes of it, for all names
}

// maxLooked bounds the search for names in texts; beyond it every file counts as mentioned.
const maxLooked = 1 << 29

var (
	control  = regexp.MustCompile(`(?s)^\{\{-?\s*(range|if|else|end|with|define|block|template|break|continue|/\*|\$\w+\s*:?=)`)
	splitter = regexp.MustCompile(`[\s'",\[\]{}]+`)
	sourceOf = regexp.MustCompile(`source["']?:\s*["']?([^\s'",{}\[\]]+)`)
)

// namesIn are the names of files of a folder in the texts of others.
func namesIn(files []textFile, dir string) *names {
	out := &names{words: map[string]bool{}, patterns: map[string]*regexp.Regexp{}}
	for _, f := range files {
		text := templateAction.ReplaceAllStringFunc(f.text, func(action string) string {
			if control.MatchString(action) {
				return " "
			}
			return "\x00"
		})
		switch included := dir == "jobs" && f.dir == dir; {
		case dir == "files":
			out.text += "\n" + f.text
			for _, m := range sourceOf.FindAllStringSubmatch(text, -1) {
				out.add(m[1])
			}
		case included || f.path == "base/"+dir+".yaml":
			for _, token := range splitter.Split(comment.ReplaceAllString(text, ""), -1) {
				if !included || !strings.Contains(token, "\x00") {
					out.add(token)
				}
			}
		}
	}
	return out
}

func (n *names) add(token string) {
	token = strings.Trim(token, "/:")
	if !strings.Contains(token, "\x00") {
		n.words[token] = true
		return
	}
	n.patterns[token] = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(token), "\x00", ".*") + "$")
}

func (n *names) has(name string) bool {
	plain := strings.TrimSuffix(name, path.Ext(name))
	if n.words[name] || n.words[plain] {
		return true
	}
	if n.looked += len(n.text); n.looked > maxLooked || n.text != "" && strings.Contains(n.text, name) {
		return true
	}
	for _, p := range n.patterns {
		if p.MatchString(name) || p.MatchString(plain) {
			return true
		}
	}
	return n.text != "" && n.hasDirectory(path.Dir(name))
}

// hasDirectory reports a directory that is a source as a whole, or one above it.
func (n *names) hasDirectory(dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if n.words[dir] {
			return true
		}
		for _, p := range n.patterns {
			if p.MatchString(dir) {
				return true
			}
		}
	}
	return false
}
