package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.yaml.in/yaml/v4"

	"github.com/pullet/pullet/internal/lazyregexp"
)

// Layer is one state repository at one commit.
type Layer struct {
	Name string
	FS   fs.FS
}

// Repository is the layers of a snapshot with what was parsed of them. It is safe for concurrent use; catalogs are
// compiled one at a time.
type Repository struct {
	layers     []Layer
	mu         sync.Mutex
	shapes     sync.Map // of structs, by type
	conditions sync.Map // compiled, by text
	macroTexts sync.Map // those that are templates
	first      *execution
	others     []*execution // idle
	parsed     map[string]*source
	byPath     map[string]*source // by the name that messages have
	broken     map[string]*Error
	actions    int // of all templates that were read
	sealed     sealedFiles

	extensions *extensions // nil: not read yet
	reacts     reactionFiles
	asks       atomic.Bool // something that was read may ask for the fleet
}

// asking is what templates and expressions ask for the fleet by. A word in a comment does no harm: the fleet is read
// for nothing then.
var asking = lazyregexp.New(`(?i)\b(servervars|services|servers|servers_get_by_label)\b`)

// AsksForFleet reports that something of what was compiled so far, or a macro or condition of it, may ask who else
// there is. Without, the View can be left empty.
func (r *Repository) AsksForFleet() bool { return r.asks.Load() }

func (r *Repository) detectFleetUse(text string) {
	if !r.asks.Load() && asking.MatchString(text) {
		r.asks.Store(true)
	}
}

// Open makes a repository of the layers, which are read when a catalog needs them.
func Open(layers ...Layer) *Repository {
	r := &Repository{
		layers: layers,
		first:  newExecution(),
		parsed: map[string]*source{},
		byPath: map[string]*source{},
		broken: map[string]*Error{},
	}
	r.reacts = reactionFiles{r: r, asked: sync.OnceValue(func() map[string]any { return dataAskedFor(r.Texts()) })}
	r.sealed = sealedFiles{r: r, texts: map[string]string{}, sops: map[string]bool{}, rules: map[string]layerRules{}}
	return r
}

// place is a file in a layer.
type place struct {
	layer Layer
	path  string
}

// displayName is how messages name the file.
func (r *Repository) displayName(p place) string {
	if len(r.layers) > 1 {
		return p.layer.Name + ":" + p.path
	}
	return p.path
}

// locate finds a file in the last layer that has it.
func (r *Repository) locate(name string) (place, bool) {
	for _, l := range slices.Backward(r.layers) {
		if p, ok := locateIn(l, name); ok {
			return p, true
		}
	}
	return place{}, false
}

// isRefused reports the error of a file that exists and is never read, such as a link that leads out of the repository.
func isRefused(err error) bool { return errors.As(err, new(interface{ Refused() })) }

// locateIn finds a file in a layer, also one that is refused: reading it is the error.
func locateIn(l Layer, name string) (place, bool) {
	info, err := fs.Stat(l.FS, name)
	return place{l, name}, err == nil && info.Mode().IsRegular() || isRefused(err)
}

// unseenHint says why the file of a work tree would not be in a commit, or returns another hint.
func (r *Repository) unseenHint(name, hint string) string {
	for _, l := range r.layers {
		var unseen interface{ Unseen() string }
		if _, err := fs.Stat(l.FS, name); errors.As(err, &unseen) {
			return unseen.Unseen()
		}
	}
	return hint
}

func (r *Repository) exists(name string) bool {
	_, ok := r.locate(name)
	return ok
}

// list are the YAML files below a folder, of all layers, and what is refused there: reading it is the error.
func (r *Repository) list(dir string) []string {
	seen := map[string]bool{}
	for _, l := range r.layers {
		// A folder that a layer does not have is an empty one.
		_ = fs.WalkDir(l.FS, dir, func(p string, d fs.DirEntry, err error) error {
			switch {
			case isRefused(err), err == nil && d.Type()&fs.ModeSymlink != 0:
				seen[p] = true
			case err == nil && d.Type().IsRegular() && (path.Ext(p) == ".yaml" || path.Ext(p) == ".yml"):
				seen[p] = true
			}
			return nil
		})
	}
	out := []string{}
	for p := range seen {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// names are the files below a folder as base files name them.
func (r *Repository) names(dir string) []string {
	out := r.list(dir)
	for i, p := range out {
		out[i] = strings.TrimSuffix(strings.TrimPrefix(p, dir+"/"), path.Ext(p))
	}
	return out
}

// load reads a file, and parses a template with the functions of the first execution, once.
func (r *Repository) load(in *scope, p place, isTemplate bool) (*source, *Error) {
	key := p.layer.Name + "\x00" + p.path
	if s, ok := r.parsed[key]; ok {
		return s, r.broken[key]
	}
	s := &source{path: r.displayName(p), shapes: &r.shapes, conditions: &r.conditions, owner: r.first}
	s.early = p.path == ServicesFile
	text, err := fs.ReadFile(p.layer.FS, p.path)
	if err != nil {
		return nil, &Error{Pos: Position{File: s.path}, Message: fmt.Sprintf("cannot be read: %v", plainFSError(err))}
	}
	s.text = string(text)
	r.detectFleetUse(s.text)
	if isTemplate && strings.Contains(s.text, "{{") {
		if bad := s.parse(in, s.functions(r.first), true); bad != nil {
			r.broken[key] = bad
		}
		if r.actions += strings.Count(s.text, "{{"); r.actions > maxAllActions && r.broken[key] == nil {
			s.tmpl = nil
			r.broken[key] = s.errorAt(
				Position{File: s.path, Line: 1, Col: 1},
				"the templates of the repository have too many actions together: more than %d",
				maxAllActions,
			)
		}
	}
	r.parsed[key], r.byPath[s.path] = s, s
	return s, r.broken[key]
}

// plainFSError drops the operation and path that the message has already.
func plainFSError(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// asError gives an error a place, unless it has one.
func asError(doc *document, n *yaml.Node, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return doc.errorAt(n, "%v", err)
}
