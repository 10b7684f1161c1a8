package puller

import (
	"crypto/ed25519"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// files are the files of a commit: their contents by path. Marks before a content change what it is.
type files map[string]string

const (
	executable = "executable:"
	symlink    = "symlink:"
	submodule  = "submodule:"
)

// with returns the files with changes; "" removes one.
func (f files) with(changes ...string) files {
	all := files{}
	maps.Copy(all, f)
	for change := range slices.Chunk(changes, 2) {
		if all[change[0]] = change[1]; change[1] == "" {
			delete(all, change[0])
		}
	}
	return all
}

// signedUpstream is a repository whose commits are signed in this process, on any parents.
type signedUpstream struct {
	*upstream
	keys    map[string]ssh.Signer
	allowed string // the file of allowed signers
}

// newSignedUpstream makes a repository with the keys of some people.
func newSignedUpstream(t testing.TB, people ...string) *signedUpstream {
	t.Helper()
	u := &signedUpstream{upstream: newUpstream(t), keys: map[string]ssh.Signer{}}
	var lines strings.Builder
	for _, name := range people {
		seed := sha256.Sum256([]byte(name))
		key, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed[:]))
		must(t, err)
		u.keys[name] = key
		lines.WriteString(u.line(name, ""))
	}
	u.allowed = filepath.Join(t.TempDir(), "allowed")
	u.allow(lines.String())
	return u
}

// line returns the line of a key in a file of allowed signers.
func (u *signedUpstream) line(name, options string) string {
	return strings.Join(strings.Fields(name+" "+options+" "+string(ssh.MarshalAuthorizedKey(u.keys[name].PublicKey()))), " ") + "\n"
}

// allow writes the file of allowed signers.
func (u *signedUpstream) allow(lines string) {
	u.t.Helper()
	must(u.t, os.WriteFile(u.allowed, []byte(lines), 0o600))
}

// source returns the repository as a source that verifies.
func (u *signedUpstream) source() Source {
	return Source{Name: "main", URL: u.dir, Verify: Verify{AllowedSigners: u.allowed}}
}

// add writes a commit by a person, and returns its ID. The branch stays where it is.
func (u *signedUpstream) add(who string, content files, parents ...string) string {
	u.t.Helper()
	return u.addTree(who, u.tree(content), parents...)
}

// addTree is add with a tree that was written.
func (u *signedUpstream) addTree(who string, tree plumbing.Hash, parents ...string) string {
	u.t.Helper()
	by := object.Signature{Name: who, Email: who + "@example.org", When: u.now()}
	c := &object.Commit{Author: by, Committer: by, Message: "change\n", TreeHash: tree}
	for _, id := range parents {
		c.ParentHashes = append(c.ParentHashes, plumbing.NewHash(id))
	}
	return u.writeSigned(c, u.keys[who]).String()
}

// writeSigned signs a commit and writes it.
func (u *upstream) writeSigned(c *object.Commit, key ssh.Signer) plumbing.Hash {
	u.t.Helper()
	unsigned := &plumbing.MemoryObject{}
	must(u.t, c.EncodeWithoutSignature(unsigned))
	r, err := unsigned.Reader()
	must(u.t, err)
	sig, err := sshsig.Sign(r, key, sshsig.HashSHA512, "git")
	must(u.t, err)
	c.PGPSignature = string(sshsig.Armor(sig))
	return u.store(c)
}

// set moves the branch to a commit.
func (u *upstream) set(commit string) {
	u.t.Helper()
	must(u.t, u.repo.Storer.SetReference(plumbing.NewHashReference("refs/heads/main", plumbing.NewHash(commit))))
}

// tree writes a tree with files.
func (u *upstream) tree(content files) plumbing.Hash {
	u.t.Helper()
	t := &object.Tree{}
	below := map[string]files{}
	for path, text := range content {
		if dir, rest, deeper := strings.Cut(path, "/"); deeper {
			if below[dir] == nil {
				below[dir] = files{}
			}
			below[dir][rest] = text
			continue
		}
		t.Entries = append(t.Entries, u.entry(path, text))
	}
	for dir, content := range below {
		t.Entries = append(t.Entries, object.TreeEntry{Name: dir, Mode: filemode.Dir, Hash: u.tree(content)})
	}
	slices.SortFunc(t.Entries, compareEntries)
	return u.store(t)
}

// entry writes a file and returns its entry.
func (u *upstream) entry(name, text string) object.TreeEntry {
	u.t.Helper()
	e := object.TreeEntry{Name: name, Mode: filemode.Regular}
	for mark, mode := range map[string]filemode.FileMode{executable: filemode.Executable, symlink: filemode.Symlink, submodule: filemode.Submodule} {
		if rest, ok := strings.CutPrefix(text, mark); ok {
			text, e.Mode = rest, mode
		}
	}
	o := u.repo.Storer.NewEncodedObject()
	o.SetType(plumbing.BlobObject)
	w, err := o.Writer()
	must(u.t, err)
	_, err = w.Write([]byte(text))
	must(u.t, err)
	e.Hash = u.keep(o)
	return e
}
