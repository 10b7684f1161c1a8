package puller

import (
	"context"
	"fmt"
	"time"

	git "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	listTimeout  = 30 * time.Second // for a listing of references, and to connect
	fetchTimeout = 5 * time.Minute  // for the objects of one fetch
	stopTimeout  = 2 * time.Second  // for a cancelled operation to leave the disk alone
	localTries   = 4
)

// session is what one conversation with the remote needs.
type session struct {
	remote *git.Remote
	auth   transport.AuthMethod
}

// talk runs a network operation within a time limit. go-git does not heed its
// context while it connects, so a stuck operation is left behind when the time
// is up. It fails once it goes on; at worst it still adds a whole pack.
func talk[T any](ctx context.Context, s Source, limit time.Duration, st storage.Storer, op func(context.Context, session) (T, error)) (result T, err error) {
	url, auth, err := s.login()
	if err != nil {
		return result, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	t := session{remote: git.NewRemote(st, &config.RemoteConfig{Name: "origin", URLs: []string{url}}), auth: auth}
	type answer struct {
		result T
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		result, err := try(ctx, s, t, op)
		done <- answer{result, err}
	}()
	select {
	case a := <-done:
		return a.result, explain(ctx, a.err)
	case <-ctx.Done():
	}
	if _, onDisk := st.(*filesystem.Storage); onDisk {
		select {
		case <-done:
		case <-time.After(stopTimeout):
		}
	}
	return result, context.Cause(ctx)
}

// try runs an operation, several times for a repository on this machine: git
// may move its objects from one place to another (a push, gc) while they are
// read, and nothing but another look helps.
func try[T any](ctx context.Context, s Source, t session, op func(context.Context, session) (T, error)) (result T, err error) {
	for range localTries {
		result, err = op(ctx, t)
		if err == nil || ctx.Err() != nil || !s.isLocal() {
			break
		}
	}
	return result, err
}
