package render

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// extensionFile is the manifest of an action that the repository brings itself: an executable that says what is to be done, and does it.
type extensionFile struct {
	Metadata    *Metadata `yaml:"metadata"`        // names the file; it changes nothing
	Name        string    `yaml:"name,required"`   // of the action, as steps write it: motd.banner
	Summary     string    `yaml:"summary"`         // one sentence, which explain shows
	File        string    `yaml:"file"`            // the executable, below extensions/; or url
	URL         string    `yaml:"url"`             // where a host fetches the executable, over http or https; or file
	Digest      string    `yaml:"digest,required"` // of the executable: sha256: and the 64 digits that sha256sum prints
	Interpreter Strings   `yaml:"interpreter"`     // a program with its arguments that runs the file; default: what its first line says
	Parameters  anyNode   `yaml:"parameters"`      // JSON Schema (draft 2020-12) of the step's parameters; none: it takes none
	Check       bool      `yaml:"check"`           // false: it cannot tell whether it is needed, and runs once for each version and set of parameters; default true
	Passive     bool      `yaml:"passive"`         // it never counts as a change: it waits, or reads
	Timeout     Duration  `yaml:"timeout"`         // of one call of the executable; default: the run's deadline
}

// Extension is an action that the repository brings itself. It is immutable.
type Extension struct {
	Name, Summary  string
	File           string // in the repository; "" for one that is fetched
	URL            string
	Digest         string // 64 hexadecimal digits
	Interpreter    []string
	Parameters     map[string]any // a JSON Schema as it is written; nil: it takes none
	Check, Passive bool
	Timeout        Duration
	Broken         bool // its manifest has mistakes: it cannot be run

	manifest, executable place
	doc                  *document
	body                 *yaml.Node
}

// extensions is what was read of the manifests.
type extensions struct {
	list []*Extension
	errs ErrorList
}

// Extensions are the actions that the repository brings itself, by name, with every mistake in their manifests. Executables of the
// repository are held against their digests here; those with a URL when they are fetched.
func (r *Repository) Extensions() ([]*Extension, ErrorList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.brought == nil {
		r.brought = r.readExtensions()
	}
	return r.brought.list, r.brought.errs
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
				out.errs = append(out.errs, e.ErrorAt([]string{"name"}, "there are two actions %q: the other is in %s", e.Name, first.doc.from.src.path))
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
	src, bad := r.load(p, nil)
	if bad != nil {
		return nil, ErrorList{bad}
	}
	text, bad := src.execute(nil)
	if bad != nil {
		return nil, ErrorList{bad}
	}
	doc, errs := parseYAML(text)
	switch {
	case len(errs) > 0:
		return nil, errs
	case doc.root == nil:
		return nil, ErrorList{{Pos: Position{File: src.path}, Message: "the manifest is empty", Hint: "pullet explain extensions lists what it says"}}
	}
	d := &decoder{doc: doc}
	body, file := unwrapSpec(doc.root), extensionFile{Check: true}
	d.value(body, reflect.ValueOf(&file).Elem(), "")
	if body.Kind != yaml.MappingNode {
		return nil, d.errs
	}
	e := &Extension{
		Name: file.Name, Summary: file.Summary, File: file.File, URL: file.URL, Interpreter: file.Interpreter, Check: file.Check,
		Passive: file.Passive, Timeout: file.Timeout, manifest: p, doc: doc, body: body,
	}
	e.Digest, _ = strings.CutPrefix(file.Digest, "sha256:")
	e.schema(d, file.Parameters.node)
	errs = append(d.errs, e.check(file)...)
	if len(errs) == 0 && e.URL == "" {
		errs = r.locateExecutable(e)
	}
	e.hint(errs)
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

var (
	actionOfOwn = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*\.[A-Za-z][A-Za-z0-9_-]*$`)
	sha256Hex   = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// check finds what the manifest says and cannot mean.
func (e *Extension) check(file extensionFile) ErrorList {
	var errs ErrorList
	fail := func(field, format string, args ...any) {
		errs = append(errs, e.ErrorAt([]string{field}, field+": "+format, args...))
	}
	if file.Name != "" && !actionOfOwn.MatchString(file.Name) {
		fail("name", "%q is not the name of an action: two words with a dot between them, such as motd.banner", file.Name)
	}
	if file.Digest != "" && !sha256Hex.MatchString(file.Digest) {
		fail("digest", "expected sha256: and 64 hexadecimal digits, found %q", file.Digest)
	}
	full := path.Join("extensions", file.File)
	switch at, err := url.Parse(file.URL); {
	case file.File == "" && file.URL == "":
		errs = append(errs, e.ErrorAt(nil, `one of "file" and "url" is missing: where the executable is`))
	case file.File != "" && file.URL != "":
		fail("url", "file and url exclude each other")
	case file.File != "" && !strings.HasPrefix(full, "extensions/"):
		fail("file", "%q leads out of extensions/", file.File)
	case file.URL != "" && (err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http"):
		fail("url", "expected an address that begins with https:// or http://")
	case file.URL != "" && at.User != nil:
		fail("url", "a password does not belong into a repository; the digest is what protects the file")
	}
	if len(file.Interpreter) > 0 && file.Interpreter[0] == "" {
		fail("interpreter", "the program is missing")
	}
	return errs
}

// hint says how to print the digest where something is wrong with it.
func (e *Extension) hint(errs ErrorList) {
	if e.File == "" && e.URL == "" {
		return
	}
	for _, one := range errs {
		if strings.HasPrefix(one.Message, "digest:") || one.Message == `"digest" is missing` {
			one.Hint = "print the right one with: " + e.PrintDigest()
		}
	}
}

// Source is where the executable comes from.
func (e *Extension) Source() string {
	if e.URL != "" {
		return e.URL
	}
	return path.Join("extensions", e.File)
}

// PrintDigest is the command that prints the digest.
func (e *Extension) PrintDigest() string {
	if e.URL != "" {
		return "curl -fsSL " + e.URL + " | sha256sum"
	}
	return "sha256sum " + e.Source()
}

// MaxExecutable is how large the executable of an extension may be.
const MaxExecutable = 64 << 20

// locateExecutable finds the file of an extension and holds it against its digest.
func (r *Repository) locateExecutable(e *Extension) ErrorList {
	name := e.Source()
	p, ok := r.locate(name)
	if !ok {
		bad := e.ErrorAt([]string{"file"}, "file: there is no %s in the repository", name)
		bad.Hint = didYouMean(e.File, r.filesBelow("extensions"))
		return ErrorList{bad}
	}
	e.executable = p
	fail := func(field, format string, args ...any) ErrorList {
		return ErrorList{e.ErrorAt([]string{field}, field+": "+format, args...)}
	}
	info, err := fs.Stat(p.layer.FS, p.path)
	if err == nil && info.Size() > MaxExecutable {
		return fail("file", "%s is larger than %d MiB", name, MaxExecutable>>20)
	}
	digest, err := fileDigest(p)
	switch {
	case err != nil:
		return fail("file", "%s: %v", name, plainFSError(err))
	case digest != e.Digest:
		return fail("digest", "%s has sha256:%s, and the manifest wants sha256:%s", name, digest, e.Digest)
	}
	return nil
}

// fileDigest is the SHA-256 of a file, in hexadecimal digits.
func fileDigest(p place) (string, error) {
	f, err := p.layer.FS.Open(p.path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Open opens the executable that stands in the repository.
func (e *Extension) Open() (fs.File, error) { return e.executable.layer.FS.Open(e.executable.path) }

// ErrorAt is a mistake in the manifest: at the value that a path of keys leads to, or as near to it as there is a place.
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
