package puller

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

const (
	maxLinks  = 10_000 // of a tree
	maxSteps  = 1000   // names and links that a path leads through
	maxTarget = 4096   // bytes of a link's target, as for Linux
)

// treeLink is a symbolic link of a tree.
type treeLink struct {
	target  string // as written
	to      string // path without links
	refused string // why it cannot be followed; "" if it can
}

// refusedLinkError says that a path leads through a link that cannot be followed.
type refusedLinkError struct {
	path string // of the link; "" if it is the path itself
	link *treeLink
}

// Refused marks the error of a path that exists and is never read.
func (e *refusedLinkError) Refused() {}

func (e *refusedLinkError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s is a symbolic link to %s, %s", e.path, e.link.target, e.link.refused))
}

// follow finds out where the links of a tree lead. A link that leads out of the tree, to nothing or back to a directory
// that it is in is refused when it is used. What can be reached over all links is as limited as a tree without links.
func (t *tree) follow(ctx context.Context) error {
	var links []string
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		n := t.nodes[name]
		if n.mode&fs.ModeSymlink == 0 {
			continue
		}
		links = append(links, name)
		if len(links) > maxLinks {
			return contentError{text: fmt.Sprintf("more symbolic links than the limit of %d", maxLinks)}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		n.link = &treeLink{}
		if n.size > maxTarget {
			n.link.target, n.link.refused = "a long path", fmt.Sprintf("which is longer than %d bytes", maxTarget)
			continue
		}
		target, err := t.content(name, n)
		if err != nil {
			return fmt.Errorf("path %q: %w", name, err)
		}
		n.link.target = string(target)
	}
	for _, name := range links {
		if err := ctx.Err(); err != nil {
			return err
		}
		if l := t.nodes[name].link; l.refused == "" {
			t.lead(l, path.Dir(name))
		}
	}
	if len(links) == 0 {
		return nil
	}
	_, err := t.weigh(ctx, t.nodes["."], 0, map[*node]*weight{})
	return err
}

// lead finds out where a link in a directory leads.
func (t *tree) lead(l *treeLink, dir string) {
	to, err := t.resolve(dir, l.target)
	why, unseen := errors.AsType[unseenError](err)
	other, through := errors.AsType[*refusedLinkError](err)
	switch {
	case through:
		l.refused = fmt.Sprintf("which leads to %s, %s", other.link.target, other.link.refused)
	case unseen:
		l.refused = fmt.Sprintf("which is not in the repository because %v", why)
	case errors.Is(err, fs.ErrNotExist):
		l.refused = "which is not in the repository"
	case err != nil:
		l.refused = fmt.Sprintf("which %v", err)
	default:
		l.to = to
	}
}

// weight is how many paths are below a directory, links followed, and how deep they are. It is nil while that is
// counted.
type weight struct{ paths, depth int }

// weigh returns the weight of a directory. It refuses links that lead back to a directory that it is in, and an error
// is that the tree is too large.
func (t *tree) weigh(ctx context.Context, dir *node, depth int, known map[*node]*weight) (*weight, error) {
	if w := known[dir]; w != nil {
		return w, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	known[dir] = nil
	w := &weight{}
	for _, child := range dir.children {
		w.paths++
		at := child
		if l := child.link; l != nil {
			if l.refused != "" {
				continue
			}
			at = t.nodes[l.to]
		}
		if !at.mode.IsDir() {
			continue
		}
		if inner, begun := known[at]; begun && inner == nil {
			child.link.refused = "which leads back to a directory that the link is in"
			continue
		}
		if depth+1 > maxDepth {
			return nil, tooDeep(child)
		}
		inner, err := t.weigh(ctx, at, depth+1, known)
		if err != nil {
			return nil, err
		}
		w.paths += inner.paths
		w.depth = max(w.depth, inner.depth+1)
		switch {
		case w.paths > maxPaths:
			const most = "more paths than the limit of %d, with those behind symbolic links"
			return nil, contentError{text: fmt.Sprintf(most, maxPaths)}
		case depth+w.depth > maxDepth:
			return nil, tooDeep(child)
		}
	}
	known[dir] = w
	return w, nil
}

func tooDeep(n *node) error {
	return contentError{text: fmt.Sprintf("%q: deeper than the limit of %d, over symbolic links", n.name, maxDepth)}
}

// resolve returns the path without links of what a path in a directory leads to. Errors are fs.ErrNotExist, an
// unseenError, a *refusedLinkError, or words that go on after "which".
func (t *tree) resolve(dir, name string) (string, error) {
	at, rest := dir, name
	for range maxSteps {
		if strings.HasPrefix(rest, "/") {
			return "", errOutside
		}
		var elem string
		var more bool
		elem, rest, more = strings.Cut(rest, "/")
		rest = strings.TrimLeft(rest, "/")
		if elem == ".." && at == "." {
			return "", errOutside
		}
		next := path.Join(at, elem)
		n := t.nodes[next]
		switch {
		case n == nil:
			return "", t.missing(path.Join(next, rest))
		case n.link != nil && n.link.refused != "":
			return "", &refusedLinkError{next, n.link}
		case n.link != nil:
			rest = strings.TrimSuffix(n.link.target+"/"+rest, "/")
		case !more || rest == "":
			return next, nil
		case !n.mode.IsDir():
			return "", t.missing(path.Join(next, rest))
		default:
			at = next
		}
	}
	return "", errSteps
}

var (
	errOutside = errors.New("is outside of the repository")
	errSteps   = fmt.Errorf("leads through more than %d names and links", maxSteps)
)

// missing returns the error of a path that is not in the tree: fs.ErrNotExist, or one with the reason.
func (t *tree) missing(name string) error {
	for p := name; p != "."; p = path.Dir(p) {
		if why := t.unseen[p]; why != "" {
			return unseenError{p, why}
		}
	}
	return fs.ErrNotExist
}

// unseenError says why a path of a work tree is in no commit.
type unseenError struct{ path, why string }

func (e unseenError) Error() string { return e.Unseen() }

// Unseen returns the reason as a sentence.
func (e unseenError) Unseen() string { return e.path + " " + e.why }

// Is reports whether the target is fs.ErrNotExist.
func (e unseenError) Is(target error) bool { return target == fs.ErrNotExist }
