package webhook

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/pullet/pullet/internal/safetext"
)

// pushed are the fields that forges send of a push.
type pushed struct {
	Kind  string `json:"object_kind"` // GitLab: push, tag_push
	Ref   string `json:"ref"`
	After string `json:"after"` // of an annotated tag the tag itself
	Head  *struct {
		ID string `json:"id"`
	} `json:"head_commit"` // GitHub, Gitea, Forgejo
	Checkout string `json:"checkout_sha"` // GitLab: the commit, of a tag, too
}

// commit is the commit that the ref is now.
func (p pushed) commit() string {
	switch {
	case p.Checkout != "":
		return p.Checkout
	case p.Head != nil && strings.HasPrefix(p.Ref, "refs/tags/"):
		return p.Head.ID
	}
	return p.After
}

// readPush is for GitHub and those that do as it does: a header names the event, the first one that is there.
func readPush(names ...string) func(*endpoint, http.Header, []byte) (*content, error) {
	return func(e *endpoint, header http.Header, body []byte) (*content, error) {
		event := ""
		for _, name := range names {
			if event = header.Get(name); event != "" {
				break
			}
		}
		switch event {
		case "":
			return nil, fmt.Errorf("the header %s is missing: is this a webhook of the type %s?", names[0], e.Type)
		case "ping":
			return &content{ping: true}, nil
		case "push":
			return e.push(body, func(pushed) bool { return true })
		}
		return &content{}, nil
	}
}

// readGitLab goes by the body: system hooks send pushes, too, under another header.
func readGitLab(e *endpoint, _ http.Header, body []byte) (*content, error) {
	return e.push(body, func(p pushed) bool { return p.Kind == "push" || p.Kind == "tag_push" })
}

// push is what a forge says of a push.
func (e *endpoint) push(body []byte, is func(pushed) bool) (*content, error) {
	var p pushed
	if err := decode(body, maxDepth, &p); err != nil {
		return nil, err
	}
	if !is(p) {
		return &content{}, nil
	}
	return e.pushOf(p.Ref, p.commit())
}

// readOwnPush is a push as whoever signs it himself writes it.
func readOwnPush(e *endpoint, body []byte) (*content, error) {
	var p struct{ Ref, Commit string }
	if err := decode(body, maxDepth, &p); err != nil {
		return nil, err
	}
	if p.Ref == "" || p.Commit == "" {
		return nil, errors.New(`ref or commit is missing: {"ref": "refs/heads/main", "commit": "ID"}`)
	}
	return e.pushOf(p.Ref, p.Commit)
}

// pushOf is a push to a branch or a tag. That one is gone, and what happens to other refs, is no news for hosts.
func (e *endpoint) pushOf(ref, commit string) (*content, error) {
	id, err := hex.DecodeString(commit)
	if err != nil || len(id) != 20 && len(id) != 32 {
		return nil, fmt.Errorf("%+q is no id of a commit", safetext.Cut(commit, 80))
	}
	gone := strings.Trim(commit, "0") == ""
	if gone || !strings.HasPrefix(ref, "refs/heads/") && !strings.HasPrefix(ref, "refs/tags/") {
		return &content{}, nil
	}
	if !safetext.Word(strings.ReplaceAll(ref, "/", "_")) {
		return nil, fmt.Errorf("%+q is no name of a branch or a tag", safetext.Cut(ref, 80))
	}
	return &content{push: &Push{Repository: e.Repository, Ref: ref, Commit: strings.ToLower(commit)}}, nil
}
