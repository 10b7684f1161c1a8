package puller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/pullet/pullet/internal/trust"
)

// verifier looks at the signatures of one commit and its history.
type verifier struct {
	src         Source
	policy      Verify
	mode        string
	store       *store
	trees       *trees
	authorities *authorities
	verified    []plumbing.Hash // by this host, the last one last
	descends    bool            // all of them have since in their history, where it is set
	trusted     []plumbing.Hash // with all their history: these and since; the last one is the base of what is new
	now         time.Time
	seen        time.Time // when this host last saw the head of the repository, with nothing new; zero: not known
	head        Head      // that it saw then

	looked  bool                        // at a signature
	settled bool                        // the commit is of the trusted history: it need not be signed
	when    map[plumbing.Hash]time.Time // the place of a commit in time
	signers map[signature]trust.Signer
}

// newVerifier prepares a look at signatures, with the host's keys as they are now.
func newVerifier(src Source, st *store, rec record) (*verifier, error) {
	v := &verifier{
		src:     src,
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
	if rec.sameRemote(src) && slices.Contains(v.verified, plumbing.NewHash(rec.Commit)) {
		v.seen, v.head = v.inTime(rec.Seen), Head{Commit: rec.Commit, Tag: rec.Tag}
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
		err = v.tip(ctx, commit)
	default:
		err = v.history(ctx, commit)
	}
	if refused, ok := errors.AsType[*UnverifiedError](err); ok {
		refused.Repo, refused.Head, refused.mode = v.src.Name, commit.String(), v.mode
		refused.keys = v.policy.files()
		refused.since = v.policy.Since
		if len(v.trusted) > 0 && v.mode == verifyRange {
			refused.base = v.trusted[len(v.trusted)-1].String()
		}
	}
	return err
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
		v.settled, v.seen = true, time.Time{}
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
