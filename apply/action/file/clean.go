package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pullet/pullet/apply"
	"github.com/pullet/pullet/apply/action/place"
	"github.com/pullet/pullet/apply/hostfile"
	"github.com/pullet/pullet/render"
)

// Cleaning is what is removed from a directory.
type Cleaning struct {
	// remove what is below the directory and no step of this host manages; what another step names is left to it, with all
	// that is below
	Clean bool `yaml:"clean"`
	// what is left alone: patterns of names (*.local), or of paths in the directory (cache/*)
	Exclude []string `yaml:"exclude"`

	others []string // the paths that other steps name; one that ends in * stands for all that begin so
}

// busy are directories whose content many share.
var busy = []string{
	"/etc/init.d", "/etc/pam.d", "/etc/ssl", "/etc/systemd", "/usr/bin", "/usr/games", "/usr/include", "/usr/lib",
	"/usr/lib32", "/usr/lib64", "/usr/libexec",
	"/usr/local", "/usr/sbin", "/usr/share", "/usr/src", "/var/backups", "/var/cache", "/var/lib", "/var/local",
	"/var/log", "/var/mail", "/var/run",
	"/var/spool", "/var/tmp",
}

// bind refuses to clean where much more than meant would go, and learns what other steps manage.
func (c *Cleaning) bind(b apply.Binding, name string) error {
	for _, pattern := range c.Exclude {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return apply.BadParam("exclude", "%q is no pattern: * ? and [a-z] match", pattern)
		}
	}
	if !c.Clean {
		return nil
	}
	dir := path.Clean(name)
	if tooNear(dir) {
		return apply.BadParam(
			"clean",
			"%s is too near the root to be cleaned: everything else below it would be removed",
			dir,
		)
	}
	if err := c.learn(b, dir); err != nil {
		return err
	}
	for _, other := range c.others {
		if start, open := strings.CutSuffix(other, "*"); open && strings.HasPrefix(dir+"/", start) {
			return apply.BadParam(
				"clean",
				"another step has a name that is known only when it runs, and may lie below %s: give it a name that begins with "+
					"its directory",
				dir,
			)
		}
	}
	return nil
}

// learn notes what the other steps of the host manage.
func (c *Cleaning) learn(b apply.Binding, dir string) error {
	c.others = nil
	for s, act := range b.OtherSteps() {
		if s.Action == "file.absent" {
			continue
		}
		paths, whole := managedBy(b.Catalog, s, act)
		if name := path.Clean(s.Params.Text("name")); whole && (name == dir || strings.HasPrefix(dir, name+"/")) &&
			c.Clean {
			return apply.BadParam("clean", "step %q fills %s, and what it brings is not known here", s.ID(), name)
		}
		c.others = append(c.others, paths...)
	}
	return nil
}

// tooNear reports a directory of the system itself.
func tooNear(dir string) bool { return strings.Count(dir, "/") < 2 || slices.Contains(busy, dir) }

// managedBy are the paths that a step names, and whether it fills a whole directory with what only it knows. A path
// with a part that is known only when the step runs ends there, with a *.
func managedBy(cat *render.Catalog, s *render.Step, act apply.Action) (paths []string, whole bool) {
	named := []string{s.Params.Text("name"), s.Params.Text("creates")}
	if act, ok := act.(apply.Manager); ok {
		for _, what := range act.Manages() {
			named = append(named, what.Path)
			whole = whole || what.Fills != ""
		}
	}
	if act, ok := act.(*Managed); ok {
		whole = len(act.From) > 0
		if act.Recurse {
			below, _ := cat.Below(act.Source) // its mistakes are reported when it is bound
			for _, f := range below {
				named = append(named, path.Join(act.Name, f.Path))
			}
		}
	}
	for _, p := range named {
		start, known := render.Known(p)
		switch {
		case !known && (start == "" || path.IsAbs(start)) && strings.HasPrefix(s.Action, "file."):
			paths = append(paths, start+"*")
		case known && path.IsAbs(p):
			paths = append(paths, path.Clean(p))
		}
	}
	return paths, whole
}

// extra are the paths below a directory, relative to it, that are to be removed: what is neither kept nor excluded nor
// another step's. A directory that goes as a whole is listed alone. Links are never followed, and what is mounted
// somewhere is not touched. The directory is nil where it is not there.
func (c *Cleaning) extra(h *apply.Host, dir *hostfile.Dir, name string, keep func(rel string) bool) ([]string, error) {
	if !c.Clean || dir == nil {
		return nil, nil
	}
	if tooNear(dir.Path()) {
		return nil, fmt.Errorf("%s leads to %s, which is too near the root to be cleaned", name, dir.Path())
	}
	s, err := c.sweep(h, dir, name, keep)
	if err == nil {
		_, err = s.below(dir, ".")
	}
	return s.extra, err
}

func (c *Cleaning) sweep(h *apply.Host, dir *hostfile.Dir, name string, keep func(rel string) bool) (*sweep, error) {
	s := &sweep{rules: c, h: h, root: dir.Path(), name: name, keep: keep}
	for _, other := range c.others {
		if err := s.spare(other); err != nil {
			return s, err
		}
	}
	return s, nil
}

// sweep is one walk that looks for what is to be removed.
type sweep struct {
	rules  *Cleaning
	h      *apply.Host
	root   string // the directory, beneath the host's root
	name   string
	keep   func(rel string) bool
	spared []string // on this machine, beneath its root
	starts []string // likewise, of which only the beginning is known
	extra  []string
}

// spare leaves another step's path to it: where it stands, and where it leads.
func (s *sweep) spare(other string) error {
	if start, open := strings.CutSuffix(other, "*"); open {
		if path.IsAbs(start) {
			at, err := whereIs(s.h.Entry, start+"x")
			s.starts = append(s.starts, strings.TrimSuffix(at, "x"))
			return err
		}
		return nil
	}
	for _, find := range []func(string) (*hostfile.Entry, error){s.h.Entry, s.h.Follow} {
		at, err := whereIs(find, other)
		if err != nil {
			return err
		}
		s.spared = append(s.spared, at)
	}
	return nil
}

// whereIs is where a path leads, beneath the host's root.
func whereIs(find func(string) (*hostfile.Entry, error), name string) (string, error) {
	at, err := find(name)
	if err != nil {
		return "", err
	}
	defer at.Close()
	return at.Path(), nil
}

// below looks at what is in a directory, and reports whether something of it stays.
func (s *sweep) below(dir *hostfile.Dir, rel string) (stays bool, err error) {
	names, err := dir.Names()
	if err != nil {
		return true, err
	}
	slices.Sort(names)
	var gone []string
	for _, name := range names {
		in := path.Join(rel, name)
		left, err := s.one(dir, name, in)
		if err != nil {
			return true, err
		}
		stays = stays || left
		if !left {
			gone = append(gone, in)
		}
	}
	if stays || rel == "." || s.keep(rel) {
		s.extra = append(s.extra, gone...)
		return true, nil
	}
	return false, nil
}

// one decides about one entry: whether it, or something in it, stays.
func (s *sweep) one(dir *hostfile.Dir, name, rel string) (stays bool, err error) {
	if s.passes(rel, path.Join(s.root, rel)) {
		return true, nil
	}
	e, err := dir.Entry(name)
	if err != nil {
		return true, err
	}
	defer e.Close()
	info, err := e.Lstat()
	if hostfile.NotThere(err) {
		return false, nil
	}
	mounted, bad := e.IsMount()
	switch kept := s.keep(rel); {
	case err != nil || bad != nil || mounted && kept:
		return true, errors.Join(err, bad)
	case mounted:
		return true, fmt.Errorf("%s is a mount point: unmount it, or exclude it", path.Join(s.name, rel))
	case !info.IsDir():
		return kept, nil
	}
	in, err := e.Dir()
	if err != nil {
		return true, err
	}
	defer in.Close()
	return s.below(in, rel)
}

// passes reports what is not looked at: what is excluded, and what is another step's.
func (s *sweep) passes(rel, at string) bool {
	return s.rules.leftAlone(rel) || slices.Contains(s.spared, at) ||
		slices.ContainsFunc(s.starts, func(start string) bool { return strings.HasPrefix(at, start) })
}

// leftAlone reports an excluded path. A pattern without a slash is of names anywhere below the directory.
func (c *Cleaning) leftAlone(rel string) bool {
	return slices.ContainsFunc(c.Exclude, func(pattern string) bool {
		what := rel
		if !strings.Contains(pattern, "/") {
			what = path.Base(rel)
		}
		yes, err := path.Match(strings.Trim(pattern, "/"), what)
		return err == nil && yes // patterns were checked when the action was bound
	})
}

// removeAll removes what extra found.
func removeAll(ctx context.Context, h *apply.Host, dir *hostfile.Dir, name string, extra []string, keep bool) error {
	for _, rel := range extra {
		if err := removeOne(ctx, h, dir, name, rel, keep); err != nil {
			return err
		}
	}
	return nil
}

func removeOne(ctx context.Context, h *apply.Host, dir *hostfile.Dir, name, rel string, keep bool) error {
	at, err := dir.Entry(rel)
	if err != nil {
		return err
	}
	defer at.Close()
	if keep {
		if err := backupAll(ctx, h, path.Join(name, rel), at); err != nil {
			return err
		}
	}
	if err := at.RemoveAll(ctx); err != nil {
		return err
	}
	return at.SyncDir()
}

// backupAll keeps the regular files of what is going to be removed.
func backupAll(ctx context.Context, h *apply.Host, name string, at *hostfile.Entry) error {
	info, err := at.Lstat()
	switch {
	case hostfile.NotThere(err):
		return nil
	case err != nil:
		return err
	case info.Mode().IsRegular():
		_, err := place.Backup(h, name, at)
		return err
	case !info.IsDir():
		return nil
	}
	dir, err := at.Dir()
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Walk(ctx, func(rel string, e *hostfile.Entry, info hostfile.Info) error {
		if !info.Mode().IsRegular() {
			return nil
		}
		_, err := place.Backup(h, path.Join(name, rel), e)
		return err
	})
}
