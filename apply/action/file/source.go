package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/render"
)

// excluded finds parameters that do not go together.
func (a *Managed) excluded() error {
	given := ""
	for _, p := range []struct {
		name string
		is   bool
	}{{"content", a.Content != nil}, {"source", a.Source != ""}, {"data", a.Data != nil}, {"from", len(a.From) > 0}} {
		switch {
		case p.is && given != "":
			return apply.BadParam(p.name, "%s and %s exclude each other: keep one", given, p.name)
		case p.is:
			given = p.name
		}
	}
	if err := apply.CheckSource(a.Source); err != nil {
		return err
	}
	switch {
	case a.Template && a.Source == "":
		return apply.BadParam("template", "only a source can be a template: content is rendered with the job")
	case a.Template && fetch.IsAddress(a.Source):
		return apply.BadParam(
			"template",
			"only a source below files/ can be a template: what an address serves is written as it is",
		)
	case a.Digest != "" && !fetch.IsAddress(a.Source):
		return apply.BadParam(
			"digest",
			"is for a source at an address: a file of the repository is what its commit says",
		)
	case a.Format != "" && a.Data == nil:
		return apply.BadParam("format", "only data is written in a format")
	case a.Recurse && (a.Source == "" || fetch.IsAddress(a.Source)):
		return apply.BadParam("recurse", "a directory comes from the repository: source is missing")
	case a.Recurse || len(a.From) > 0:
		return nil
	case a.FileMode != "":
		return apply.BadParam("fileMode", "is for a directory with recurse: a file has mode")
	case a.DirMode != "":
		return apply.BadParam("dirMode", "is for a directory with recurse")
	case a.Clean:
		return apply.BadParam("clean", "is for a directory with recurse")
	}
	return nil
}

// read finds out what the file, or the tree, shall hold.
func (a *Managed) read(b apply.Binding) (err error) {
	switch {
	case a.Content != nil:
		a.want.Data = []byte(*a.Content)
	case a.Data != nil:
		a.want.Data, err = encode(a.Data, a.Format, a.Name)
	case len(a.From) > 0:
		err = a.readShared(b)
	case fetch.IsAddress(a.Source):
		a.want.Remote, err = fetch.New(a.Source, a.Digest)
	case a.Recurse:
		a.tree, err = readTree(b, a.Source, a.Template)
	case a.Source != "":
		a.want.Data, err = b.Source(a.Source, a.Template)
	}
	if a.want.Data == nil && err == nil && a.Source != "" && !a.Recurse { // an empty file is still a content
		a.want.Data = []byte{}
	}
	return err
}

// readTree is a directory below files/.
func readTree(b apply.Binding, source string, template bool) (*fileTree, error) {
	below, err := b.Catalog.Below(source)
	if err != nil {
		return nil, &apply.ParamError{Param: "source", Err: err}
	}
	t := &fileTree{}
	for _, f := range below {
		data, err := b.Source(path.Join(source, f.Path), template)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(f.Path, render.SealedSuffix)
		if t.has(name) {
			return nil, apply.BadParam("source", "%s/%s stands in the repository in clear and encrypted: keep one", source, name)
		}
		t.add(treeFile{path: name, data: data, exec: f.Executable})
	}
	return t, nil
}

// Shared is a step that read a file.
type Shared struct {
	File string `yaml:"file,required"` // the name of a step with file.content on this node
}

// readShared takes what other steps returned. Before the run that is not known, and the action is bound again when its
// step runs.
func (a *Managed) readShared(b apply.Binding) error {
	var all fileTree
	directory := len(a.From) > 1
	for _, s := range a.From {
		step, err := sharedBefore(b, s.File)
		if err != nil {
			return &apply.ParamError{Param: "from", Err: err}
		}
		text, err := b.Template("from", fmt.Sprintf("{{ (step %q).Data | toJson }}", step.ID()))
		if errors.Is(err, render.ErrNotYet) {
			return err
		}
		if err != nil {
			return apply.BadParam("from", "step %q: %w", step.ID(), err)
		}
		var p published
		if err := json.Unmarshal(text, &p); err != nil || len(p.Files) == 0 && !p.Directory {
			return apply.BadParam("from", "step %q returned no files: did it succeed?", step.ID())
		}
		if err := all.addReturned(p); err != nil {
			return apply.BadParam("from", "step %q: %w", step.ID(), err)
		}
		directory = directory || p.Directory
		all.hidden = all.hidden || step.Sensitive
	}
	if directory {
		a.tree = &all
		return nil
	}
	a.want = place.Content{Data: all.files[0].data, Hidden: all.hidden}
	if a.Mode == "" {
		a.Mode = place.ModeBits(all.files[0].mode)
	}
	return nil
}

// sharedBefore is the step that a name means, if it has run when this one does.
func sharedBefore(b apply.Binding, name string) (*render.Step, error) {
	step, earlier, err := findStep(b, name)
	switch {
	case err != nil:
		return nil, err
	case step.Action != "file.content":
		return nil, fmt.Errorf("step %q reads no file: its action is %s, not file.content", name, step.Action)
	case !earlier && !requires(b.Step, step):
		return nil, fmt.Errorf("step %q need not have run by then: add require: [{step: %s}]", name, step.ID())
	}
	return step, nil
}

// findStep is the step that a name means for another, and whether it runs earlier because it stands earlier in the
// file.
func findStep(b apply.Binding, name string) (step *render.Step, earlier bool, err error) {
	var found []*render.Step
	for _, j := range b.Catalog.Jobs {
		before := inFileOrder(b.Step)
		for _, s := range j.Steps {
			if s.ID() == b.Step.ID() {
				before = false
				continue
			}
			if own := s.Job == b.Step.Job; s.ID() == name || own && s.Name == name {
				return s, own && before && inFileOrder(s), nil
			}
			if s.Name == name {
				found = append(found, s)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, false, fmt.Errorf("there is no step %q", name)
	case 1:
		return found[0], false, nil
	}
	return nil, false, fmt.Errorf("several jobs have a step %q: write %q", name, found[0].ID())
}

// inFileOrder reports a step that runs where it stands in its file.
func inFileOrder(s *render.Step) bool {
	return s.Options.Ordering == "" || s.Options.Ordering == "ansible"
}

// requires reports a requisite that makes a step run after another.
func requires(s, other *render.Step) bool {
	kinds := []string{"require", "watch", "onchanges"}
	return slices.ContainsFunc(s.Requisites, func(r render.Requisite) bool {
		return slices.Contains(kinds, r.Kind) &&
			(r.Name == other.ID() || r.Name == other.Name || r.Name == other.Params.Text("name"))
	})
}
