package render

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// File is the content of a file under files/ in the repository, and how messages name it.
func (c *Catalog) File(name string) ([]byte, error) {
	full := path.Join("files", name)
	if !strings.HasPrefix(full, "files/") {
		return nil, fmt.Errorf("source %q leads out of files/", name)
	}
	p, ok := c.repo.locate(full)
	if !ok {
		hint := c.repo.unseenHint(full, DidYouMean(name, filesBelow(c.repo.layers, "files")))
		return nil, fmt.Errorf("there is no %s in the repository%s", full, inBrackets(hint))
	}
	if IsSealed(full) {
		return c.sealedFile(p)
	}
	data, err := fs.ReadFile(p.layer.FS, p.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.repo.displayName(p), plainFSError(err))
	}
	return data, nil
}

// sealedFile is the content of an encrypted file. Where there are no keys it is not known yet.
func (c *Catalog) sealedFile(p place) ([]byte, error) {
	c.repo.mu.Lock()
	defer c.repo.mu.Unlock()
	text, how, err := c.repo.sealed.open(c.scope.in, p)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", c.repo.displayName(p), err)
	case how == notOpened:
		return nil, errNotOpened
	case how == notForNode:
		return nil, fmt.Errorf("%s is not for this host: %s says who may read it", c.repo.displayName(p), SecretsFile)
	}
	if err := c.scope.secrets.addText(text); err != nil {
		return nil, fmt.Errorf("%s: %w", c.repo.displayName(p), err)
	}
	return []byte(text), nil
}

// Template executes the text of a file template with the catalog's roots, and the item of a step that a forEach made;
// the step may be nil. The name is for messages.
func (c *Catalog) Template(
	of *Step,
	name, text string,
	results Results,
	run func(*Macro) (string, error),
) ([]byte, error) {
	c.repo.detectFleetUse(text)
	scope := c.scope.at(results, run)
	if of != nil {
		scope.item = of.item
	}
	scope.asked = false
	release := c.repo.enter(scope)
	defer release()
	src := &source{path: name, text: text}
	out, err := src.run(scope, nil)
	if err != nil {
		err.hearsay = err.hearsay || scope.asked
		return nil, ErrorList{err}
	}
	if bad := scope.all.written(len(out)); bad != nil {
		return nil, ErrorList{{Pos: Position{File: name}, Message: bad.Error()}}
	}
	return out, nil
}

// filesBelow are the regular files below a folder, relative to it.
func filesBelow(layers []Layer, dir string) []string {
	var out []string
	for _, l := range layers {
		_ = fs.WalkDir(l.FS, dir, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				out = append(out, strings.TrimPrefix(p, dir+"/"))
			}
			return nil
		})
	}
	return out
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
