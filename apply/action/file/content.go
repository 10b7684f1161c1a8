package file

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Content reads a file of this host, or all files below a directory, for later steps: file.managed places them with
// from. It is for small data, 1 MiB in all. The content is part of the step's result: what is secret needs sensitive:
// true.
//
// It reads once for each version and set of parameters; runs: always makes it read at every pull.
//
// Example:
//
//	steps:
//	  - name: certificate
//	    action: file.content
//	    parameters: {name: /etc/ssl/certs/ca-certificates.crt}
//	    runOptions: {runs: always}
//	  - name: certificate of the container
//	    action: file.managed
//	    parameters:
//	      name: /srv/container/etc/ssl/ca.crt
//	      from: [{file: certificate}]
type Content struct {
	Name      string `yaml:"name,required"` // absolute path of a file or a directory; links are followed, beneath the root
	Recursive bool   `yaml:"recursive"`     // read what is in the directories below it, too; default true
}

// maxPublished bounds what a step's result holds of files.
const maxPublished = 1 << 20

// published is the result of a step that read files.
type published struct {
	Directory bool            `json:"directory,omitempty"`
	Files     []publishedFile `json:"files"`
}

// publishedFile has the content in base64; its path is relative to a directory, or the file's name.
type publishedFile struct {
	Path    string `json:"path"`
	Mode    string `json:"mode"`
	Content []byte `json:"content"`
}

// Bind checks the path.
func (a *Content) Bind(apply.Binding) error { return apply.AbsPath("name", a.Name) }

// Unchecked is true: what it read before stands until its parameters or the version change.
func (a *Content) Unchecked() bool { return true }

// Check always finds something to read.
func (a *Content) Check(context.Context, *apply.Host) (apply.Change, error) {
	return apply.Change{Summary: "read"}, nil
}

// Apply reads.
func (a *Content) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	at, err := h.Follow(a.Name)
	if err != nil {
		return apply.Output{}, err
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return apply.Output{}, fmt.Errorf("%s: %w", a.Name, place.WithoutPath(err))
	}
	p := published{Directory: info.IsDir(), Files: []publishedFile{}}
	left := int64(maxPublished)
	if p.Directory {
		err = p.readAll(ctx, h, a, at, &left)
	} else {
		err = p.read(a.Name, path.Base(a.Name), at, &left)
	}
	if err != nil {
		return apply.Output{}, err
	}
	data, err := plainData(p)
	return apply.Output{Data: data}, err
}

// readAll takes in what is in a directory. A link in it is followed as any other on the host.
func (p *published) readAll(ctx context.Context, h *apply.Host, a *Content, at *hostfile.Entry, left *int64) error {
	dir, err := at.Dir()
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Walk(ctx, func(rel string, e *hostfile.Entry, info hostfile.Info) error {
		name := path.Join(a.Name, rel)
		switch {
		case info.IsDir() && !a.Recursive:
			return fs.SkipDir
		case info.IsDir():
			return nil
		case info.Mode()&fs.ModeSymlink == 0:
			return p.read(name, rel, e, left)
		}
		target, err := h.Follow(name)
		if err != nil {
			return err
		}
		defer target.Close()
		return p.read(name, rel, target, left)
	})
}

// read takes one file in.
func (p *published) read(name, rel string, at *hostfile.Entry, left *int64) error {
	info, err := at.Lstat()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, place.WithoutPath(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is %s, not a file", name, place.Kind(info))
	case info.Size() > *left:
		return fmt.Errorf(
			"%s: more than %d bytes in all: this is for small data, large files belong on a server",
			name,
			maxPublished,
		)
	}
	data, err := at.ReadFile(*left)
	*left -= int64(len(data))
	p.Files = append(p.Files, publishedFile{rel, place.ModeBits(info.Mode()), data})
	return err
}

// addReturned adds files that a step returned to a tree. They may come from another host: no path leads out.
func (t *fileTree) addReturned(p published) error {
	for _, f := range p.Files {
		if !filepath.IsLocal(f.Path) || t.has(f.Path) {
			return fmt.Errorf("%q is no path of a file, or is there twice", f.Path)
		}
		bits, err := strconv.ParseUint(f.Mode, 8, 16)
		if err != nil {
			return fmt.Errorf("%s: %q is no mode", f.Path, f.Mode)
		}
		t.add(treeFile{path: filepath.ToSlash(f.Path), data: f.Content, mode: fs.FileMode(bits & 0o777)})
	}
	return nil
}

// plainData is a value as JSON has it: maps, lists, texts and numbers.
func plainData(v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var out any
	err = json.Unmarshal(text, &out)
	return out, err
}

// Reads is never an error.
func (a *Content) Reads() error { return nil }

// Read is the text of the file.
func (a *Content) Read(_ context.Context, h *apply.Host) (string, error) {
	at, err := h.Follow(a.Name)
	if err != nil {
		return "", err
	}
	defer at.Close()
	info, err := at.Lstat()
	if err != nil {
		return "", fmt.Errorf("%s: %w", a.Name, place.WithoutPath(err))
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s is a directory: the value of a macro is the text of one file", a.Name)
	}
	left := int64(maxPublished)
	var p published
	if err := p.read(a.Name, path.Base(a.Name), at, &left); err != nil {
		return "", err
	}
	return string(p.Files[0].Content), nil
}
