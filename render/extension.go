package render

import (
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// extensionFile is the manifest of an action that the repository brings itself: an executable that says what is to be
// done, and does it.
type extensionFile struct {
	Metadata *Metadata `yaml:"metadata"`      // names the file; it changes nothing
	Name     string    `yaml:"name,required"` // of the action, as steps write it: motd.banner
	Summary  string    `yaml:"summary"`       // one sentence, which explain shows
	File     string    `yaml:"file"`          // the executable, below extensions/; or url, or datastore
	URL      string    `yaml:"url"`           // where a host fetches the executable, over http or https
	// true: the executable is in the fleet's record, where pullet extension publish puts it
	Datastore bool `yaml:"datastore"`
	// of the executable: sha256: and the 64 digits that sha256sum prints; or signature, or both: then both must hold
	Digest string `yaml:"digest"`
	// NAME.sig: an SSH signature of the text in NAME, which says "ACTION VERSION sha256:DIGEST". A file below extensions/,
	// or an address. Who may sign is in the configuration of each host: extensions.allowedSigners
	Signature string `yaml:"signature"`
	// with signature: the least version of a signed text that hosts take, such as 4 or 1.10.2
	Version string `yaml:"version"`
	// a program with its arguments that runs the file; default: what its first line says
	Interpreter Strings `yaml:"interpreter"`
	// JSON Schema (draft 2020-12) of the step's parameters; none: it takes none
	Parameters anyNode `yaml:"parameters"`
	// false: it cannot tell whether it is needed, and runs once for each version and set of parameters; default true
	Check   bool     `yaml:"check"`
	Passive bool     `yaml:"passive"` // it never counts as a change: it waits, or reads
	Timeout Duration `yaml:"timeout"` // of one call of the executable; default: the run's deadline
}

// Extension is an action that the repository brings itself. It is immutable.
type Extension struct {
	Name, Summary  string
	File           string // in the repository; "" for one that is fetched
	URL            string
	Datastore      bool   // it is in the fleet's record
	Digest         string // 64 hexadecimal digits; "" where only a signature says which executable is meant
	FileDigest     string // of the file that stands in the repository
	Signature      string // as the manifest names it; "" is none
	Version        string // the least one that may be signed
	Signed         Signed // nothing where the signature is behind an address
	Interpreter    []string
	Parameters     map[string]any // a JSON Schema as it is written; nil: it takes none
	Check, Passive bool
	Timeout        Duration
	Broken         bool // its manifest has mistakes: it cannot be run

	manifest, executable place
	doc                  *document
	body                 *yaml.Node
}

// Signed is a text about an executable and its signature, as they are.
type Signed struct{ Text, Signature []byte }

// extensions is what was read of the manifests.
type extensions struct {
	list []*Extension
	errs ErrorList
}

// Extensions are the actions that the repository brings itself, by name, with every mistake in their manifests.
// Executables of the repository are held against their digests here; those with a URL when they are fetched.
func (r *Repository) Extensions() ([]*Extension, ErrorList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.extensions == nil {
		r.extensions = r.readExtensions()
	}
	return r.extensions.list, r.extensions.errs
}

func (r *Repository) readExtensions() *extensions {
	out := &extensions{}
	byName := map[string]*Extension{}
	for _, l := range r.layers {
		for _, name := range r.list("extensions") {
			p, ok := r.locate(name)
			if !ok || p.layer.Name != l.Name {
				continue
			}
			e, errs := r.readExtension(p)
			out.errs = append(out.errs, errs...)
			if e == nil || e.Name == "" {
				continue
			}
			if first := byName[e.Name]; first != nil && first.manifest.layer.Name == l.Name {
				out.errs = append(
					out.errs,
					e.ErrorAt(
						[]string{"name"},
						"there are two actions %q: the other is in %s",
						e.Name,
						first.doc.from.src.path,
					),
				)
			}
			byName[e.Name] = e
		}
	}
	for _, e := range byName {
		out.list = append(out.list, e)
	}
	slices.SortFunc(out.list, func(a, b *Extension) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// readExtension reads one manifest; nil where not even its name can be known.
func (r *Repository) readExtension(p place) (*Extension, ErrorList) {
	src, bad := r.load(nil, p, false)
	if bad != nil {
		return nil, ErrorList{bad}
	}
	text, bad := src.execute(nil, nil)
	if bad != nil {
		return nil, ErrorList{bad}
	}
	doc, errs := parseYAML(text)
	switch {
	case len(errs) > 0:
		return nil, errs
	case doc.root == nil:
		return nil, ErrorList{
			{
				Pos:     Position{File: src.path},
				Message: "the manifest is empty",
				Hint:    "pullet explain extensions lists what it says",
			},
		}
	}
	d := &decoder{doc: doc}
	body, file := fileBody(doc.root, reflect.TypeFor[extensionFile]()), extensionFile{Check: true}
	d.value(body, reflect.ValueOf(&file).Elem(), "")
	if body.Kind != yaml.MappingNode {
		return nil, d.errs
	}
	e := &Extension{
		Name: file.Name, Summary: file.Summary, File: file.File, URL: file.URL, Datastore: file.Datastore,
		Signature: file.Signature, Version: file.Version, Interpreter: file.Interpreter,
		Check: file.Check, Passive: file.Passive, Timeout: file.Timeout, manifest: p, doc: doc, body: body,
	}
	e.Digest, _ = strings.CutPrefix(file.Digest, "sha256:")
	e.schema(d, file.Parameters.node)
	errs = append(d.errs, e.check(file)...)
	if len(errs) == 0 && e.File != "" {
		errs = r.locateExecutable(e)
	}
	if len(errs) == 0 && e.Signature != "" && !e.SignedElsewhere() {
		errs = r.readSigned(e)
	}
	e.Broken = len(errs) > 0
	return e, errs
}

// schema takes the schema of the parameters as plain data; what it says is looked at by who uses it.
func (e *Extension) schema(d *decoder, n *yaml.Node) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.failf(n, "parameters: expected a JSON Schema, found %s", kindName(n))
		return
	}
	e.Parameters, _ = d.any(n).(map[string]any)
}

// Open opens the executable that stands in the repository.
func (e *Extension) Open() (fs.File, error) { return e.executable.layer.FS.Open(e.executable.path) }

// ErrorAt is a mistake in the manifest: at the value that a path of keys leads to, or as near to it as there is a
// place.
func (e *Extension) ErrorAt(at []string, format string, args ...any) *Error {
	return e.doc.errorAt(below(e.body, at).value, format, args...)
}

// ErrorAtKey is a mistake in the manifest, at the last key of a path.
func (e *Extension) ErrorAtKey(at []string, format string, args ...any) *Error {
	found := below(e.body, at)
	if found.key != nil {
		return e.doc.errorAt(found.key, format, args...)
	}
	return e.doc.errorAt(found.value, format, args...)
}

// below is the entry that a path of keys and numbers leads to, or the last one on the way.
func below(n *yaml.Node, at []string) entry {
	last := entry{value: n}
	for _, key := range at {
		next, ok := child(last.value, key)
		if !ok {
			return last
		}
		last = next
	}
	return last
}

func child(n *yaml.Node, key string) (entry, bool) {
	n = resolve(n)
	if n.Kind == yaml.MappingNode {
		for _, e := range entries(n) {
			if e.key.Value == key {
				return e, true
			}
		}
	}
	for i, c := range n.Content {
		if n.Kind == yaml.SequenceNode && fmt.Sprint(i) == key {
			return entry{value: resolve(c)}, true
		}
	}
	return entry{}, false
}
