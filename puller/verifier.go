package puller

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/pullet/pullet/trust"
)

// verifier looks at the signatures of one commit and its history.
type verifier struct {
	repo        string
	policy      Verify
	mode        string
	store       *store
	trees       *trees
	authorities *authorities
	verified    []plumbing.Hash // by this host, the last one last
	descends    bool            // all of them have since in their history, where it is set
	trusted     []plumbing.Hash // with all their history: these and since; the last one is the base of what is new
	now         time.Time

	looked  bool                        // at a signature
	settled bool                        // the commit is of the trusted history: it need not be signed
	when    map[plumbing.Hash]time.Time // the place of a commit in time
	signers map[signature]trust.Signer
}

// newVerifier prepares a look at signatures, with the host's keys as they are now.
func newVerifier(src Source, st *store, rec record) (*verifier, error) {
	v := &verifier{
		repo:    src.Name,
		policy:  src.Verify,
		mode:    src.verifyMode(),
		store:   st,
		now:     time.Now(),
		trees:   newTrees(st),
		when:    map[plumbing.Hash]time.Time{},
		signers: map[signature]trust.Signer{},
	}
	v.authorities = newAuthorities(v.trees, src.Verify)
	if err := v.authorities.readHost(); err != nil {
		return nil, fmt.Errorf("repository %q: cannot read who may sign: %w", src.Name, err)
	}
	for _, id := range rec.Verified.in(v.mode) {
		if commit := plumbing.NewHash(id); st.holds(commit) {
			v.verified = append(v.verified, commit)
		}
	}
	v.descends = rec.Verified.Since == src.Verify.Since && len(v.verified) > 0
	return v, nil
}

// follow determines the trusted commits. It is an *UnverifiedError where a commit does not have since in its history.
func (v *verifier) follow(ctx context.Context, commit plumbing.Hash) error {
	if v.trusted = v.verified; v.policy.Since == "" {
		return nil
	}
	if v.descends {
		has, err := v.within(ctx, v.verified[len(v.verified)-1], commit)
		if has || err != nil && !errors.Is(err, errCut) {
			return err
		}
	}
	since := plumbing.NewHash(v.policy.Since)
	if has, err := v.within(ctx, since, commit); !has {
		return cmp.Or(err, unverified(commit, "", errSince))
	}
	if v.descends || v.mode != verifyRange {
		return nil
	}
	if len(v.verified) > 0 {
		if has, err := v.within(ctx, since, v.verified[len(v.verified)-1]); has || err != nil {
			v.trusted = append([]plumbing.Hash{since}, v.verified...)
			return err
		}
	}
	v.trusted = append(slices.Clone(v.verified), since)
	return nil
}

// within reports whether a commit is another one or in its history.
func (v *verifier) within(ctx context.Context, commit, history plumbing.Hash) (bool, error) {
	if commit == history {
		return true, nil
	}
	return v.store.contains(ctx, history, commit)
}

// verify is nil, or an *UnverifiedError.
func (v *verifier) verify(ctx context.Context, commit plumbing.Hash, t tag) error {
	err := v.follow(ctx, commit)
	switch {
	case err != nil:
	case v.mode == verifyTag:
		err = v.tag(commit, t)
	case v.mode == verifyTip:
		err = v.tip(commit)
	default:
		err = v.history(ctx, commit)
	}
	if refused, ok := errors.AsType[*UnverifiedError](err); ok {
		refused.Repo, refused.Head, refused.mode = v.repo, commit.String(), v.mode
		refused.keys = v.policy.files()
		refused.since = v.policy.Since
		if len(v.trusted) > 0 && v.mode == verifyRange {
			refused.base = v.trusted[len(v.trusted)-1].String()
		}
	}
	return err
}

// tip looks at one commit, and not at its history.
func (v *verifier) tip(commit plumbing.Hash) error {
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
	return err
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
	_, err = who.keys.Verify(signed, v.inTime(later(made, c.Committer.When)))
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

// history looks at all commits that the trusted history does not have, and at the contents that they bring.
func (v *verifier) history(ctx context.Context, to plumbing.Hash) error {
	r, err := v.stretch(ctx, to)
	if err != nil || len(r.commits) == 0 {
		return err
	}
	v.looked = true
	for _, c := range r.commits {
		if err := v.date(c); err != nil {
			return err
		}
	}
	g, err := v.govern(ctx, r)
	if err != nil {
		return err
	}
	ruled := false
	for at, c := range r.commits {
		all, err := v.governors(r, g.of(at))
		if err := errors.Join(ctx.Err(), err); err != nil {
			return err
		}
		for _, who := range all {
			ruled = ruled || !who.rules.Empty()
			if _, err := v.signer(c, who.keys); err != nil && !v.settled {
				return err
			}
		}
	}
	if last, err := v.governors(r, g.of(len(r.commits))); err != nil || !ruled && last[0].rules.Empty() {
		return err
	}
	return v.contents(ctx, g)
}

// stretch returns the commits to look at. Of a commit that the trusted history has, but that was not looked at for
// itself, those count that led to it: a content that nobody may decide on can have been taken back behind it.
func (v *verifier) stretch(ctx context.Context, to plumbing.Hash) (*stretch, error) {
	if slices.Contains(v.trusted, to) {
		return &stretch{}, nil
	}
	base := plumbing.ZeroHash
	if len(v.trusted) > 0 {
		base = v.trusted[len(v.trusted)-1]
	}
	commits, err := v.store.commitsSince(ctx, to, v.trusted)
	if err == nil && len(commits) == 0 {
		v.settled = true
		var trusted []plumbing.Hash
		if trusted, err = v.store.nearest(ctx, to, v.trusted); err == nil {
			base = slices.Concat(trusted, []plumbing.Hash{plumbing.ZeroHash})[0]
			commits, err = v.store.commitsSince(ctx, to, trusted)
		}
	}
	if err != nil {
		return nil, err
	}
	return v.store.stretch(base, to, commits)
}

// contents holds the contents of the last commit of a stretch against what the signers of the stretch may change.
func (v *verifier) contents(ctx context.Context, g *governing) error {
	ruling := map[int][]string{}
	for _, own := range g.decided {
		ruling[own.at] = own.paths
	}
	governs := v.authorities.paths()
	c := newContents(g.stretch, v.trees, nil, func(m *merge, path string) error {
		if slices.Contains(ruling[m.at], path) {
			return nil
		}
		err := v.may(g.stretch, m.at, g.of(m.at), path)
		if err == nil && m.at < len(g.commits) && slices.Contains(governs, path) {
			err = unverified(g.commits[m.at].id, "", fmt.Errorf("changes %q together with a file that it may not change", path))
		}
		return err
	})
	for at := range g.commits {
		if err := c.add(ctx, at); err != nil {
			return err
		}
	}
	last := len(g.commits) - 1
	offered, err := c.offered(ctx, last)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(offered)) {
		if wrong := offered[path].wrong; wrong != nil {
			return wrong
		}
	}
	return nil
}

// authority is who may sign behind a commit.
func (v *verifier) authority(commit plumbing.Hash) (authority, error) {
	who, err := v.authorities.at(commit)
	if atFault(err) {
		err = unverified(commit, "", fmt.Errorf("does not say who may sign: %w", err))
	}
	return who, err
}

// date determines a commit's place in time: not before the commits that it comes after, whatever its own date says. So
// a key that expired cannot sign what is new.
func (v *verifier) date(c *link) error {
	when := c.when
	for _, id := range c.parents {
		parent, known := v.when[id]
		if !known {
			old, err := v.store.commit(id)
			if err != nil {
				return err
			}
			parent = old.Committer.When
		}
		when = later(when, parent)
	}
	v.when[c.id] = v.inTime(when)
	return nil
}

// signature is one that was held against keys.
type signature struct {
	commit plumbing.Hash
	keys   *trust.Keys
}

// signer returns who of the owners of keys signed a commit. A key has to be valid at the commit's place in time.
func (v *verifier) signer(c *link, keys *trust.Keys) (trust.Signer, error) {
	if known, ok := v.signers[signature{c.id, keys}]; ok {
		return known, nil
	}
	content, err := v.store.object(plumbing.CommitObject, c.id, maxCommit)
	if err != nil {
		return trust.Signer{}, err
	}
	signed, err := trust.Commit(content)
	var who trust.Signer
	if err == nil {
		who, err = keys.Verify(signed, v.when[c.id])
	}
	if err == nil {
		v.signers[signature{c.id, keys}] = who
	}
	return who, unverified(c.id, "", err)
}

// inTime takes a date of the future for now.
func (v *verifier) inTime(when time.Time) time.Time {
	if when.After(v.now) {
		return v.now
	}
	return when
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
