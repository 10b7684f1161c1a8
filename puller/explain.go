package puller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// explain adds to an error of the transport what helps against it. The texts
// are matched where neither go-git nor x/crypto/ssh has a typed error.
func explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	hint := ""
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return errors.New("authentication required: the server refused the credentials: check auth.username, auth.passwordFile or auth.tokenFile")
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return errors.New("authorization failed: the server knows the credentials and denies access: check what the token or user may read")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return errors.New("repository not found: check the url; many servers also say so when the credentials may not see it")
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		hint = "push a commit first"
	case strings.Contains(text, "unable to authenticate"):
		hint = "the server does not accept auth.sshKey: add its public half as a deploy key"
	case strings.Contains(text, "no common algorithm for host key"):
		hint = "the server's host keys are of other types than those in auth.knownHosts: add them with ssh-keyscan and compare fingerprints"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, hint)
}
