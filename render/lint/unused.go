package lint

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// What is unused is found in the text of the files, not in what some node makes of them: a name that stands anywhere
// counts as used, because a wrong warning costs more than a missing one.

// inYAML reports that the file is one that the repository's folders hold.
func inYAML(f render.TextFile) bool {
	return f.Dir != "files" && (path.Ext(f.Path) == ".yaml" || path.Ext(f.Path) == ".yml")
}

var (
	templateAction = lazyregexp.New(`(?s)\{\{.*?\}\}`)
	comment        = lazyregexp.New(`(?m)(^|\s)#.*$`)
	word           = lazyregexp.New(`[\p{L}\p{N}_-]+`)
	topKey         = lazyregexp.New(`(?m)^(["']?)([^\s"'#{\[:-][^"':\n]*)["']?:(?:\s|$)`)
	wholeVars      = lazyregexp.New(
		"\\b(?:vars|variables)\\b(?:\\??\\.[\\pL_]|\\??\\.?\\[\\s*[\"']|\\s+[\"'`]|[/:]|\\.ya?ml)?",
	)
	someMacro = lazyregexp.New("\\bmacros?\\b(?:\\s+[\"'`]|\\[\\s*[\"']|\\(\\s*[\"']|\\s*:|/)?")
)

// unused are the files, macros and variables that nothing mentions.
func unused(r *render.Repository) render.ErrorList {
	files := r.Texts()
	out := unusedFiles(r, files)
	words := mentions(files)
	for _, f := range files {
		switch {
		case f.Dir == "vars" && inYAML(f) && !ofSOPS(f) && !anyUse(files, wholeVars):
			out = append(out, unusedKeys(f, "variable", words, nil)...)
		case f.Dir == "macros" && inYAML(f) && !anyUse(files, someMacro):
			out = append(out, unusedKeys(f, "macro", words, definitions(files, "macros"))...)
		}
	}
	return out
}

// ofSOPS reports a file that SOPS encrypted: who reads what it holds is told from its other files.
func ofSOPS(f render.TextFile) bool {
	return strings.Contains(f.Text, "\nsops:") && strings.Contains(f.Text, "ENC[")
}

// mentions counts the words of all texts. Those of vars files count where a template of theirs has them: else they are
// definitions.
func mentions(files []render.TextFile) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		texts := []string{f.Text}
		if f.Dir == "vars" {
			texts = templateAction.FindAllString(f.Text, -1)
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
func definitions(files []render.TextFile, dir string) map[string]int {
	out := map[string]int{}
	for _, f := range files {
		if f.Dir == dir {
			for _, m := range topKey.FindAllStringSubmatch(f.Text, -1) {
				out[m[2]]++
			}
		}
	}
	return out
}

// holdsExpressions reports a file in which expressions stand anywhere.
func holdsExpressions(f render.TextFile) bool {
	return slices.Contains([]string{"jobs", "events", "reactions"}, f.Dir) || f.Path == "base/jobs.yaml"
}

// anyUse reports that some template or expression uses the variables, or the macros, by names that its text does not
// show. The pattern matches a root with what may follow it where the name is literal; the root alone is any use.
func anyUse(files []render.TextFile, root *lazyregexp.Regexp) bool {
	for _, f := range files {
		text := strings.Join(templateAction.FindAllString(f.Text, -1), "\n")
		if holdsExpressions(f) {
			text += comment.ReplaceAllString(f.Text, "")
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
func unusedKeys(f render.TextFile, what string, words, defined map[string]int) render.ErrorList {
	var out render.ErrorList
	for _, m := range topKey.FindAllStringSubmatchIndex(f.Text, -1) {
		name := f.Text[m[4]:m[5]]
		if name == "metadata" || name == "spec" {
			if what == "variable" { // described: what is below spec is not looked at
				return nil
			}
			continue
		}
		if word.FindString(name) != name || words[name] > defined[name] {
			continue
		}
		e := f.WarningAt(m[4], "nothing in the repository mentions the %s %q", what, name)
		e.Hint = "remove it, or use it"
		out = append(out, e)
	}
	return out
}

// unusedFiles are the files that no node read and no text names.
func unusedFiles(r *render.Repository, files []render.TextFile) render.ErrorList {
	named := map[string]*names{}
	for _, dir := range []string{"vars", "macros", "jobs", "files", "events"} {
		named[dir] = namesIn(files, dir)
	}
	used := map[string]bool{} // also through a link
	for _, f := range files {
		if named[f.Dir] == nil || f.Dir != "files" && !inYAML(f) || r.WasRead(f.Path) || named[f.Dir].has(f.Name) {
			used[f.Real] = true
		}
	}
	var out render.ErrorList
	for _, f := range files {
		if used[f.Real] {
			continue
		}
		e := f.WarningAt(-1, "nothing refers to this file")
		e.Hint = fmt.Sprintf("remove it, or name it in base/%s.yaml", f.Dir)
		switch f.Dir {
		case "files":
			e.Hint = "remove it, or make it the source of a step"
		case "events":
			e.Hint = "remove it, or name its triggers in base/events.yaml"
		}
		out = append(out, e)
	}
	return out
}

// unusedExtensions are the actions of the repository that no other file names.
func unusedExtensions(r *render.Repository) render.ErrorList {
	files := r.Texts()
	var out render.ErrorList
	list, _ := r.Extensions() // its mistakes are told elsewhere
	for _, e := range list {
		if !slices.ContainsFunc(files, func(f render.TextFile) bool { return strings.Contains(f.Text, e.Name) }) {
			bad := e.ErrorAt([]string{"name"}, "no job uses the action %q", e.Name)
			bad.Severity, bad.Hint = render.Warning, "remove it, or use it"
			out = append(out, bad)
		}
	}
	return out
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
	control = lazyregexp.New(
		`(?s)^\{\{-?\s*(range|if|else|end|with|define|block|template|break|continue|/\*|\$\w+\s*:?=)`,
	)
	splitter = lazyregexp.New(`[\s'",\[\]{}]+`)
	sourceOf = lazyregexp.New(`source["']?:\s*["']?([^\s'",{}\[\]]+)`)
)

// namesIn are the names of files of a folder in the texts of others.
func namesIn(files []render.TextFile, dir string) *names {
	out := &names{words: map[string]bool{}, patterns: map[string]*regexp.Regexp{}}
	for _, f := range files {
		text := templateAction.ReplaceAllStringFunc(f.Text, func(action string) string {
			if control.MatchString(action) {
				return " "
			}
			return "\x00"
		})
		switch included := dir == "jobs" && f.Dir == dir; {
		case dir == "files":
			out.text += "\n" + f.Text
			for _, m := range sourceOf.FindAllStringSubmatch(text, -1) {
				out.add(m[1])
			}
		case included || f.Path == "base/"+dir+".yaml" || dir == "jobs" && f.Dir == "reactions":
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
