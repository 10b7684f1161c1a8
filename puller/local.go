package puller

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/revlist"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	"github.com/go-git/go-git/v5/plumbing/transport/server"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// installLocal makes go-git read file URLs in this process; its own transport
// runs git-upload-pack. Transports are global in go-git.
var installLocal = sync.OnceFunc(func() { client.InstallProtocol("file", localTransport{}) })

// localTransport serves repositories on this machine with go-git's in-process
// server, and fills what that lacks. It does not serve shallow clients.
type localTransport struct{}

func (localTransport) NewUploadPackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	st, err := loadLocal(ep.Path)
	if err != nil {
		return nil, err
	}
	s, err := server.NewClient(oneRepository{st}).NewUploadPackSession(ep, auth)
	return &localSession{UploadPackSession: s, st: st}, err
}

// NewReceivePackSession refuses: this package never pushes.
func (localTransport) NewReceivePackSession(*transport.Endpoint, transport.AuthMethod) (transport.ReceivePackSession, error) {
	return nil, transport.ErrAuthorizationFailed
}

// loadLocal opens the repository at a path: a bare one, or the .git of a work
// tree. A new storage for each session sees what was packed in the meantime.
func loadLocal(path string) (*filesystem.Storage, error) {
	for _, dir := range []string{filepath.Join(path, ".git"), path, path + ".git"} {
		if info, err := os.Stat(filepath.Join(dir, "shallow")); err == nil && info.Size() > 0 {
			return nil, fmt.Errorf("%s is a shallow clone, which cannot be pulled from: git -C %s fetch --unshallow", path, path)
		}
		if isGitDir(dir) {
			return filesystem.NewStorage(noLocks{osfs.New(dir)}, cache.NewObjectLRUDefault()), nil
		}
	}
	return nil, transport.ErrRepositoryNotFound
}

func isGitDir(dir string) bool {
	_, head := os.Stat(filepath.Join(dir, "HEAD"))
	_, objects := os.Stat(filepath.Join(dir, "objects"))
	return head == nil && objects == nil
}

// noLocks hides the lock files of a git that writes at the same time; go-git
// would take refs/heads/main.lock for an unreadable branch.
type noLocks struct{ billy.Filesystem }

func (n noLocks) ReadDir(path string) ([]fs.FileInfo, error) {
	infos, err := n.Filesystem.ReadDir(path)
	kept := infos[:0]
	for _, info := range infos {
		if !strings.HasSuffix(info.Name(), ".lock") {
			kept = append(kept, info)
		}
	}
	return kept, err
}

type oneRepository struct{ storer.Storer }

func (o oneRepository) Load(*transport.Endpoint) (storer.Storer, error) { return o.Storer, nil }

type localSession struct {
	transport.UploadPackSession
	st *filesystem.Storage
}

// AdvertisedReferencesContext adds what annotated tags point to.
func (s *localSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	ar, err := s.UploadPackSession.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	for name, hash := range ar.References {
		if !plumbing.ReferenceName(name).IsTag() {
			continue
		}
		target, annotated, err := peel(s.st, hash)
		if err != nil {
			return nil, err
		}
		if annotated {
			ar.Peeled[name] = target
		}
	}
	return ar, nil
}

// AdvertisedReferences is AdvertisedReferencesContext without a context.
func (s *localSession) AdvertisedReferences() (*packp.AdvRefs, error) {
	return s.AdvertisedReferencesContext(context.Background())
}

// UploadPack sends what is wanted. The server's own would fail on haves that
// this repository does not know, and spend seconds on finding deltas between
// ten thousand files, for nobody's gain on the same disk.
func (s *localSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if req.IsEmpty() {
		return nil, transport.ErrEmptyUploadPackRequest
	}
	var known []plumbing.Hash
	for _, h := range req.Haves {
		if s.st.HasEncodedObject(h) == nil {
			known = append(known, h)
		}
	}
	have, err := revlist.Objects(s.st, known, nil)
	if err != nil {
		return nil, err
	}
	send, err := revlist.Objects(s.st, req.Wants, have)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	stop := context.AfterFunc(ctx, func() { w.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		buffered := bufio.NewWriterSize(w, 64<<10)
		_, err := packfile.NewEncoder(buffered, s.st, false).Encode(send, 0)
		w.CloseWithError(cmp.Or(err, buffered.Flush()))
	}()
	return packp.NewUploadPackResponseWithPackfile(req, r), nil
}

// peel follows a tag to what it points to in the end.
func peel(st storer.EncodedObjectStorer, hash plumbing.Hash) (target plumbing.Hash, annotated bool, err error) {
	for {
		o, err := st.EncodedObject(plumbing.AnyObject, hash)
		if err != nil || o.Type() != plumbing.TagObject {
			return hash, annotated, err
		}
		t, err := object.DecodeTag(st, o)
		if err != nil {
			return hash, annotated, err
		}
		hash, annotated = t.Target, true
	}
}

// isLocal says whether a URL is served by localTransport.
func (s Source) isLocal() bool {
	ep, err := s.endpoint()
	return err == nil && ep.Protocol == "file"
}
