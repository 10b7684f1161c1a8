package pkg

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/fetch"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/internal/lazyregexp"
	"github.com/pullet/pullet/render"
)

// RepoManaged is a package repository that this host uses. For apt it is /etc/apt/sources.list.d/NAME.sources and a key
// in /etc/apt/keyrings that signs for this repository alone; for dnf /etc/yum.repos.d/NAME.repo and a key in
// /etc/pki/rpm-gpg.
//
// What the repository says is fetched before its file is put into place: one that cannot be read, or is signed by
// another key, fails this step and leaves the host as it was, as does a component that it does not have. Packages of it
// can be installed by the next step.
//
// apt reads the file together with all others before it is put into place. When the repository is in another file with
// another key, apt would read no list any more: the step fails, unless that file is among those that it replaces.
//
// Without key and keySource the keys count that the system trusts anyway.
//
// Example:
//
//	steps:
//	  - name: app packages
//	    action: pkgrepo.managed
//	    parameters:
//	      name: app
//	      url: https://packages.example.org/debian
//	      suites: bookworm
//	      components: [main, extra]
//	      keySource: https://packages.example.org/key.asc
//	      keyDigest: sha256:9b871512327c09ce91dd649b3f96a63b7408ef267c8cc5710114e629730cb61f
type RepoManaged struct {
	Name string `yaml:"name,required"` // of its files, and what it is called
	// where it is; several are mirrors for dnf, and repositories of one kind for apt
	URL       render.Strings `yaml:"url"`
	Enabled   bool           `yaml:"enabled"`   // whether it is used; default true
	Key       string         `yaml:"key"`       // the armored public key that signs it
	KeySource string         `yaml:"keySource"` // the same from a file below files/, or from a URL
	KeyDigest string         `yaml:"keyDigest"` // sha256:HEX of the key, needed with a URL
	Trusted   bool           `yaml:"trusted"`   // take packages that nobody signed
	// apt only: distributions such as bookworm; ./ for a repository without
	Suites        render.Strings `yaml:"suites"`
	Components    render.Strings `yaml:"components"`    // apt only: such as main
	Architectures render.Strings `yaml:"architectures"` // apt only; default: those of the host
	Types         render.Strings `yaml:"types"`         // apt only: deb, deb-src; default deb
	Metalink      string         `yaml:"metalink"`      // dnf only: a list of mirrors, in place of url
	// files of other repositories that go when this one is there, such as vendor.list: they have the same repository
	Replaces render.Strings `yaml:"replaces"`
	Priority int            `yaml:"priority"` // dnf only: lower ones win; default 99
	Refresh  bool           `yaml:"refresh"`  // fetch what the repository says before it is used; default true
	Locking  `yaml:",inline"`

	key    []byte      // nil: none, or to be fetched
	remote *fetch.File // from where
}

var (
	repoName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	repoURL  = lazyregexp.New(`^[a-z][a-z0-9+.-]*:\S+$`)
	repoWord = lazyregexp.New(`^\S+$`)
)

// Bind checks the parameters and reads a key of the repository.
func (a *RepoManaged) Bind(b apply.Binding) error {
	if !repoName.MatchString(a.Name) {
		return apply.BadParam("name", "%q cannot be the name of a file: use letters, digits and _ . -", a.Name)
	}
	if len(a.URL) == 0 && a.Metalink == "" {
		return apply.BadParam("url", "is missing: where is the repository? write https://... or file:/...")
	}
	for _, u := range a.URL {
		if !repoURL.MatchString(u) {
			return apply.BadParam("url", "%q is not a URL: write https://... or file:/...", u)
		}
	}
	if a.Metalink != "" && !repoURL.MatchString(a.Metalink) {
		return apply.BadParam("metalink", "%q is not a URL", a.Metalink)
	}
	for param, list := range map[string]render.Strings{
		"suites": a.Suites, "components": a.Components, "architectures": a.Architectures, "types": a.Types,
	} {
		for _, word := range list {
			if !repoWord.MatchString(word) {
				return apply.BadParam(param, "%q is not one word: write a list", word)
			}
		}
	}
	return errors.Join(a.checkSuites(), a.checkReplaces(), a.readKey(b))
}

// checkSuites holds suites and components together as apt does.
func (a *RepoManaged) checkSuites() error {
	for _, suite := range a.Suites {
		switch exact := strings.HasSuffix(suite, "/"); {
		case exact && len(a.Components) > 0:
			return apply.BadParam("components", "a suite that ends with / is a directory and has no components")
		case !exact && len(a.Components) == 0:
			return apply.BadParam(
				"suites",
				"%q needs components, such as main; a suite that is a directory ends with /",
				suite,
			)
		}
	}
	for _, t := range a.Types {
		if t != "deb" && t != "deb-src" {
			return apply.BadParam("types", "%q is neither deb nor deb-src", t)
		}
	}
	return nil
}

// repoFile is a file of a repository as it is wanted.
type repoFile struct {
	path string
	want []byte
}

// repoForm is how a package manager wants to be told of a repository.
type repoForm interface {
	file(a *RepoManaged, keyPath string) (repoFile, error)
	keyFile(name string, armored bool) (string, error)
	leftovers(name string) []string // every file that may be there of a repository
}

func (apt) file(a *RepoManaged, keyPath string) (repoFile, error) {
	switch {
	case len(a.Suites) == 0:
		return repoFile{}, errors.New(
			"suites is missing, which apt needs: such as bookworm, or ./ for a repository that is one directory",
		)
	case len(a.URL) == 0:
		return repoFile{}, errors.New("metalink is for dnf, and this host has apt: give a url")
	case a.Priority != 0:
		return repoFile{}, errors.New(
			"priority is for dnf, and this host has apt: use a file below /etc/apt/preferences.d",
		)
	}
	types := a.Types
	if len(types) == 0 {
		types = render.Strings{"deb"}
	}
	var b strings.Builder
	line := func(field, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", field, value)
		}
	}
	b.WriteString("# by pullet\n")
	line("Enabled", map[bool]string{false: "no"}[a.Enabled])
	line("Types", strings.Join(types, " "))
	line("URIs", strings.Join(a.URL, " "))
	line("Suites", strings.Join(a.Suites, " "))
	line("Components", strings.Join(a.Components, " "))
	line("Architectures", strings.Join(a.Architectures, " "))
	line("Signed-By", keyPath)
	line("Trusted", map[bool]string{true: "yes"}[a.Trusted])
	return repoFile{"/etc/apt/sources.list.d/" + a.Name + ".sources", []byte(b.String())}, nil
}

func (apt) keyFile(name string, armored bool) (string, error) {
	return "/etc/apt/keyrings/" + name + map[bool]string{true: ".asc", false: ".gpg"}[armored], nil
}

func (apt) leftovers(name string) []string {
	return []string{
		"/etc/apt/sources.list.d/" + name + ".sources",
		"/etc/apt/keyrings/" + name + ".asc",
		"/etc/apt/keyrings/" + name + ".gpg",
	}
}

func (dnf) file(a *RepoManaged, keyPath string) (repoFile, error) {
	if len(a.Suites)+len(a.Components)+len(a.Architectures)+len(a.Types) > 0 {
		return repoFile{}, errors.New("suites, components, architectures and types are for apt, and this host has dnf")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# by pullet\n[%s]\nname=%s\n", a.Name, a.Name)
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s=%s\n", key, value)
		}
	}
	bit := map[bool]string{true: "1", false: "0"}
	line("baseurl", strings.Join(a.URL, "\n        "))
	line("metalink", a.Metalink)
	line("enabled", bit[a.Enabled])
	line("gpgcheck", bit[!a.Trusted])
	if keyPath != "" {
		line("gpgkey", "file://"+keyPath)
	}
	if a.Priority != 0 {
		line("priority", fmt.Sprint(a.Priority))
	}
	return repoFile{"/etc/yum.repos.d/" + a.Name + ".repo", []byte(b.String())}, nil
}

func (dnf) keyFile(name string, armored bool) (string, error) {
	if !armored {
		return "", errors.New("the key is not armored, as rpm wants it: gpg --enarmor makes it so")
	}
	return "/etc/pki/rpm-gpg/RPM-GPG-KEY-" + name, nil
}

func (dnf) leftovers(name string) []string {
	return []string{"/etc/yum.repos.d/" + name + ".repo", "/etc/pki/rpm-gpg/RPM-GPG-KEY-" + name}
}

// form is that of the package manager that the root has. A root in which no packages are yet is told by its
// directories.
func (l Locking) form(h *apply.Host) (repoForm, error) {
	if p, err := l.packager(h); err == nil {
		form, _ := p.(repoForm) // both are
		return form, nil
	}
	for dir, form := range map[string]repoForm{
		"/etc/apt": apt{pkgRunner{h, 0}}, "/etc/yum.repos.d": dnf{pkgRunner{h, 0}},
	} {
		if at, err := h.Resolve(dir); err == nil && hostfile.Exists(at) {
			return form, nil
		}
	}
	return nil, fmt.Errorf(
		"%s has neither /etc/apt nor /etc/yum.repos.d: pullet knows repositories of apt and dnf",
		h.Root,
	)
}

// files are what has to be there: the key first, which the other names.
func (a *RepoManaged) files(h *apply.Host, form repoForm, key []byte) ([]repoFile, error) {
	var out []repoFile
	keyPath := ""
	if key != nil {
		var err error
		if keyPath, err = form.keyFile(a.Name, armored(key)); err != nil {
			return nil, err
		}
		out = append(out, repoFile{keyPath, key})
	}
	source, err := form.file(a, keyPath)
	return append(out, source), err
}

// Check compares the files. A key that is not here yet and would have to be fetched is not: its digest is enough to
// compare.
func (a *RepoManaged) Check(_ context.Context, h *apply.Host) (apply.Change, error) {
	form, err := a.form(h)
	if err != nil {
		return apply.Change{}, err
	}
	key, err := a.heldKey(h, form)
	if err != nil {
		return apply.Change{}, err
	}
	files, err := a.files(h, form, key)
	if err != nil {
		return apply.Change{}, err
	}
	var says []string
	var diff strings.Builder
	if key == nil && a.KeySource != "" {
		says = append(says, "key")
	}
	for _, f := range files {
		have, err := readIfThere(h, f.path)
		if err != nil {
			return apply.Change{}, err
		}
		if string(have) == string(f.want) {
			continue
		}
		word := "key"
		if f.path == files[len(files)-1].path {
			word = "repository"
			diff.WriteString(place.Diff(f.path, have, f.want))
		}
		if have == nil {
			word = "add the " + word
		}
		says = append(says, word)
	}
	replaced, err := a.replaced(h, files[len(files)-1])
	if len(replaced) > 0 {
		says = append(says, "remove "+strings.Join(replaced, ", "))
	}
	return apply.Change{Summary: strings.Join(says, ", "), Diff: diff.String(), Removes: replaced}, err
}

// readIfThere is the content of a file, nil where there is none.
func readIfThere(h *apply.Host, name string) ([]byte, error) {
	at, err := h.Entry(name)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	data, err := at.ReadFile(place.MaxText)
	if hostfile.NotThere(err) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}
