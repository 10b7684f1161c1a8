package file

import (
	"context"
	"path"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
)

// Managed is a regular file with this content, owner and mode. It is replaced as a whole, by a rename: readers see the
// old file or the new one. Without content, source, data and from only the owner and mode of an existing file are
// managed, and a missing one is made empty. A file that is replaced keeps what is not said: owner, mode, access list,
// labels and the users' attributes.
//
// A link at name is replaced by a file with the content. Without content, or with replace: false, a link is followed,
// beneath the root: the owner and mode of the file that it leads to are managed, and its content stays.
//
// A source at an address is fetched when the file has another digest than the one that is given; comparing needs no
// network.
//
// A source that ends in .age is decrypted; of a directory with recurse, such files lose the suffix. What holds a secret
// gets mode 0600 where the step says none.
//
// With recurse the source is a directory: all that is below it is put below name. Files of the repository that can be
// executed become executable; a mode without x gets it for them, and for directories wherever it has r.
//
// What something is mounted on, such as /etc/hosts in a container, cannot be renamed over. It is written in place,
// which is not atomic: its old content is kept in the state directory until the new one is on disk, and is put back
// when writing fails.
//
// Example:
//
//	steps:
//	  - name: sshd
//	    action: file.managed
//	    parameters:
//	      name: /etc/ssh/sshd_config.d/fleet.conf
//	      content: |
//	        PermitRootLogin no
//	        Banner "{{ server.name }}"
//	      mode: 0600
//	      validate: sshd -t -f %s
//	  - name: daemon
//	    action: file.managed
//	    parameters:
//	      name: /etc/docker/daemon.json
//	      data: {log-driver: journald, live-restore: true}
//	  - name: tool
//	    action: file.managed
//	    parameters:
//	      name: /usr/local/bin/tool
//	      source: https://downloads.example.org/tool-1.2
//	      digest: sha256:1b4f0e9851971998e732078544c96b36c3d01cedf7caa332359d6f1d83567014
//	      mode: 0755
type Managed struct {
	Name    string  `yaml:"name,required"` // absolute path
	Content *string `yaml:"content"`       // the text itself
	// a file below files/ of the repository, or an address (https://...); with recurse a directory below files/
	Source string `yaml:"source"`
	Digest string `yaml:"digest"`                       // of what an address serves: sha256:...
	Data   any    `yaml:"data"`                         // values that are written in a format, keys sorted
	Format string `yaml:"format" words:"json yaml ini"` // of data; default: what the name ends in
	// what steps with file.content returned; they have to run before
	From     []Shared `yaml:"from"`
	Template bool     `yaml:"template"` // execute the source as a template
	// false: write the content only where nothing is there yet
	Replace         bool `yaml:"replace"`
	Recurse         bool `yaml:"recurse"` // put a directory with all that is below it
	place.TreeModes `yaml:",inline"`
	Cleaning        `yaml:",inline"`
	place.Placing   `yaml:",inline"`

	want place.Content
	tree *fileTree // with recurse, or from a step that read a directory
}

// Bind reads the content: what is wrong with it is known before the node is touched.
func (a *Managed) Bind(b apply.Binding) error {
	if err := apply.AbsPath("name", a.Name); err != nil {
		return err
	}
	for _, check := range []func() error{a.Placing.CheckParams, a.TreeModes.CheckModes, a.excluded} {
		if err := check(); err != nil {
			return err
		}
	}
	if err := a.read(b); err != nil {
		return err
	}
	if b.Secret() {
		a.private()
	}
	if a.tree == nil {
		return nil
	}
	if a.Validate != "" {
		return apply.BadParam(
			"validate",
			"a directory has no single candidate: check it in a cmd.run step that follows",
		)
	}
	return a.Cleaning.bind(b, a.Name)
}

// private gives files that hold a secret a mode, unless the step says one.
func (a *Managed) private() {
	switch {
	case a.tree == nil && a.Mode == "":
		a.Mode = "0600"
	case a.tree != nil && a.Mode == "" && a.FileMode == "":
		a.FileMode = "0600"
	}
}

// Manages is the file, or with recurse all that is below it.
func (a *Managed) Manages() []apply.Resource {
	if a.tree == nil {
		return []apply.Resource{place.Resource(a.Name)}
	}
	var out []apply.Resource
	for _, dir := range append([]string{"."}, a.tree.dirs...) {
		out = append(out, place.Resource(path.Join(a.Name, dir)))
	}
	for _, f := range a.tree.files {
		out = append(out, place.Resource(path.Join(a.Name, f.path)))
	}
	return out
}

// Check compares content, owner and mode.
func (a *Managed) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	if a.tree != nil {
		t, err := a.inPlace(h)
		if err != nil {
			return apply.Change{}, err
		}
		defer t.close()
		return t.check()
	}
	one, err := a.open(h)
	if err != nil {
		return apply.Change{}, err
	}
	defer one.At.Close()
	is, err := a.check(one)
	return is.Change, err
}

// Apply writes what is missing or different.
func (a *Managed) Apply(ctx context.Context, h *apply.Host, _ apply.Change) (apply.Output, error) {
	if a.tree != nil {
		t, err := a.inPlace(h)
		if err != nil {
			return apply.Output{}, err
		}
		defer t.close()
		return apply.Output{}, t.apply(ctx)
	}
	one, err := a.open(h)
	if err != nil {
		return apply.Output{}, err
	}
	defer one.At.Close()
	return apply.Output{}, one.Apply(ctx, h, a.Placing)
}

// Prepares is the path of a single file whose content is at hand and that nothing else has to look at before it is
// replaced.
func (a *Managed) Prepares() string {
	if a.tree != nil || a.want.Data == nil || !a.Replace || a.Validate != "" || a.Backup {
		return ""
	}
	return a.Name
}

// CheckAt compares content, owner and mode of a single file. What is prepared is the new file beside its place.
func (a *Managed) CheckAt(h *apply.Host, at *hostfile.Entry) (apply.Change, apply.Prepare, error) {
	one, err := a.one(h)
	if err != nil {
		return apply.Change{}, nil, err
	}
	one.At = at
	is, err := a.check(one)
	return is.Change, func(ctx context.Context) (*apply.Prepared, error) {
		c, err := one.Candidate(ctx, h, a.Placing, is)
		switch {
		case err != nil:
			return nil, err
		case c == nil:
			return &apply.Prepared{Place: func() error { return one.Wanted.Set(at) }, Drop: func() {}}, nil
		}
		return &apply.Prepared{New: c.Candidate, Place: c.Put, Drop: c.Drop}, nil
	}, err
}

// check compares a single file, and finds the directory that it lacks.
func (a *Managed) check(one place.File) (place.Found, error) {
	is, err := one.Check()
	if is.Content {
		is.Lacks = place.Lacks(a.Name, one.At, a.MakeDirs)
	}
	return is, err
}

// open opens the file of an action without a tree. Its entry is to be closed.
func (a *Managed) open(h *apply.Host) (place.File, error) {
	one, err := a.one(h)
	if err != nil {
		return one, err
	}
	return place.OpenFile(h, one)
}

// one is the file of an action without a tree, not yet opened.
func (a *Managed) one(h *apply.Host) (place.File, error) {
	w, err := a.Wanted(h)
	return place.File{Name: a.Name, Want: a.want, Wanted: w, Keep: !a.Replace}, err
}
