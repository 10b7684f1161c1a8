package lint

import (
	"slices"
	"strings"

	"github.com/pullet/pullet/render"
	"github.com/pullet/pullet/render/newcomer"
)

// jinjaUse are the files below files/ that steps of some node execute as templates.
type jinjaUse map[string]bool

// learn notes the templates of a catalog: files, and directories with a slash at the end.
func (u jinjaUse) learn(c *render.Catalog) {
	for _, j := range c.Jobs {
		for _, s := range j.Steps {
			if source := s.Params.Text("source"); source != "" && s.Params.Text("template") == "true" {
				u[source], u[strings.TrimSuffix(source, "/")+"/"] = true, true
			}
		}
	}
}

// executes reports whether a file is a template.
func (u jinjaUse) executes(f render.TextFile) bool {
	if f.Dir != "files" {
		return inYAML(f)
	}
	for dir := f.Name; dir != ""; {
		if u[dir] {
			return true
		}
		cut := strings.LastIndexByte(strings.TrimSuffix(dir, "/"), '/')
		dir = dir[:cut+1]
	}
	return false
}

// findings are statements of Jinja that would be written as they are, one of each kind in a file.
func (u jinjaUse) findings(r *render.Repository) render.ErrorList {
	var out render.ErrorList
	for _, f := range r.Texts() {
		if !u.executes(f) {
			continue
		}
		var told []string
		for _, tag := range newcomer.JinjaIn(f.Text) {
			if slices.Contains(told, tag.Word) || inYAML(f) && isComment(f.Text, tag.At) {
				continue
			}
			told = append(told, tag.Word)
			e := f.WarningAt(tag.At, "%.60s is Jinja: templates here are those of Go, and it stays in the text as it is",
				tag.Text)
			e.Hint = tag.Hint
			out = append(out, e)
		}
	}
	return out
}

// isComment reports whether an offset is in a line of YAML that is a comment.
func isComment(text string, at int) bool {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return strings.HasPrefix(strings.TrimSpace(line), "#")
}
