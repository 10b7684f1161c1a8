package puller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pullet/pullet/internal/trust"
)

// tip looks at one commit, and not at its history.
func (v *verifier) tip(ctx context.Context, commit plumbing.Hash) error {
	c, err := v.store.commit(commit)
	if err != nil {
		return err
	}
	who, err := v.authorities.at(plumbing.ZeroHash)
	if err != nil {
		return err
	}
	v.looked = true
	if err := v.date(linkOf(c)); err != nil {
		return err
	}
	_, err = v.signer(linkOf(c), who.keys)
	if err == nil || v.seen.IsZero() {
		return err
	}
	// It may be older than what was seen.
	old, failed := v.within(ctx, commit, v.head.hash())
	if old {
		v.seen = time.Time{}
		_, err = v.signer(linkOf(c), who.keys)
	}
	return cmp.Or(failed, err)
}

// tag looks at an annotated tag. It has to say itself that it is the tag of that name on that commit: a server could
// show the tag of an old release under another name.
func (v *verifier) tag(commit plumbing.Hash, t tag) error {
	if t.id.IsZero() {
		return unverified(commit, "", errors.New("has no tag that is followed"))
	}
	content, err := v.store.object(plumbing.TagObject, t.id, maxCommit)
	if err != nil {
		return err
	}
	made, err := taggedAt(content)
	if err != nil {
		return err
	}
	who, err := v.authorities.at(plumbing.ZeroHash)
	if err != nil {
		return err
	}
	c, err := v.store.commit(commit)
	if err != nil {
		return err
	}
	v.looked = true
	signed := trust.Tag(content)
	if !v.src.newer(t.name, v.head.Tag) { // it may have been there before
		v.seen = time.Time{}
	}
	_, err = v.signed(signed, who.keys, v.inTime(later(made, c.Committer.When)))
	own := fmt.Appendf(nil, "object %s\ntype commit\ntag %s\n", commit, t.name)
	if err == nil && !bytes.HasPrefix(signed.Payload, own) {
		err = errors.New("is the tag of another name or commit: its own text says so")
	}
	return unverified(commit, t.name, err)
}

// taggedAt is when an annotated tag was made, as it says.
func taggedAt(content []byte) (time.Time, error) {
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.TagObject)
	if _, err := o.Write(content); err != nil {
		return time.Time{}, err
	}
	var t object.Tag
	err := t.Decode(o)
	return t.Tagger.When, err
}
