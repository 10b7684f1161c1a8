package puller

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/crypto/ssh"
)

// benchCommits is the history that a new host verifies.
const benchCommits = 10_000

// signedHistory is a repository with a long signed history, and the file of its signer.
func signedHistory(b *testing.B) (dir, allowed string) {
	b.Helper()
	u := newUpstream(b)
	u.commit(".pullet/signers", "jobs/** : alice\n", "jobs/a.yaml", "1")
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(b, err)
	key, err := ssh.NewSignerFromKey(private)
	must(b, err)
	repo, err := git.PlainOpen(u.dir)
	must(b, err)
	head, err := repo.Head()
	must(b, err)
	first, err := repo.CommitObject(head.Hash())
	must(b, err)
	parent := plumbing.ZeroHash
	for i := range benchCommits {
		who := object.Signature{Name: "alice", Email: "alice@example.org", When: time.Unix(int64(1700000000+60*i), 0).UTC()}
		c := &object.Commit{Author: who, Committer: who, Message: "change\n", TreeHash: first.TreeHash}
		if i > 0 {
			c.ParentHashes = []plumbing.Hash{parent}
		}
		parent = u.writeSigned(c, key)
	}
	must(b, repo.Storer.SetReference(plumbing.NewHashReference("refs/heads/main", parent)))
	u.run(u.dir, "repack", "-a", "-d", "-q")
	allowed = filepath.Join(b.TempDir(), "allowed")
	line := append([]byte("alice "), ssh.MarshalAuthorizedKey(key.PublicKey())...)
	must(b, os.WriteFile(allowed, line, 0o600))
	return u.dir, allowed
}

// BenchmarkVerify: the first pull of a long signed history, the same without verification, and git's own verification
// of a hundredth of it as the peer; then a pull of what is known.
func BenchmarkVerify(b *testing.B) {
	dir, allowed := signedHistory(b)
	signed := Source{Name: "main", URL: dir, Verify: Verify{AllowedSigners: allowed}}
	first := func(src Source) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				p := open(b, b.TempDir(), src)
				if h := pull(b, p); h.Problem != nil {
					b.Fatal(h.Problem)
				}
			}
		}
	}
	b.Run("first", first(signed))
	b.Run("first-unverified", first(Source{Name: "main", URL: dir}))
	b.Run("git-100-commits", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("git", "-C", dir, "-c", "gpg.ssh.allowedSignersFile="+allowed, "log", "-100", "--format=%G?", "main")
			cmd.Stdout = io.Discard
			must(b, cmd.Run())
		}
	})
	p := open(b, b.TempDir(), signed)
	pull(b, p)
	b.Run("known", func(b *testing.B) {
		for b.Loop() {
			if h := pull(b, p); h.Problem != nil {
				b.Fatal(h.Problem)
			}
		}
	})
}
