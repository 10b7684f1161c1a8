package agent

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// change is what kind of file changed.
type change int

const (
	variables     change = iota // the host's own, or a local repository's refs: pull again
	configuration               // read the configuration again
)

// debounce is how long files must be quiet before a change counts: editors and git write in several steps.
const debounce = 200 * time.Millisecond

// watchFiles reports changes of the host's variables, the configuration, and the refs of repositories on this machine.
// Directories are watched rather than files, because editors replace files. What does not exist yet is not watched: the
// timer sees it.
func (a *Agent) watchFiles(ctx context.Context) (<-chan change, error) {
	if a.outside.Host.Still {
		return nil, nil
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	kinds := map[string]change{a.config.Paths.HostVars: variables}
	if a.config.file != "" {
		dir := filepath.Dir(a.config.file)
		kinds[dir], kinds[filepath.Join(dir, "conf.d")] = configuration, configuration
	}
	for _, r := range a.config.Repositories {
		for _, dir := range refDirs(r.URL) {
			kinds[dir] = variables
		}
	}
	for dir := range kinds {
		if err := w.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, w.Close())
		}
	}
	out := make(chan change, 1)
	go a.reportChanges(ctx, w, kinds, out)
	return out, nil
}

// reportChanges turns bursts of events into one change each.
func (a *Agent) reportChanges(ctx context.Context, w *fsnotify.Watcher, kinds map[string]change, out chan<- change) {
	defer w.Close()
	var quiet <-chan time.Time
	pending := variables
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op == fsnotify.Chmod || !relevant(e.Name, a.config.file, kinds) {
				continue
			}
			pending = max(pending, kinds[filepath.Dir(e.Name)])
			quiet = time.After(debounce)
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			a.logger.WithError(err).Warn("watching files: the timer goes on")
		case <-quiet:
			quiet = nil
			select {
			case out <- pending:
				pending = variables
			case <-ctx.Done():
				return
			}
		}
	}
}

// relevant leaves out temporary files, and what lies beside the configuration.
func relevant(name, config string, kinds map[string]change) bool {
	base := filepath.Base(name)
	if strings.HasPrefix(base, ".") || strings.HasSuffix(base, "~") || strings.HasSuffix(base, ".lock") {
		return false
	}
	dir := filepath.Dir(name)
	if kinds[dir] == configuration && filepath.Base(dir) != "conf.d" {
		return filepath.Clean(name) == filepath.Clean(config) // a relative one is reported as ./NAME
	}
	return true
}

// refDirs are the directories in which a repository on this machine keeps its refs; none for a remote one.
func refDirs(url string) []string {
	path := strings.TrimPrefix(url, "file://")
	if !filepath.IsAbs(path) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(path, ".git")); err == nil {
		path = filepath.Join(path, ".git")
	}
	dirs := []string{path} // packed-refs
	// A repository that cannot be read is the pull's to report.
	_ = filepath.WalkDir(filepath.Join(path, "refs"), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	return dirs
}
