package puller

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// upstream is a bare repository with a linked work tree. Plain commits and tags are written in this process, because
// the real git takes several processes for each; everything else is done by the real git.
type upstream struct {
	t    testing.TB
	dir  string // bare, DIR/state.git
	work string // what is committed here is in dir
	repo *git.Repository
	env  []string  // of git, besides what every command gets
	at   time.Time // date of the next commits, if set
	tick int
}

func newUpstream(t testing.TB) *upstream {
	t.Helper()
	base := t.TempDir()
	u := &upstream{t: t, dir: filepath.Join(base, "state.git"), work: filepath.Join(base, "work")}
	linked := filepath.Join(u.dir, "worktrees/work")
	for _, dir := range []string{u.work, linked, filepath.Join(u.dir, "objects"), filepath.Join(u.dir, "refs")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for file, text := range map[string]string{
		filepath.Join(u.dir, "HEAD"):       "ref: refs/heads/main\n",
		filepath.Join(u.dir, "config"):     "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n",
		filepath.Join(linked, "HEAD"):      "ref: refs/heads/main\n",
		filepath.Join(linked, "commondir"): "../..\n",
		filepath.Join(linked, "gitdir"):    filepath.Join(u.work, ".git") + "\n",
		filepath.Join(u.work, ".git"):      "gitdir: " + linked + "\n",
	} {
		must(t, os.WriteFile(file, []byte(text), 0o644))
	}
	var err error
	u.repo, err = git.PlainOpenWithOptions(u.work, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
	must(t, err)
	return u
}

// now returns the date of the next commit or tag. Dates are a minute apart.
func (u *upstream) now() time.Time {
	u.tick++
	if !u.at.IsZero() {
		return u.at
	}
	return time.Unix(int64(1700000000+60*u.tick), 0).UTC()
}

// run runs git without what the user has configured.
func (u *upstream) run(dir string, args ...string) string {
	u.t.Helper()
	date := fmt.Sprintf("@%d +0000", u.now().Unix())
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org",
		"GIT_AUTHOR_DATE=" + date, "GIT_COMMITTER_DATE=" + date,
	}
	cmd.Env = append(cmd.Env, u.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (u *upstream) git(args ...string) string { u.t.Helper(); return u.run(u.work, args...) }

// write writes files, given as path and content in turn.
func (u *upstream) write(files ...string) {
	u.t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(u.work, files[i])
		must(u.t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(u.t, os.WriteFile(path, []byte(files[i+1]), 0o644))
	}
}

// commit writes and commits files, and returns the commit.
func (u *upstream) commit(files ...string) string {
	u.t.Helper()
	u.write(files...)
	tree := u.stage()
	head, err := u.repo.Reference(plumbing.HEAD, false)
	must(u.t, err)
	date := u.now()
	who := object.Signature{Name: "t", Email: "t@example.org", When: date}
	c := &object.Commit{Author: who, Committer: who, Message: "change\n", TreeHash: tree}
	if parent, err := u.repo.Reference(head.Target(), true); err == nil {
		c.ParentHashes = []plumbing.Hash{parent.Hash()}
	}
	id := u.store(c)
	must(u.t, u.repo.Storer.SetReference(plumbing.NewHashReference(head.Target(), id)))
	return id.String()
}

// head returns the commit that is checked out.
func (u *upstream) head() string {
	u.t.Helper()
	head, err := u.repo.Head()
	must(u.t, err)
	return head.Hash().String()
}

// release writes an annotated tag on the current commit.
func (u *upstream) release(name string) {
	u.t.Helper()
	tag := &object.Tag{
		Name: name, Tagger: object.Signature{Name: "t", Email: "t@example.org", When: u.now()}, Message: name + "\n",
		TargetType: plumbing.CommitObject, Target: plumbing.NewHash(u.head()),
	}
	must(u.t, u.repo.Storer.SetReference(plumbing.NewHashReference(plumbing.NewTagReferenceName(name), u.store(tag))))
}

// stage makes the index what is in the work tree, and returns its tree. It trusts no times of files: tests write the
// same file several times within one tick of the clock.
func (u *upstream) stage() plumbing.Hash {
	u.t.Helper()
	idx := &index.Index{Version: 2}
	trees := map[string]*object.Tree{".": {}}
	must(u.t, filepath.WalkDir(u.work, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".git" {
			return err
		}
		name, err := filepath.Rel(u.work, file)
		must(u.t, err)
		mode, id := u.blob(file, d)
		idx.Entries = append(idx.Entries, &index.Entry{Name: name, Mode: mode, Hash: id})
		for dir := path.Dir(name); trees[dir] == nil; dir = path.Dir(dir) {
			trees[dir] = &object.Tree{}
		}
		trees[path.Dir(name)].Entries = append(trees[path.Dir(name)].Entries, object.TreeEntry{Name: path.Base(name), Mode: mode, Hash: id})
		return nil
	}))
	must(u.t, u.repo.Storer.SetIndex(idx))
	deepest := slices.SortedFunc(maps.Keys(trees), func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	var root plumbing.Hash
	for _, dir := range append(slices.DeleteFunc(deepest, func(dir string) bool { return dir == "." }), ".") {
		slices.SortFunc(trees[dir].Entries, func(a, b object.TreeEntry) int { return strings.Compare(sortName(a), sortName(b)) })
		root = u.store(trees[dir])
		if dir != "." {
			up := trees[path.Dir(dir)]
			up.Entries = append(up.Entries, object.TreeEntry{Name: path.Base(dir), Mode: filemode.Dir, Hash: root})
		}
	}
	return root
}

// sortName returns the name by which git sorts the entries of a tree.
func sortName(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

// blob stores a file or the target of a symbolic link.
func (u *upstream) blob(file string, d fs.DirEntry) (filemode.FileMode, plumbing.Hash) {
	u.t.Helper()
	info, err := d.Info()
	must(u.t, err)
	mode, err := filemode.NewFromOSFileMode(info.Mode())
	must(u.t, err)
	var data []byte
	if mode == filemode.Symlink {
		target, err := os.Readlink(file)
		must(u.t, err)
		data = []byte(target)
	} else {
		data, err = os.ReadFile(file)
		must(u.t, err)
	}
	o := u.repo.Storer.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	must(u.t, err)
	_, err = w.Write(data)
	must(u.t, err)
	return mode, u.keep(o)
}

// store stores a commit, a tag or a tree.
func (u *upstream) store(from interface {
	Encode(plumbing.EncodedObject) error
}) plumbing.Hash {
	u.t.Helper()
	o := u.repo.Storer.NewEncodedObject()
	must(u.t, from.Encode(o))
	return u.keep(o)
}

func (u *upstream) keep(o plumbing.EncodedObject) plumbing.Hash {
	u.t.Helper()
	if u.repo.Storer.HasEncodedObject(o.Hash()) != nil {
		_, err := u.repo.Storer.SetEncodedObject(o)
		must(u.t, err)
	}
	return o.Hash()
}
