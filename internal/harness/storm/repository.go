package storm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pullet/pullet/internal/harness/rules"
	"github.com/pullet/pullet/puller"
)

// repository holds the state repositories of a storm: the first one has the rules, a second one only variables. Each
// has a bare repository, NAME.git, from which hosts pull.
type repository struct {
	*notes
	dir   string
	names []string
	shape func(*rules.Rules) // applied to the rules of each version, if not nil
	rules *rules.Rules       // of the last version

	mu     sync.Mutex // held while a version is pushed
	number int        // of the last version
}

// newRepository makes the repositories and the scripts that steps run, without a version.
func newRepository(n *notes, dir string, k Kind, first *rules.Rules) *repository {
	r := &repository{notes: n, dir: dir, names: []string{"main", "extra"}[:k.Repos], shape: k.shape, rules: first}
	for name, text := range rules.Scripts(dir) {
		write(n.t, filepath.Join(dir, name), text)
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			n.t.Fatal(err)
		}
	}
	for _, name := range r.names {
		r.git(".", "init", "-q", "--bare", "-b", "main", name+".git")
		r.git(".", "init", "-q", "-b", "main", name)
		r.git(name, "remote", "add", "origin", r.url(name))
	}
	if len(r.names) > 1 { // each commit of the second one is a version of the fleet
		write(n.t, filepath.Join(dir, "extra/base/vars.yaml"), "files: {'*': [{name: extra}]}\n")
		r.pushExtra(0)
	}
	r.reshape()
	return r
}

// url returns where hosts pull a repository.
func (r *repository) url(name string) string { return filepath.Join(r.dir, name+".git") }

// reshape applies the shape of the storm to the rules.
func (r *repository) reshape() {
	if r.shape != nil {
		r.shape(r.rules)
	}
}

// pushExtra commits a number to the second repository, and pushes it.
func (r *repository) pushExtra(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	write(r.t, filepath.Join(r.dir, "extra/vars/extra.yaml"), fmt.Sprintf("extra: %d\n", number))
	r.git("extra", "add", "-A")
	r.git("extra", "commit", "-qm", fmt.Sprint("variables ", number))
	r.git("extra", "push", "-q", "origin", "HEAD:main")
}

// push commits the rules, logs their meaning, and pushes them. A rewrite replaces the last commit.
func (r *repository) push(rewrite bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	for name, text := range r.rules.Files(r.dir, r.number) {
		write(r.t, filepath.Join(r.dir, "main", name), text)
	}
	r.git("main", "add", "-A")
	commit := []string{"commit", "-qm", fmt.Sprint("version ", r.number)}
	if rewrite {
		commit = append(commit, "--amend")
	}
	r.git("main", commit...)
	text, err := json.Marshal(r.rules.Version(r.number, r.git("main", "rev-parse", "HEAD")))
	if err != nil {
		r.t.Error(err)
	}
	r.say("version %s", text)
	r.git("main", "push", "-qf", "origin", "HEAD:main")
}

// tip returns the version of the fleet with the last commits.
func (r *repository) tip() string {
	var heads []puller.Head
	for _, name := range r.names {
		heads = append(heads, puller.Head{Repo: name, Commit: r.git(name, "rev-parse", "HEAD")})
	}
	return puller.Version(heads)
}

// git runs git in a directory of the storm, and returns its output.
func (r *repository) git(repo string, args ...string) string {
	as := []string{"-C", filepath.Join(r.dir, repo), "-c", "user.name=t", "-c", "user.email=t@example.org"}
	out, err := exec.Command("git", append(as, args...)...).CombinedOutput()
	if err != nil {
		r.t.Errorf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
